/* SPDX-License-Identifier: MIT */
/*
 * A rate or number of connections over time, in segments that are constant or rise or fall evenly.
 * Pure functions: a request's number alone determines when it is due.
 */
#ifndef DRIVER_LOAD_SHAPE_H
#define DRIVER_LOAD_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#define SHAPE_MAX 32

struct shape_segment {
	double from, to;      /* requests/s or connections, at start and end */
	uint64_t duration_ns; /* 0 in a parsed shape: an equal part, see shape_settle() */
	/* Set by shape_settle(): */
	double begin_ns; /* since the start of the phase */
	double before;	 /* requests due before the segment */
	double count;	 /* requests due in the segment */
};

/* The quantity that a shape describes. */
struct shape_kind {
	const char *option;
	const char *what; /* for errors: what is expected, and how to write it */
	const char *example;
	uint64_t max;
};

extern const struct shape_kind shape_rate;
extern const struct shape_kind shape_connections;

/* After the last segment its last rate continues. */
struct shape {
	const struct shape_kind *kind;
	size_t count; /* 0: no shape */
	struct shape_segment segments[SHAPE_MAX];
};

/*
 * Parse "100..1000" (a ramp), "100,200,400" (steps) or "0..500:10s,500:30s,500..0:10s" (segments
 * with lengths). All segments have a length, or none, or all but the last. -EINVAL with @ret_error.
 */
int shape_parse(const struct shape_kind *kind, const char *text, struct shape *ret_shape,
		char **ret_error);

/*
 * Give segments without a length equal parts of @duration_ns, or the last one the rest. Return
 * -EINVAL with a sentence if nothing is left, or without any duration.
 */
int shape_settle(struct shape *shape, uint64_t duration_ns, char **ret_error);

/* Return when request @number, counted from 0, is due, in ns since the start of the phase. */
double shape_due_ns(const struct shape *shape, double number);

/* Return how many requests are due within @duration_ns. */
double shape_count(const struct shape *shape, double duration_ns);

/* Return the maximum of the shape. */
double shape_most(const struct shape *shape);

/*
 * Return the number of connections @elapsed_ns after the start of the phase, and until when;
 * INFINITY: without end. A segment from A to B has each number between them for equally long. After
 * the last segment its last number stays.
 */
uint32_t shape_connections_at(const struct shape *shape, double elapsed_ns, double *ret_until_ns);

#endif
