/* SPDX-License-Identifier: MIT */
/*
 * A run document as metrics: the text formats of Prometheus (0.0.4) and OpenMetrics (1.0.0), and the
 * JSON of OpenTelemetry (OTLP 1.x). Names and units follow Prometheus's conventions: seconds, bytes,
 * `_total` for what only grows.
 *
 * A stage is a classic histogram whose edges are upper bounds of our buckets, so that every cumulative count
 * is exact (docs/metrics.md).
 */
#ifndef SOJOURN_METRICS_H
#define SOJOURN_METRICS_H

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* How finely stages are told. */
enum metrics_buckets {
	METRICS_COARSE, /* 17 edges, about 1, 2.5 and 5 in each decade from 10 µs to 10 s */
	METRICS_FINE,	/* 48, two to an octave, from 1 µs to 13 s */
};

#define METRICS_EDGES_MAX 48U

unsigned int metrics_edge_count(enum metrics_buckets buckets);
/* Upper bound of histogram edge @edge, in ns: what is at most that long is counted below it. */
uint64_t metrics_edge_ns(enum metrics_buckets buckets, unsigned int edge);

/*
 * What was exported before, of an observation whose counts only grow. `respond` ends when the next
 * request begins: until then its last value may still move to a higher bucket. A cumulative count that
 * went down would look like a restart to whoever reads it; it stays where it was until it is exceeded.
 */
struct metrics;

struct metrics *metrics_new(enum metrics_buckets buckets); /* NULL without memory */
void metrics_free(struct metrics *metrics);
DEFINE_CLEANUP(struct metrics *, metrics_free)
#define autometrics CLEANUP(cleanup_metrics_free)

enum metrics_format {
	METRICS_PROMETHEUS,
	METRICS_OPENMETRICS,
};

/* The Content-Type of a format. */
extern const char *const metrics_types[];

/* That which an Accept header asks for (RFC 9110, 12.5.1); NULL is none. */
enum metrics_format metrics_choose(const char *accept);

/* The text of @run, a reading of the whole observation; NULL without memory. The caller frees it. */
char *metrics_text(struct metrics *metrics, const struct run *run, enum metrics_format format);

/*
 * The same metrics as OpenTelemetry's protocol has them over HTTP, in JSON: counters without `_total` as
 * monotonic sums, all cumulative since @start_ns, where the observation began, and as of @now_ns (both
 * wall clock, ns since 1970). NULL without memory. The caller frees it.
 */
char *metrics_otlp(struct metrics *metrics, const struct run *run, uint64_t start_ns,
		   uint64_t now_ns);

#endif
