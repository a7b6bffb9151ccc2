// SPDX-License-Identifier: MIT
/* Rules about a service's series: points without gaps, whose counts sum to the period's. */
#include "rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"

#include "sojourn/series.h"

static bool has_series(const struct run_service *service)
{
	return service->series && service->series->count;
}

static uint64_t end_of(const struct run_point *point)
{
	return point->begin_ns + point->duration_ns;
}

/* A series may begin late, with its service; each of several observers has its own period. */
void check_series_tiled(struct checking *checking, const struct run_service *service,
			const char *place)
{
	const struct run_point *points;
	size_t count;

	if (!has_series(service))
		return;
	points = service->series->points;
	count = service->series->count;
	for (size_t i = 1; i < count; i++)
		check_same(checking, place, "the begin of a point", points[i].begin_ns,
			   "the end of the one before", end_of(&points[i - 1]));
	check_at_most(checking, place, "the end of the series", end_of(&points[count - 1]),
		      "duration_ns", checking->run->duration_ns);
}

/* A count of the service and of its points. */
struct total {
	const char *name;
	size_t service, point;
};

#define TOTAL(member) \
	{#member, offsetof(struct run_service, member), offsetof(struct run_point, member)}
static const struct total totals[] = {
	TOTAL(accepted),  TOTAL(exchanges),   TOTAL(bytes_in),
	TOTAL(bytes_out), TOTAL(retransmits), TOTAL(time_wait_created),
};
#undef TOTAL

static uint64_t sum_of(const struct run_series *series, size_t offset)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < series->count; i++)
		sum += *(const uint64_t *)((const char *)&series->points[i] + offset);
	return sum;
}

/* Return whether every point knows the value. */
static bool is_known(const struct run_series *series, uint32_t bit)
{
	for (size_t i = 0; i < series->count; i++)
		if (!(series->points[i].known & bit))
			return false;
	return true;
}

static void same_sum(struct checking *checking, const char *place, const char *name,
		     const struct run_series *series, size_t offset, uint64_t total)
{
	char sum_name[CHECK_PLACE];

	snprintf(sum_name, sizeof(sum_name), "the sum of series.%s", name);
	check_same(checking, place, sum_name, sum_of(series, offset), "that of the period", total);
}

/*
 * At the end of a document, unanswered datagrams count as `unanswered`, and doubtful replies as
 * `untimed`: earlier points do not include them.
 */
static bool is_concluded(const struct run_service *service, enum run_loss loss)
{
	return !strcmp(service->protocol, "udp") &&
	       (loss == RUN_LOSS_UNANSWERED || loss == RUN_LOSS_UNTIMED);
}

static void same_kinds(struct checking *checking, const struct run_service *service,
		       const char *place)
{
	const struct run_series *series = service->series;

	for (unsigned int i = 0; i < RUN_CLOSE_COUNT; i++)
		same_sum(checking, place, run_close_names[i], series,
			 offsetof(struct run_point, closes) + i * sizeof(uint64_t),
			 service->closes[i]);
	for (unsigned int i = 0; i < RUN_LOSS_COUNT; i++) {
		size_t offset = offsetof(struct run_point, losses) + i * sizeof(uint64_t);

		if (!is_concluded(service, i))
			same_sum(checking, place, run_loss_names[i], series, offset,
				 service->losses[i]);
		else
			check_at_most(checking, place, run_loss_names[i], sum_of(series, offset),
				      "that of the period", service->losses[i]);
	}
}

static void same_stages(struct checking *checking, const struct run_service *service,
			const char *place)
{
	const struct run_series *series = service->series;
	char name[CHECK_PLACE];

	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		size_t at = offsetof(struct run_point, stages) + i * sizeof(struct run_point_stage);
		const struct histogram *h = &service->stages[i].histogram;

		if (!service->stages[i].measured || !is_known(series, RUN_POINT_STAGE(i)))
			continue;
		snprintf(name, sizeof(name), "stages.%s.count", run_stage_names[i]);
		same_sum(checking, place, name, series,
			 at + offsetof(struct run_point_stage, count), h->count);
		snprintf(name, sizeof(name), "stages.%s.sum_ns", run_stage_names[i]);
		same_sum(checking, place, name, series,
			 at + offsetof(struct run_point_stage, sum_ns), h->sum);
	}
}

static void same_cpu(struct checking *checking, const struct run_service *service,
		     const char *place)
{
	const struct run_series *series = service->series;
	char name[CHECK_PLACE];

	if (!service->cpu[RUN_CPU_RUNNING].measured || !is_known(series, RUN_POINT_CPU))
		return;
	same_sum(checking, place, "cpu.count", series, offsetof(struct run_point, cpu.count),
		 service->cpu[RUN_CPU_RUNNING].histogram.count);
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++) {
		snprintf(name, sizeof(name), "cpu.%s_ns", run_cpu_names[i]);
		same_sum(checking, place, name, series,
			 offsetof(struct run_point, cpu.sum_ns) + i * sizeof(uint64_t),
			 service->cpu[i].histogram.sum);
	}
}

void check_series_sums(struct checking *checking, const struct run_service *service,
		       const char *place)
{
	const struct run_number *overflows = &service->accept_queue.overflows;

	if (!has_series(service))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++)
		same_sum(checking, place, totals[i].name, service->series, totals[i].point,
			 *(const uint64_t *)((const char *)service + totals[i].service));
	same_kinds(checking, service, place);
	same_stages(checking, service, place);
	same_cpu(checking, service, place);
	if (overflows->known && is_known(service->series, RUN_POINT_OVERFLOWS))
		same_sum(checking, place, "overflows", service->series,
			 offsetof(struct run_point, overflows), overflows->value);
}

/* A histogram's percentiles ascend by construction; a point has two written ones. */
void check_series_percentiles(struct checking *checking, const struct run_service *service,
			      const char *place)
{
	char name[CHECK_PLACE];

	for (size_t i = 0; has_series(service) && i < service->series->count; i++)
		for (unsigned int stage = 0; stage < STAGE_COUNT; stage++) {
			const struct run_point *point = &service->series->points[i];

			if (!(point->known & RUN_POINT_QUANTILE(stage)))
				continue;
			snprintf(name, sizeof(name), "%.80s, series.stages.%s[%zu]", place,
				 run_stage_names[stage], i);
			check_at_most(checking, name, "p50_ns", point->stages[stage].p50_ns,
				      "p99_ns", point->stages[stage].p99_ns);
		}
}
