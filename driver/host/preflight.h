/* SPDX-License-Identifier: MIT */
/* Computes before the run whether the source ports of this host suffice. */
#ifndef DRIVER_HOST_PREFLIGHT_H
#define DRIVER_HOST_PREFLIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/target.h"
#include "load/load_settings.h"
#include "transport/link.h"

/* How long Linux keeps a connection that this side closed first in TIME_WAIT (TCP_TIMEWAIT_LEN). */
#define PREFLIGHT_TIME_WAIT_S 60U

struct preflight {
	uint64_t ports;	      /* of the range, per source address */
	uint64_t sources;     /* at least 1 */
	uint64_t used;	      /* ports not available now, of all sources */
	uint64_t held;	      /* part of @used outside TIME_WAIT: no known end */
	uint64_t connections; /* at a time */
	uint64_t rate;	      /* requests/s; 0: as fast as possible */
	uint64_t requests;    /* of the whole run; 0: not known */
	struct connection_policy policy;
	uint64_t block_s; /* how long a port is blocked by TIME_WAIT */
};

/* Write what will go wrong in *ret_text, freed by the caller; NULL: nothing. -ENOMEM. */
int preflight_check(const struct preflight *preflight, char **ret_text);

/*
 * Write what will go wrong as a sentence that the caller frees in *ret_text; NULL: nothing, or not
 * known. Requests are divided evenly between the targets: the busiest one decides. An unresolved
 * target (AF_UNSPEC) is skipped. -ENOMEM.
 */
int forecast_ports(const struct link_settings *link, const struct load_settings *load,
		   const struct target *const *targets, size_t count, char **ret_text);

#endif
