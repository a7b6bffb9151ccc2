// SPDX-License-Identifier: MIT
/* One atomic word that holds the end of the current wait. */
#include "turn.h"

#include "sojourn/clock.h"

/* How late a holder may be before it counts as dead (a killed worker) and loses its turn. */
#define PATIENCE_NS NSEC_PER_SEC

struct turn_wait turn_take(struct turn *turn, uint64_t delay_ns)
{
	uint64_t now = clock_now_ns(), until = atomic_load(&turn->until_ns);
	bool is_free = !until || now > until + PATIENCE_NS;

	if (is_free && atomic_compare_exchange_strong(&turn->until_ns, &until, now + delay_ns))
		return (struct turn_wait){.mine = now + delay_ns, .wait_ns = delay_ns};
	/* A little later than the holder, which has then given the turn back. */
	return (struct turn_wait){.wait_ns = (until > now ? until - now : 0) + NSEC_PER_MSEC};
}

bool turn_is_mine(struct turn *turn, uint64_t mine)
{
	return mine && atomic_load(&turn->until_ns) == mine;
}

void turn_end(struct turn *turn, uint64_t mine)
{
	if (mine)
		atomic_compare_exchange_strong(&turn->until_ns, &mine, 0);
}
