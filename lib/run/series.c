// SPDX-License-Identifier: MIT
/* A service's history in memory, kept short. JSON: json/series.c. */
#include "sojourn/series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/run_sum.h"

struct run_series *run_series_new(void)
{
	return calloc(1, sizeof(struct run_series));
}

void run_series_free(struct run_series *series)
{
	if (!series)
		return;
	free(series->points);
	free(series);
}

struct run_series *run_series_copy(const struct run_series *series)
{
	CLEANUP(cleanup_run_series_free) struct run_series *copy = run_series_new();

	if (!copy)
		return NULL;
	copy->points = calloc(series->count + 1, sizeof(*copy->points));
	if (!copy->points)
		return NULL;
	copy->started_ns = series->started_ns;
	copy->count = series->count;
	copy->capacity = series->count + 1;
	if (series->count)
		memcpy(copy->points, series->points, series->count * sizeof(*copy->points));
	return TAKE_PTR(copy);
}

/* Percentiles of two points cannot be combined, unless only one had exchanges. */
static void join_stage(struct run_point *both, const struct run_point *a, const struct run_point *b,
		       unsigned int stage)
{
	const struct run_point_stage *x = &a->stages[stage], *y = &b->stages[stage];
	uint32_t quantile = RUN_POINT_QUANTILE(stage);

	both->stages[stage] = x->count ? *x : *y;
	both->stages[stage].count = x->count + y->count;
	both->stages[stage].sum_ns = x->sum_ns + y->sum_ns;
	both->known |= a->known & RUN_POINT_STAGE(stage);
	both->known &= ~quantile;
	if (x->count && y->count)
		both->stages[stage].p50_ns = both->stages[stage].p99_ns = 0;
	else
		both->known |= (x->count ? a : b)->known & quantile;
}

/* Optional counts of some kernels or observations: unknown unless both points have them. */
static void join_optional(struct run_point *both, const struct run_point *a)
{
	both->overflows += a->overflows;
	both->cpu.count += a->cpu.count;
	run_counts_add(both->cpu.sum_ns, a->cpu.sum_ns, RUN_CPU_COUNT);
	both->known &= a->known | ~(uint32_t)(RUN_POINT_OVERFLOWS | RUN_POINT_CPU);
	if (!(both->known & RUN_POINT_OVERFLOWS))
		both->overflows = 0;
	if (!(both->known & RUN_POINT_CPU))
		both->cpu = (struct run_point_cpu){0};
}

void run_point_join(struct run_point *point, const struct run_point *later)
{
	struct run_point both = *later;

	both.begin_ns = point->begin_ns;
	both.duration_ns += point->duration_ns;
	both.accepted += point->accepted;
	both.exchanges += point->exchanges;
	both.bytes_in += point->bytes_in;
	both.bytes_out += point->bytes_out;
	both.retransmits += point->retransmits;
	both.resets += point->resets;
	both.time_wait_created += point->time_wait_created;
	run_counts_add(both.closes, point->closes, RUN_CLOSE_COUNT);
	run_counts_add(both.losses, point->losses, RUN_LOSS_COUNT);
	join_optional(&both, point);
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		join_stage(&both, point, later, i);
	*point = both;
}

static void halve(struct run_series *series)
{
	size_t count = series->count;

	for (size_t i = 0; i < count; i += 2) {
		series->points[i / 2] = series->points[i];
		if (i + 1 < count)
			run_point_join(&series->points[i / 2], &series->points[i + 1]);
	}
	series->count = count / 2 + count % 2;
}

/* Without memory for a smaller array the old one stays. */
static void shrink(struct run_series *series, size_t capacity)
{
	struct run_point *points = reallocarray(series->points, capacity, sizeof(*points));

	if (!points)
		return;
	series->points = points;
	series->capacity = capacity;
}

void run_series_limit(struct run_series *series, size_t most)
{
	while (series->count >= most && series->count > 1)
		halve(series);
	if (series->capacity > 2 * most && series->capacity > series->count + 1)
		shrink(series, most > series->count ? most : series->count + 1);
}

int run_series_add(struct run_series *series, const struct run_point *point)
{
	if (series->count == RUN_SERIES_MAX)
		halve(series);
	if (series->count == series->capacity) {
		size_t capacity = series->capacity ? 2 * series->capacity : 2;
		void *grown = reallocarray(series->points, capacity, sizeof(*point));

		if (!grown)
			return -ENOMEM;
		series->points = grown;
		series->capacity = capacity;
	}
	series->points[series->count++] = *point;
	return 0;
}

static void set_gauge(const struct run_number *number, enum run_point_value value,
		      uint64_t *ret_value, uint32_t *known)
{
	if (!number->known)
		return;
	*ret_value = number->value;
	*known |= value;
}

static struct run_number open_fds(const struct run_service *service)
{
	struct run_number sum = {.known = service->process_count > 0};

