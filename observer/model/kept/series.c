// SPDX-License-Identifier: MIT
/*
 * The past of each service, a point about every second. A point is the difference of two readings that the model has
 * taken. The first begins with the period and the last ends with it. So counts and sums over all points are those of
 * the period.
 */
#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"

struct of_service {
	char protocol[8];
	uint16_t port;
	uint32_t netns;
	uint64_t turn;
	struct run_series *series;
};

struct model_series {
	uint64_t started_ns; /* wall clock */
	uint64_t bytes;
	bool sparse;
	struct of_service *list;
	size_t count;
};

int model_series_new(uint64_t bytes, bool sparse, struct model_series **ret_series)
{
	struct model_series *series = calloc(1, sizeof(*series));

	if (!series)
		return -ENOMEM;
	series->started_ns = clock_wall_ns();
	series->bytes = bytes;
	series->sparse = sparse;
	*ret_series = series;
	return 0;
}

void model_series_limit(struct model_series *series, uint64_t bytes)
{
	series->bytes = bytes;
}

void model_series_free(struct model_series *series)
{
	if (!series)
		return;
	for (size_t i = 0; i < series->count; i++)
		run_series_free(series->list[i].series);
	free(series->list);
	free(series);
}

size_t model_series_bytes(const struct model_series *series)
{
	size_t points = 0;

	for (size_t i = 0; i < series->count; i++)
		points += series->list[i].series->capacity;
	return points * sizeof(struct run_point);
}

static struct of_service *find(const struct model_series *series, const struct run_service *like)
{
	for (size_t i = 0; i < series->count; i++) {
		struct of_service *entry = &series->list[i];

		if (entry->port == like->port && entry->netns == like->netns &&
		    entry->turn == like->turn && !strcmp(entry->protocol, like->protocol))
			return entry;
	}
	return NULL;
}

static struct of_service *add(struct model_series *series, const struct run_service *like)
{
	struct of_service *entry;

	if (ARRAY_GROW(series->list, series->count) < 0)
		return NULL;
	entry = &series->list[series->count];
	*entry = (struct of_service){.port = like->port, .netns = like->netns, .turn = like->turn};
	memcpy(entry->protocol, like->protocol, sizeof(entry->protocol));
	entry->series = run_series_new();
	if (!entry->series)
		return NULL;
	entry->series->started_ns = series->started_ns;
	series->count++;
	return entry;
}

/* The list keeps its room: ARRAY_GROW() allocates at powers of two. */
void model_series_forget(struct model_series *series, const struct run_service *like)
{
	struct of_service *entry = find(series, like);

	if (!entry)
		return;
	run_series_free(entry->series);
	series->count--;
	memmove(entry, entry + 1, (size_t)(series->list + series->count - entry) * sizeof(*entry));
}

/* Extend the point back to the end of the last one: a service that was away has no gap. */
static void close_gap(const struct run_series *series, struct run_point *point)
{
	const struct run_point *last = series->count ? &series->points[series->count - 1] : NULL;
	uint64_t end_ns = last ? last->begin_ns + last->duration_ns : point->begin_ns;

	if (end_ns >= point->begin_ns)
		return;
	point->duration_ns += point->begin_ns - end_ns;
	point->begin_ns = end_ns;
}

/* Memory of a point: in an array that grows by doubling, in a copy for a document, and as JSON. */
#define POINT_BYTES (3 * sizeof(struct run_point) + 3400)
/* Minimum of points of a service: a minute. Sparse series have none: there may be many. */
#define FEWEST_POINTS 60U

static size_t most_points(const struct model_series *series, size_t services)
{
	uint64_t most = series->bytes / POINT_BYTES / (services ? services : 1);

	if (most < FEWEST_POINTS && !series->sparse)
		return FEWEST_POINTS;
	return most < RUN_SERIES_MAX ? most : RUN_SERIES_MAX;
}

static int add_point(struct run_series *to, const struct run *base, const struct run *last,
		     const struct run *now, const struct run_service *service)
{
	struct run_point point;

	run_point_between(run_find_service(last, service), service, &point);
	point.begin_ns = last->duration_ns - base->duration_ns;
	point.duration_ns = now->duration_ns - last->duration_ns;
	close_gap(to, &point);
	return run_series_add(to, &point);
}

/*
 * The first point of a service that had no entry, because nothing had happened: all the time until @last, with the state
 * at its end. A service that @last does not have came later.
 */
static int add_quiet(struct run_series *to, const struct run *base, const struct run *last,
		     const struct run_service *like)
{
	const struct run_service *service = run_find_service(last, like);
	struct run_point point;

	if (!service || last->duration_ns <= base->duration_ns)
		return 0;
	run_point_between(service, service, &point);
	point.begin_ns = 0;
	point.duration_ns = last->duration_ns - base->duration_ns;
	return run_series_add(to, &point);
}

/* Return whether nothing was counted of @service since @last. */
static bool is_quiet(const struct run *last, const struct run_service *service)
{
	struct run_point point;
	uint64_t counted;

	run_point_between(run_find_service(last, service), service, &point);
	counted = point.accepted | point.exchanges | point.bytes_in | point.bytes_out |
		  point.retransmits | point.resets | point.time_wait_created | point.overflows |
		  point.cpu.count;
	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		counted |= point.closes[i];
	for (unsigned int i = 0; i < RUN_LOSS_COUNT; i++)
		counted |= point.losses[i];
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		counted |= point.stages[i].count;
	return !counted;
}

static int point_service(struct model_series *series, const struct run *base,
			 const struct run *last, const struct run *now,
			 const struct run_service *service)
{
	struct of_service *entry = find(series, service);

	if (!entry && series->sparse && is_quiet(last, service))
		return 0;
	if (!entry) {
		entry = add(series, service);
		if (!entry || (series->sparse && add_quiet(entry->series, base, last, service)))
			return -ENOMEM;
	}
	run_series_limit(entry->series, most_points(series, series->count));
	return add_point(entry->series, base, last, now, service);
}

int model_series_point(struct model_series *series, const struct run *base, const struct run *last,
		       const struct run *now)
{
	int r = 0;

	for (size_t i = 0; !r && i < now->service_count; i++)
		r = point_service(series, base, last, now, &now->services[i]);
	return r;
}

int model_series_read(const struct model_series *series, const struct run *base,
		      const struct run *last, struct run *now)
{
	for (size_t i = 0; i < now->service_count; i++) {
		struct run_service *service = &now->services[i];
		const struct of_service *entry = find(series, service);

		service->series = entry ? run_series_copy(entry->series) : run_series_new();
		if (!service->series)
			return -ENOMEM;
		service->series->started_ns = series->started_ns;
		if (!entry && series->sparse && add_quiet(service->series, base, last, service))
			return -ENOMEM;
		if (add_point(service->series, base, last, now, service))
			return -ENOMEM;
	}
	return 0;
}

int model_series_give(const struct model_series *series, uint64_t started_ns, struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];
		const struct of_service *entry = find(series, service);

		run_series_free(service->series);
		service->series = entry ? run_series_copy(entry->series) : run_series_new();
		if (!service->series)
			return -ENOMEM;
		service->series->started_ns = started_ns;
	}
	return 0;
}
