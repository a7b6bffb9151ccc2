/* SPDX-License-Identifier: MIT */
/* Fast random numbers: splitmix64 (Steele, Lea, Flood 2014). Not for secrets. */
#ifndef DRIVER_PAYLOAD_RANDOM_H
#define DRIVER_PAYLOAD_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* Return an exponentially distributed number with this mean. */
static inline double random_exponential(uint64_t *state, double mean)
{
	double uniform = ((double)(random_next(state) >> 11) + 0.5) * 0x1p-53; /* 0 < u < 1 */

	return -mean * log(uniform);
}

#endif