	for (size_t i = 0; i < service->process_count; i++) {
		sum.known &= service->processes[i].open_fds.known;
		sum.value += service->processes[i].open_fds.value;
	}
	return sum;
}

static void set_state(const struct run_service *now, struct run_point *point)
{
	struct run_number fds = open_fds(now);

	set_gauge(&now->connections, RUN_POINT_CONNECTIONS, &point->connections, &point->known);
	set_gauge(&now->time_wait, RUN_POINT_TIME_WAIT, &point->time_wait, &point->known);
	set_gauge(&now->accept_queue.depth, RUN_POINT_DEPTH, &point->depth, &point->known);
	set_gauge(&now->accept_queue.depth_max, RUN_POINT_DEPTH_MAX, &point->depth_max,
		  &point->known);
	set_gauge(&now->min_rtt_ns, RUN_POINT_MIN_RTT, &point->min_rtt_ns, &point->known);
	set_gauge(&fds, RUN_POINT_FDS, &point->fds, &point->known);
	set_gauge(&now->srtt_ns, RUN_POINT_SRTT, &point->srtt_ns, &point->known);
	set_gauge(&now->ports.used, RUN_POINT_PORTS, &point->ports, &point->known);
	set_gauge(&now->open.read, RUN_POINT_OPEN, &point->open, &point->known);
	point->open += now->open.unread.value;
	point->open_oldest_ns = now->open.oldest_ns.value;
}

/* While an exchange moves between buckets, a reading may have one less than the previous. */
static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void set_stage(const struct run_stage *before, const struct run_stage *now,
		      unsigned int stage, struct run_point *point)
{
	struct histogram h;

	if (!now->measured)
		return;
	point->known |= RUN_POINT_STAGE(stage);
	point->stages[stage] = (struct run_point_stage){
		.count = since(now->histogram.count, before ? before->histogram.count : 0),
		.sum_ns = since(now->histogram.sum, before ? before->histogram.sum : 0),
	};
	if (!point->stages[stage].count)
		return;
	h = now->histogram;
	if (before)
		histogram_subtract(&h, &before->histogram);
	point->known |= RUN_POINT_QUANTILE(stage);
	point->stages[stage].p50_ns = histogram_quantile(&h, 0.5);
	point->stages[stage].p99_ns = histogram_quantile(&h, 0.99);
}

static void set_counts(const uint64_t *before, const uint64_t *now, size_t count,
		       uint64_t *ret_counts)
{
	for (size_t i = 0; i < count; i++)
		ret_counts[i] = since(now[i], before ? before[i] : 0);
}

static void set_overflows(const struct run_service *before, const struct run_service *now,
			  struct run_point *point)
{
	struct run_number overflows = now->accept_queue.overflows;

	if (!overflows.known || (before && !before->accept_queue.overflows.known))
		return;
	point->known |= RUN_POINT_OVERFLOWS;
	point->overflows =
		since(overflows.value, before ? before->accept_queue.overflows.value : 0);
}

/* All parts are known or none. */
static void set_cpu(const struct run_stage *before, const struct run_stage *now,
		    struct run_point *point)
{
	const struct histogram *running = &now[RUN_CPU_RUNNING].histogram;

	if (!now[RUN_CPU_RUNNING].measured)
		return;
	point->known |= RUN_POINT_CPU;
	point->cpu.count =
		since(running->count, before ? before[RUN_CPU_RUNNING].histogram.count : 0);
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		point->cpu.sum_ns[i] =
			since(now[i].histogram.sum, before ? before[i].histogram.sum : 0);
}

static uint64_t resets(const struct run_service *service)
{
	return service->closes[RUN_RESET_BY_SERVER] + service->closes[RUN_RESET_BY_CLIENT];
}

void run_point_between(const struct run_service *before, const struct run_service *now,
		       struct run_point *ret_point)
{
	struct run_point point = {
		.accepted = now->accepted - (before ? before->accepted : 0),
		.exchanges = now->exchanges - (before ? before->exchanges : 0),
		.bytes_in = now->bytes_in - (before ? before->bytes_in : 0),
		.bytes_out = now->bytes_out - (before ? before->bytes_out : 0),
		.retransmits = now->retransmits - (before ? before->retransmits : 0),
		.resets = resets(now) - (before ? resets(before) : 0),
		.time_wait_created =
			now->time_wait_created - (before ? before->time_wait_created : 0),
	};

	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		set_stage(before ? &before->stages[i] : NULL, &now->stages[i], i, &point);
	set_counts(before ? before->closes : NULL, now->closes, RUN_CLOSE_COUNT, point.closes);
	set_counts(before ? before->losses : NULL, now->losses, RUN_LOSS_COUNT, point.losses);
	set_overflows(before, now, &point);
	set_cpu(before ? before->cpu : NULL, now->cpu, &point);
	set_state(now, &point);
	*ret_point = point;
}
