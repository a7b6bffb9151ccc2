/* SPDX-License-Identifier: MIT */
/*
 * A rate, or a number of connections, that changes with time: segments along which it is constant or
 * rises or falls evenly. Pure functions: what is due when follows from the number of the request alone.
 */
#ifndef DRIVER_LOAD_SHAPE_H
#define DRIVER_LOAD_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#define SHAPE_MAX 32

struct shape_segment {
	double from, to;      /* requests/s or connections, at its begin and at its end */
	uint64_t duration_ns; /* 0 in a parsed shape: an equal part, see shape_settle() */
	/* By shape_settle(): */
	double begin_ns; /* from the begin of the phase */
	double before;	 /* requests due before it */
	double count;	 /* requests due in it */
};

/* What is shaped. */
struct shape_kind {
	const char *option;
	const char *what; /* what a text is not, if it is none, and how to write it */
	const char *example;
	uint64_t max;
};

extern const struct shape_kind shape_rate;
extern const struct shape_kind shape_connections;

/* Beyond the last segment its last rate goes on. */
struct shape {
	const struct shape_kind *kind;
	size_t count; /* 0: no shape */
	struct shape_segment segments[SHAPE_MAX];
};

/*
 * "100..1000" (a ramp), "100,200,400" (steps), "0..500:10s,500:30s,500..0:10s" (segments with their
 * lengths): either all have a length, or none, or all but the last one. -EINVAL with a sentence in
 * @ret_error, freed by the caller.
 */
int shape_parse(const struct shape_kind *kind, const char *text, struct shape *ret_shape,
		char **ret_error);

/*
 * Gives segments without a length equal parts of @duration_ns, or the last one what is left of it.
 * -EINVAL with a sentence: nothing is left, or there is no duration and a length is needed.
 */
int shape_settle(struct shape *shape, uint64_t duration_ns, char **ret_error);

/* When request @number is due, from the begin of the phase, in ns: the number of those before it. */
double shape_due_ns(const struct shape *shape, double number);

/* Requests due within @duration_ns. */
double shape_count(const struct shape *shape, double duration_ns);

#endif
