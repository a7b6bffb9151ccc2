/* SPDX-License-Identifier: MIT */
/*
 * A run document as metrics: the text formats of Prometheus (0.0.4) and OpenMetrics (1.0.0), and
 * the JSON of OpenTelemetry (OTLP 1.x). Names and units follow Prometheus's conventions: seconds,
 * bytes, `_total` for counters.
 *
 * A stage is a classic histogram whose edges are upper bounds of our buckets, so that cumulative
 * counts are exact (docs/metrics.md).
 */
#ifndef SOJOURN_METRICS_H
#define SOJOURN_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* Resolution of the stages' histograms. */
enum metrics_buckets {
	METRICS_COARSE, /* 17 edges, about 1, 2.5 and 5 in each decade from 10 µs to 10 s */
	METRICS_FINE,	/* 48, two to an octave, from 1 µs to 13 s */
};

#define METRICS_EDGES_MAX 48U

unsigned int metrics_edge_count(enum metrics_buckets buckets);
/* Return the upper bound of histogram edge @edge, in ns, inclusive. */
uint64_t metrics_edge_ns(enum metrics_buckets buckets, unsigned int edge);

/*
 * The values exported before, of an observation whose counts only grow. `respond` ends when the
 * next request begins: until then its last value may move to a higher bucket. Since a falling
 * cumulative count would look like a restart, it keeps its value until exceeded.
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

/* The Content-Type of each format. */
extern const char *const metrics_types[];

/* Return the format for an Accept header (RFC 9110, 12.5.1); NULL: no header. */
enum metrics_format metrics_choose(const char *accept);

/* The place in the metrics of a run: where the next part begins. Zeroed it is the beginning. */
struct metrics_place {
	size_t part;	/* a family, or several short ones */
	size_t service; /* of a family that is divided */
};

struct metrics_family;

struct metrics_printing {
	struct metrics *metrics;
	const struct run
		*run; /* a reading of the whole observation, which must not change meanwhile */
	enum metrics_format format;
	FILE *file;
	struct metrics_place place;
	const struct metrics_family *family; /* the current one, which the next part may continue */
};

/* Print the next part, which takes a millisecond or so for hundreds of services. False: it was the last. */
bool metrics_print_part(struct metrics_printing *printing);

/*
 * Return the same metrics in OpenTelemetry's JSON for HTTP. Counters are monotonic sums, and their
 * names lack `_total`. All are cumulative from @start_ns, the start of the observation, to @now_ns
 * (wall clock, ns since 1970).
 */
char *metrics_otlp(struct metrics *metrics, const struct run *run, uint64_t start_ns,
		   uint64_t now_ns);

#endif
