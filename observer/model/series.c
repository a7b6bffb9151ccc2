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
	struct of_service *list;
	size_t count;
};

int model_series_new(uint64_t bytes, struct model_series **ret_series)
{
	struct model_series *series = calloc(1, sizeof(*series));

	if (!series)
		return -ENOMEM;
	series->started_ns = clock_wall_ns();
	series->bytes = bytes;
	*ret_series = series;
	return 0;
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
/* Minimum of points of a service: a minute. */
#define FEWEST_POINTS 60U

static size_t most_points(const struct model_series *series, size_t services)
{
	uint64_t most = series->bytes / POINT_BYTES / (services ? services : 1);

	if (most < FEWEST_POINTS)
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

int model_series_point(struct model_series *series, const struct run *base, const struct run *last,
		       const struct run *now)
{
	for (size_t i = 0; i < now->service_count; i++) {
		struct of_service *entry = find(series, &now->services[i]);

		if (!entry)
			entry = add(series, &now->services[i]);
		if (entry)
			run_series_limit(entry->series, most_points(series, series->count));
		if (!entry || add_point(entry->series, base, last, now, &now->services[i]))
			return -ENOMEM;
	}
	return 0;
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
