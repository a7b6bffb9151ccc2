// SPDX-License-Identifier: MIT
/* Parses shapes and inverts their integral: see shape.h. */
#include "shape.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

const struct shape_kind shape_rate = {
	.option = "--rate",
	.what = "a rate; write requests per second, from 1 to 1G, like 500 or 20k, a ramp like "
		"100..2k, steps like 100,200,400, or segments like 0..500:10s,500:30s",
	.example = "100:10s",
	.max = 1000000000,
};

const struct shape_kind shape_connections = {
	.option = "--connections",
	.what = "a number from 1 to 1000000, nor a ramp like 1..64, steps like 1,8,64, or segments "
		"like 1..64:10s,64:30s",
	.example = "64:10s",
	.max = 1000000,
};

static int refuse_shape(const struct shape_kind *kind, const char *text, char **ret_error)
{
	return refuse(ret_error, "%s: '%s' is not %s (at most %d)", kind->option, text, kind->what,
		      SHAPE_MAX);
}

static int take_value(const struct shape_kind *kind, const char *text, size_t length,
		      double *ret_value)
{
	uint64_t value;

	if (units_parse_count_of(text, length, &value) || value > kind->max)
		return -EINVAL;
	*ret_value = (double)value;
	return 0;
}

/* Parse VALUE or VALUE..VALUE, with or without :TIME, of @length characters. */
static int parse_segment(const struct shape_kind *kind, const char *text, size_t length,
			 struct shape_segment *ret_segment)
{
	const char *colon = memchr(text, ':', length);
	size_t rates = colon ? (size_t)(colon - text) : length;
	const char *dots = memmem(text, rates, "..", 2);
	struct shape_segment segment = {0};
	char copy[32];

	if (take_value(kind, text, dots ? (size_t)(dots - text) : rates, &segment.from))
		return -EINVAL;
	segment.to = segment.from;
	if (dots && take_value(kind, dots + 2, rates - (size_t)(dots + 2 - text), &segment.to))
		return -EINVAL;
	if (colon) {
		snprintf(copy, sizeof(copy), "%.*s", (int)(length - rates - 1), colon + 1);
		if (length - rates >= sizeof(copy) ||
		    units_parse_duration(copy, &segment.duration_ns) || !segment.duration_ns)
			return -EINVAL;
	}
	*ret_segment = segment;
	return 0;
}

/*
 * Check that all segments have a length, or none, or all but the last, and some value is 1 or more.
 */
static int check(const struct shape *shape)
{
	size_t timed = 0;

	for (size_t i = 0; i < shape->count; i++)
		timed += shape->segments[i].duration_ns != 0;
	if (shape_most(shape) < 1)
		return -EINVAL;
	if (!timed || timed == shape->count)
		return 0;
	return timed == shape->count - 1 && !shape->segments[timed].duration_ns ? 0 : -EINVAL;
}

int shape_parse(const struct shape_kind *kind, const char *text, struct shape *ret_shape,
		char **ret_error)
{
	struct shape shape = {.kind = kind};
	const char *at = text;

	for (;;) {
		size_t length = strcspn(at, ",");

		if (shape.count == SHAPE_MAX ||
		    parse_segment(kind, at, length, &shape.segments[shape.count]))
			return refuse_shape(kind, text, ret_error);
		shape.count++;
		if (!at[length])
			break;
		at += length + 1;
	}
	if (check(&shape))
		return refuse_shape(kind, text, ret_error);
	*ret_shape = shape;
	return 0;
}

static int share_out(struct shape *shape, uint64_t duration_ns, char **ret_error)
{
	uint64_t timed_ns = 0;
	size_t timed = 0;

	for (size_t i = 0; i < shape->count; i++) {
		timed_ns += shape->segments[i].duration_ns;
		timed += shape->segments[i].duration_ns != 0;
	}
	if (timed == shape->count && duration_ns && duration_ns < timed_ns)
		return refuse(ret_error,
			      "%s: its segments last longer than --duration; make that as long as "
			      "they are, or leave it out",
			      shape->kind->option);
	if (timed == shape->count)
		return 0;
	if (!duration_ns)
		return refuse(ret_error,
			      "%s: how long do its segments last? Give --duration, or lengths "
			      "like %s",
			      shape->kind->option, shape->kind->example);
	if (timed && timed_ns >= duration_ns)
		return refuse(ret_error,
			      "%s: the segments before the last one are as long as the whole "
			      "--duration",
			      shape->kind->option);
	for (size_t i = timed; i < shape->count; i++)
		shape->segments[i].duration_ns = (duration_ns - timed_ns) / (shape->count - timed);
	return 0;
}

