/* SPDX-License-Identifier: MIT */
/* Deals the share of a lost member out to the others, in runs with a rate. */
#ifndef DRIVER_FLEET_DEAL_H
#define DRIVER_FLEET_DEAL_H

#include "load/load_settings.h"
#include "member.h"

/*
 * Give the requests of @lost to the remaining members, starting shortly. Append to its reason when
 * that starts, or why not. @load: of the whole run, which began to measure at @at_ns by the coordinator's
 * wall clock.
 */
void deal_again(struct member *members, uint32_t count, struct member *lost,
		const struct load_settings *load, uint64_t at_ns);

#endif
