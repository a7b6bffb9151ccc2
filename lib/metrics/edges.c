// SPDX-License-Identifier: MIT
/* The edges of histograms in metrics; see sojourn/metrics.h and output.h. */
#include "output.h"

/* The first octave begins at 2^10 ns. */
#define FIRST_OCTAVE 10

/* In ns. 5 ms is included for alerts on longer waits. */
static const uint64_t coarse[] = {
	10000,	   50000,     100000,	  250000,     500000,	   1000000,
	2500000,   5000000,   10000000,	  25000000,   50000000,	   100000000,
	250000000, 500000000, 1000000000, 2500000000, 10000000000,
};

_Static_assert(ARRAY_SIZE(coarse) <= METRICS_EDGES_MAX, "there is room for the coarse edges");

unsigned int metrics_edge_count(enum metrics_buckets buckets)
{
	return buckets == METRICS_FINE ? METRICS_EDGES_MAX : ARRAY_SIZE(coarse);
}

static uint64_t fine_edge_ns(unsigned int edge)
{
	uint64_t octave = 1ULL << (FIRST_OCTAVE + edge / 2);

	return (edge % 2 ? octave + octave / 2 : octave) - 1;
}

/* Use the highest bucket bound up to a coarse edge: interpolated values never exceed the edge. */
uint64_t metrics_edge_ns(enum metrics_buckets buckets, unsigned int edge)
{
	if (buckets == METRICS_FINE)
		return fine_edge_ns(edge);
	return bucket_lower(bucket_index(coarse[edge] + 1)) - 1;
}

void metrics_count_edges(enum metrics_buckets buckets, const struct histogram *h,
			 uint64_t ret_below[static METRICS_EDGES_MAX])
{
	uint64_t seen = 0;
	unsigned int bucket = 0;

	for (unsigned int edge = 0; edge < metrics_edge_count(buckets); edge++) {
		for (; bucket <= bucket_index(metrics_edge_ns(buckets, edge)); bucket++)
			seen += h->buckets[bucket];
		ret_below[edge] = seen;
	}
}
