/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Atomic operations whose result is wanted. The kernel's verifier knows them since 5.12 (5ca419f2864a);
 * on an older one config.plain is set, and loader_skeleton.c takes the instructions out of the branches
 * that are then dead. What stands there instead is a read and a write: each says why that will do.
 */
#ifndef BPF_ATOMIC_H
#define BPF_ATOMIC_H

#include "wire/config.h"

extern const volatile struct observer_config config;

#define PLAIN(place) (*(volatile typeof(*(place)) *)(place))

/* The value, which is 0 from now on. Nobody else writes there while it is not 0. */
#define atomic_take(place)                                           \
	({                                                           \
		typeof(*(place)) taken_;                             \
		if (config.plain) {                                  \
			taken_ = PLAIN(place);                       \
			if (taken_)                                  \
				PLAIN(place) = 0;                    \
		} else {                                             \
			taken_ = __sync_lock_test_and_set(place, 0); \
		}                                                    \
		taken_;                                              \
	})

/* Sets what is 0. Who comes in between sets a later time: it is older data that counts. */
#define atomic_set_zero(place, value)                                 \
	do {                                                          \
		if (!config.plain)                                    \
			__sync_val_compare_and_swap(place, 0, value); \
		else if (!PLAIN(place))                               \
			PLAIN(place) = value;                         \
	} while (0)

/* A write behind which all earlier ones are seen; x86 keeps their order anyway. */
#define atomic_publish(place, value)                            \
	do {                                                    \
		if (!config.plain)                              \
			__sync_lock_test_and_set(place, value); \
		else                                            \
			PLAIN(place) = value;                   \
	} while (0)

/* What is read behind it is not read before; x86 keeps that order anyway. */
#define atomic_fence(place)                             \
	do {                                            \
		if (config.plain)                       \
			barrier();                      \
		else                                    \
			__sync_fetch_and_add(place, 0); \
	} while (0)

#endif
