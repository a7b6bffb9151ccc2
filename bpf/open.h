/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Requests under way, by age, as passes over the sockets add them up. */
#ifndef BPF_OPEN_H
#define BPF_OPEN_H

#include "state.h"

/*
 * Count a request that has been under way since @since_ns (0: not known), and has waited since
 * @waits_ns.
 */
static __always_inline void open_age(struct service_open *o, __u64 since_ns, __u64 waits_ns)
{
	__u64 now = bpf_ktime_get_ns(), limit = 1000000, age_ns;
	__u32 i;

	if (!since_ns || since_ns > now)
		return;
	age_ns = now - since_ns;
	if (age_ns > o->oldest_ns)
		o->oldest_ns = age_ns;
	if (waits_ns < now && now - waits_ns > o->waiting_ns)
		o->waiting_ns = now - waits_ns;
	for (i = 0; i < OPEN_AGES - 1; i++) {
		if (age_ns < limit)
			break;
		limit *= 10;
	}
	o->ages[i]++;
}

#endif
