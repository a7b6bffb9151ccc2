/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The bucket layout of the whole project: histograms of kernel, observer and driver can be added,
 * compared and subtracted without conversion.
 *
 * Log-linear: values below 64 have a bucket each; above, every power of two has 64 equal parts. A
 * bucket is thus at most 1/64 = 1.5625 % of its lower edge wide. The last bucket counts values from
 * 2^40 (18.3 minutes in ns) on.
 */
#ifndef WIRE_BUCKETS_H
#define WIRE_BUCKETS_H

#include <linux/types.h>

#define BUCKET_SUB_BITS	  6
#define BUCKET_SUB	  (1U << BUCKET_SUB_BITS)
#define BUCKET_VALUE_BITS 40
#define BUCKET_COUNT	  ((BUCKET_VALUE_BITS - BUCKET_SUB_BITS + 1) * BUCKET_SUB)

_Static_assert(BUCKET_COUNT == 2240, "changing the layout makes stored histograms unreadable");

/* Return the highest set bit of @value, which is above 0 and below 2^40. */
static inline __attribute__((always_inline)) __u32 bucket_log2(__u64 value)
{
#ifdef __bpf__
	/*
	 * BPF has no instruction to count leading zeros. Tests of single bits would be branches, which depend on the
	 * measured time and which the processor guesses wrong. All bits below the highest one are set instead; the
	 * product's upper 6 bits differ for each of the 64 results (a de Bruijn sequence).
	 */
	static const __u8 positions[64] = {
		0,  47, 1,  56, 48, 27, 2,  60, 57, 49, 41, 37, 28, 16, 3,  61,
		54, 58, 35, 52, 50, 42, 21, 44, 38, 32, 29, 23, 17, 11, 4,  62,
		46, 55, 26, 59, 40, 36, 15, 53, 34, 51, 20, 43, 31, 22, 10, 45,
		25, 39, 14, 33, 19, 30, 9,  24, 13, 18, 8,  12, 7,  6,	5,  63,
	};

	value |= value >> 1;
	value |= value >> 2;
	value |= value >> 4;
	value |= value >> 8;
	value |= value >> 16;
	value |= value >> 32;
	return positions[value * 0x03f79d71b4cb0a89ULL >> 58];
#else
	return 63U - (__u32)__builtin_clzll(value);
#endif
}

/* Return the index of the bucket for @value, 0 … BUCKET_COUNT - 1. */
static inline __attribute__((always_inline)) __u32 bucket_index(__u64 value)
{
	__u32 shift;

	if (value < BUCKET_SUB)
		return (__u32)value;
	if (value >> BUCKET_VALUE_BITS)
		return BUCKET_COUNT - 1;
	shift = bucket_log2(value) - BUCKET_SUB_BITS;
	return ((shift + 1) << BUCKET_SUB_BITS) + ((__u32)(value >> shift) & (BUCKET_SUB - 1));
}

/* Return the smallest value of bucket @index. */
static inline __u64 bucket_lower(__u32 index)
{
	__u32 octave = index >> BUCKET_SUB_BITS;
	__u64 part = index & (BUCKET_SUB - 1);

	return octave ? (BUCKET_SUB + part) << (octave - 1) : part;
}

/* Return the largest value of bucket @index (inclusive, like Prometheus's `le`). */
static inline __u64 bucket_upper(__u32 index)
{
	__u32 octave = index >> BUCKET_SUB_BITS;

	return bucket_lower(index) + (octave ? 1ULL << (octave - 1) : 1) - 1;
}

#endif
