/* SPDX-License-Identifier: MIT */
/* The receiver of a run document's metrics, one by one; for metrics.c and the formats. */
#ifndef LIB_METRICS_OUTPUT_H
#define LIB_METRICS_OUTPUT_H

#include "sojourn/metrics.h"

enum metrics_type {
	METRICS_COUNTER,
	METRICS_GAUGE,
	METRICS_HISTOGRAM,
};

enum metrics_unit {
	METRICS_ONE,
	METRICS_SECONDS, /* values are ns */
	METRICS_BYTES,
};

/* All samples of one name. */
struct metrics_family {
	const char *name; /* a counter's name has no `_total` */
	enum metrics_type type;
	enum metrics_unit unit;
	const char *help;
};

/* Values may be any text; metrics.c defines the names. */
struct metrics_label {
	const char *name;
	const char *value;
};

#define METRICS_LABELS 11

struct metrics_labels {
	struct metrics_label list[METRICS_LABELS];
	size_t count;
};

/* labels.c. */
void metrics_add_label(struct metrics_labels *labels, const char *name, const char *value);
/* The same, unless the value is empty. */
void metrics_add_known(struct metrics_labels *labels, const char *name, const char *value);

/* The texts of a service's numeric labels. */
struct metrics_numbers {
	char port[8];
	char netns[16];
};

/* The labels of each metric of a service. */
struct metrics_labels metrics_labels_of(const struct run_service *service,
					struct metrics_numbers *ret_numbers);

/* Find the next exported service, from *@index on; false: there is none. */
bool metrics_next_service(const struct run *run, size_t *index);

/* edges.c: count the values of @h up to each edge. */
void metrics_count_edges(enum metrics_buckets buckets, const struct histogram *h,
			 uint64_t ret_below[static METRICS_EDGES_MAX]);

struct metrics_edges {
	enum metrics_buckets buckets;
	unsigned int count;
	const uint64_t *below; /* cumulative counts, up to and including metrics_edge_ns() */
	enum stage stage;
	const struct run_newest *newest; /* RUN_NEWEST exemplars; NULL: none of these requests */
};

struct metrics_output {
	void *context;
	/* Start a family; its samples follow. */
	void (*family)(void *context, const struct metrics_family *family);
	void (*number)(void *context, const struct metrics_labels *labels, uint64_t value);
	void (*histogram)(void *context, const struct metrics_labels *labels,
			  const struct metrics_edges *edges, const struct histogram *h);
};

/* Pass the metrics at @place of @run, a reading of the whole observation, to @output. False: there are no more. */
bool metrics_tell_part(struct metrics *metrics, const struct run *run, struct metrics_place *place,
		       const struct metrics_output *output);

/* calls.c: of calls to upstreams (--calls). */
void metrics_tell_calls(const struct run *run, enum metrics_buckets buckets,
			const struct metrics_output *output);

/* plain.c: those without labels, of the observation as a whole. */
void metrics_tell_plain(const struct run *run, const struct metrics_output *output);

#endif
