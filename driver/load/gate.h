/* SPDX-License-Identifier: MIT */
/* A limit of connections per second, which the workers share. */
#ifndef DRIVER_LOAD_GATE_H
#define DRIVER_LOAD_GATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "sojourn/clock.h"

/* Catch up on what timers of a millisecond delay, but not on longer pauses. */
#define GATE_CATCH_UP_NS (10 * NSEC_PER_MSEC)

struct gate {
	_Atomic uint64_t next_ns; /* when the next connection may open */
	uint64_t rate;		  /* per second; 0: no limit */
};

/* Return 0 if a connection may open, or the time (ns) to ask again. */
static inline uint64_t gate_pass(struct gate *gate, uint64_t now_ns)
{
	uint64_t next_ns = atomic_load_explicit(&gate->next_ns, memory_order_relaxed);
	uint64_t after_ns;

	if (!gate->rate)
		return 0;
	do {
		if (next_ns > now_ns)
			return next_ns;
		after_ns = now_ns - next_ns > GATE_CATCH_UP_NS ? now_ns : next_ns;
		after_ns += NSEC_PER_SEC / gate->rate;
	} while (!atomic_compare_exchange_weak_explicit(
		&gate->next_ns, &next_ns, after_ns, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

#endif
