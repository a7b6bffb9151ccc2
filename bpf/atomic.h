/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Memory that other programs read and write meanwhile, and numbers that the verifier is to forget. */
#ifndef BPF_ATOMIC_H
#define BPF_ATOMIC_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "wire/config.h"

extern const volatile struct observer_config config;

#define PLAIN(place) (*(volatile typeof(*(place)) *)(place))

/*
 * Read back what was just stored in a map. To the verifier the value is a new one. It then follows the code that uses
 * the value once, and not again for each way that led to the old one. The instruction replaces that of a spilled
 * register.
 */
#define REREAD(place) PLAIN(place)

/*
 * The same for a number @x that is in no map, by two instructions. @unknown is any number that the verifier does not
 * know, such as one in a map. The verifier still knows whether the highest bits are 0, if @unknown has 32 bits.
 */
#define FORGET(x, unknown)                                                                     \
	({                                                                                     \
		__u64 forgotten_ = (x);                                                        \
		asm volatile("%0 ^= %1\n%0 ^= %1" : "+r"(forgotten_) : "r"((__u64)(unknown))); \
		(x) = (typeof(x))forgotten_;                                                   \
	})

/* Take the value and leave 0. While it is not 0, no other program writes it. */
#define atomic_take(place) __sync_lock_test_and_set(place, 0)

/* Write @value so that all earlier writes are seen before it. */
#define atomic_publish(place, value) ((void)__sync_lock_test_and_set(place, value))

/* Keep later reads after all earlier accesses. */
#define atomic_fence(place) ((void)__sync_val_compare_and_swap(place, 0, 0))

/*
 * Keep the order of two reads, or two writes, around this. x86 does so anyway, but the compiler
 * does not.
 */
#ifdef __TARGET_ARCH_x86
#define READS_IN_ORDER	    1
#define atomic_order(place) barrier()
#else
#define READS_IN_ORDER	    0
#define atomic_order(place) atomic_fence(place)
#endif

#endif