int shape_settle(struct shape *shape, uint64_t duration_ns, char **ret_error)
{
	int err = share_out(shape, duration_ns, ret_error);
	double begin_ns = 0, before = 0;

	for (size_t i = 0; i < shape->count && !err; i++) {
		struct shape_segment *segment = &shape->segments[i];
		double length_ns = (double)segment->duration_ns;

		segment->begin_ns = begin_ns;
		segment->before = before;
		segment->count =
			(segment->from + segment->to) / 2 * length_ns / (double)NSEC_PER_SEC;
		begin_ns += length_ns;
		before += segment->count;
	}
	return err;
}

/*
 * Return the time t within a segment at which n requests are due. Solve n = from·t + (to −
 * from)·t²/2T without losing digits when the rate hardly changes.
 */
static double within_ns(const struct shape_segment *segment, double n)
{
	double seconds = (double)segment->duration_ns / (double)NSEC_PER_SEC;
	double slope = seconds > 0 ? (segment->to - segment->from) / seconds : 0;
	double root = sqrt(fmax(0, segment->from * segment->from + 2 * slope * n));

	if (segment->from + root <= 0)
		return 0;
	return 2 * n / (segment->from + root) * (double)NSEC_PER_SEC;
}

double shape_due_ns(const struct shape *shape, double number)
{
	const struct shape_segment *segment = shape->segments;
	const struct shape_segment *last = &segment[shape->count - 1];
	double over;

	for (; segment <= last; segment++)
		if (number < segment->before + segment->count)
			return segment->begin_ns + within_ns(segment, number - segment->before);
	over = number - last->before - last->count;
	if (last->to <= 0)
		return INFINITY;
	return last->begin_ns + (double)last->duration_ns + over / last->to * (double)NSEC_PER_SEC;
}

double shape_count(const struct shape *shape, double duration_ns)
{
	const struct shape_segment *segment = shape->segments;
	double count = 0;

	for (size_t i = 0; i < shape->count; i++, segment++) {
		double length_ns = (double)segment->duration_ns;
		double part_ns = fmin(fmax(duration_ns - segment->begin_ns, 0), length_ns);
		double end = segment->from + (segment->to - segment->from) * part_ns / length_ns;

		count += (segment->from + end) / 2 * part_ns / (double)NSEC_PER_SEC;
	}
	segment--;
	if (duration_ns > segment->begin_ns + (double)segment->duration_ns)
		count += segment->to *
			 (duration_ns - segment->begin_ns - (double)segment->duration_ns) /
			 (double)NSEC_PER_SEC;
	return count;
}

double shape_most(const struct shape *shape)
{
	double most = 0;

	for (size_t i = 0; i < shape->count; i++)
		most = fmax(most, fmax(shape->segments[i].from, shape->segments[i].to));
	return most;
}

uint32_t shape_connections_at(const struct shape *shape, double elapsed_ns, double *ret_until_ns)
{
	const struct shape_segment *segment = shape->segments;
	const struct shape_segment *last = &segment[shape->count - 1];
	double levels, each_ns, index;

	while (segment < last && elapsed_ns >= segment[1].begin_ns)
		segment++;
	levels = fabs(segment->to - segment->from) + 1;
	each_ns = (double)segment->duration_ns / levels;
	index = floor(fmax(elapsed_ns - segment->begin_ns, 0) / each_ns);
	index = fmin(index, levels - 1);
	*ret_until_ns = segment->begin_ns + (index + 1) * each_ns;
	if (segment == last && index + 1 >= levels)
		*ret_until_ns = INFINITY;
	return (uint32_t)(segment->from + (segment->to < segment->from ? -index : index));
}
