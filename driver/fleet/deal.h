/* SPDX-License-Identifier: MIT */
/* Under a rate: the part of a lost member is dealt out to the others. */
#ifndef DRIVER_FLEET_DEAL_H
#define DRIVER_FLEET_DEAL_H

#include "load/load_settings.h"
#include "member.h"

/*
 * Gives the requests of the member just lost to those that are left, from soon on. Adds to its reason from when, or
 * why not. @load: of the whole run, which began at @at_ns by the coordinator's wall clock.
 */
void deal_again(struct member *members, uint32_t count, struct member *lost,
		const struct load_settings *load, uint64_t at_ns);

#endif
