/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The copies of a service's slot. Mostly each CPU has its own, where a plain addition loses nothing. If memory is too
 * little for that, CPUs share copies, and every addition is atomic. The programs are compiled twice, the second time
 * with COPIES_SHARED (bpf/CMakeLists.txt): so a copy of its own costs no instruction more. observer/model/budget.c
 * chooses.
 */
#ifndef BPF_COPIES_H
#define BPF_COPIES_H

#include "atomic.h"

/* Tries to replace a value. One fails only if another CPU has raised it, or lowered it, in between. */
#define COPY_TRIES 8

/* Raise *@most to @value. If all tries fail, user space uses the histogram's bucket. */
static __always_inline void atomic_raise(__u64 *most, __u64 value)
{
	__u64 old = PLAIN(most), seen;

	for (int i = 0; i < COPY_TRIES && value > old; i++) {
		seen = __sync_val_compare_and_swap(most, old, value);
		if (seen == old)
			return;
		old = seen;
	}
}

#ifdef COPIES_SHARED
#define COPY_ADD(place, n)	__sync_fetch_and_add(&(place), n)
#define copy_raise(most, value) atomic_raise(most, value)

/* Neighbouring CPUs share a copy: mostly they share caches, too. */
static __always_inline __u32 copy_of_cpu(__u32 cpu)
{
	return cpu >> config.copy_shift & (config.copies - 1);
}

/* Lower *@least to @value, unless it is lower already; 0: there is none yet. */
static __always_inline void atomic_lower(__u64 *least, __u64 value)
{
	__u64 old = PLAIN(least), seen;

	for (int i = 0; i < COPY_TRIES && (value < old || !old); i++) {
		seen = __sync_val_compare_and_swap(least, old, value);
		if (seen == old)
			return;
		old = seen;
	}
}
#else
#define COPY_ADD(place, n) ((place) += (n))

static __always_inline __u32 copy_of_cpu(__u32 cpu)
{
	return cpu;
}

static __always_inline void copy_raise(__u64 *most, __u64 value)
{
	if (value > *most)
		*most = value;
}
#endif

#endif
