/* SPDX-License-Identifier: MIT */
/* Whether the source ports will do, told before the run: pure arithmetic. */
#ifndef DRIVER_HOST_PREFLIGHT_H
#define DRIVER_HOST_PREFLIGHT_H

#include <stdint.h>

#include "transport/policy.h"

/* How long Linux keeps a connection that this side closed first in TIME_WAIT (TCP_TIMEWAIT_LEN). */
#define PREFLIGHT_TIME_WAIT_S 60U

struct preflight {
	uint64_t ports;	      /* of the range, for one source address */
	uint64_t sources;     /* at least 1 */
	uint64_t used;	      /* of the ports of all of them: what this run cannot have now */
	uint64_t held;	      /* of these: not by TIME_WAIT, and so nobody knows until when */
	uint64_t connections; /* at a time */
	uint64_t rate;	      /* requests/s; 0: as fast as it goes */
	uint64_t requests;    /* all of the run; 0: not known */
	struct connection_policy policy;
	uint64_t block_s; /* how long a port is blocked by TIME_WAIT */
};

/* What will go wrong, as a sentence that the caller frees, in *ret_text; NULL: nothing. -ENOMEM. */
int preflight_check(const struct preflight *preflight, char **ret_text);

#endif
