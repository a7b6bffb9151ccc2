// SPDX-License-Identifier: MIT
/* The figures of two runs to compare, and the test for a difference; see sojourn/compare.h. */
#include "sojourn/compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/report.h"
#include "sojourn/sweep.h"

struct value {
	double value;
	bool first; /* belongs to the first sample */
};

static int by_value(const void *a, const void *b)
{
	const struct value *one = a, *other = b;

	return (one->value > other->value) - (one->value < other->value);
}

/* Return the first sample's rank sum; equal values share ranks. @ret_ties: the sum of t³ − t. */
static double sum_ranks(const struct value *values, size_t count, double *ret_ties)
{
	double sum = 0, ties = 0;

	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && values[end].value == values[i].value;)
			end++;
		for (size_t k = i; k < end; k++)
			if (values[k].first)
				sum += (double)(i + 1 + end) / 2;
		ties += pow((double)(end - i), 3) - (double)(end - i);
	}
	*ret_ties = ties;
	return sum;
}

static double p_of_ranks(double rank_sum, double ties, double n, double m)
{
	double total = n + m, u = rank_sum - n * (n + 1) / 2;
	double variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)));
	double distance = fabs(u - n * m / 2) - 0.5;

	if (!(variance > 0) || distance <= 0)
		return 1;
	return erfc(distance / sqrt(variance) / M_SQRT2);
}

int compare_rank_sum(const double *a, size_t a_count, const double *b, size_t b_count,
		     double *ret_p_value)
{
	size_t count = a_count + b_count;
	autofree struct value *values = calloc(count, sizeof(*values));
	double ties, ranks;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		values[i] = i < a_count ? (struct value){a[i], true}
					: (struct value){b[i - a_count], false};
	qsort(values, count, sizeof(*values), by_value);
	ranks = sum_ranks(values, count, &ties);
	*ret_p_value = p_of_ranks(ranks, ties, (double)a_count, (double)b_count);
	return 0;
}

static struct run_ratio known(double value)
{
	return (struct run_ratio){.known = true, .value = value};
}

static struct run_ratio known_if(bool condition, double value)
{
	return condition ? known(value) : (struct run_ratio){0};
}

const struct run_service *compare_service(const struct run *run)
{
	const struct run_service *busiest = NULL;

	if (run->driver)
		return report_driven_service(run);
	for (size_t i = 0; i < run->service_count; i++)
		if (!busiest || run->services[i].exchanges > busiest->exchanges)
			busiest = &run->services[i];
	return busiest;
}

static struct run_ratio per_second(uint64_t count, uint64_t ns)
{
	return known_if(ns, (double)count * 1e9 / (double)ns);
}

static struct run_ratio get_rate(const struct run *run, unsigned int which)
{
	(void)which;
	return run->driver ? per_second(run_driver_timely(run->driver), run->driver->duration_ns)
			   : (struct run_ratio){0};
}

static struct run_ratio get_errors(const struct run *run, unsigned int which)
{
	(void)which;
	return run->driver ? per_second(run_driver_errors(run->driver), run->driver->duration_ns)
			   : (struct run_ratio){0};
}

/* A histogram's figure: a percentile in thousandths of a per cent, or the mean. */
#define MEAN 0U

static struct run_ratio of_histogram(const struct histogram *h, unsigned int which)
{
	if (which == MEAN)
		return known_if(h->count, histogram_mean(h));
	return known_if(h->count, (double)histogram_quantile(h, which / 100000.0));
}

static struct run_ratio get_latency(const struct run *run, unsigned int which)
{
	return run->driver ? of_histogram(run_driver_latency(run->driver), which)
			   : (struct run_ratio){0};
}

static struct run_ratio get_server_rate(const struct run *run, unsigned int which)
{
	const struct run_service *service = compare_service(run);

	(void)which;
	if (!service || !service->first_message_ns)
		return (struct run_ratio){0};
	return per_second(service->exchanges, service->last_message_ns - service->first_message_ns);
}

/* @which: a stage, and above it the figure. */
#define OF_STAGE(stage, figure) ((unsigned int)(stage) | (figure) << 4)

static struct run_ratio get_stage(const struct run *run, unsigned int which)
{
	const struct run_service *service = compare_service(run);
	const struct run_stage *stage = service ? &service->stages[which & 15] : NULL;

	if (!stage || !stage->measured)
		return (struct run_ratio){0};
	return of_histogram(&stage->histogram, which >> 4);
}

_Static_assert(STAGE_COUNT <= 16, "OF_STAGE()");

/* A sweep's result: one value from many runs. */
static struct run_ratio get_plateau(const struct run *run, unsigned int which)
{
	(void)which;
	return known_if(run->sweep && run->sweep->plateau.known,
			run->sweep ? (double)run->sweep->plateau.value : 0);
}

static struct run_ratio get_knee(const struct run *run, unsigned int which)
{
	(void)which;
	return known_if(run->sweep && run->sweep->knee.known,
			run->sweep ? (double)run->sweep->knee.value : 0);
}

static struct run_ratio get_three_quarters(const struct run *run, unsigned int which)
{
	return run->sweep && run->sweep->three_quarters
		       ? of_histogram(&run->sweep->three_quarters->latency, which)
		       : (struct run_ratio){0};
}

static struct run_ratio of_interval_rate(const struct run_interval *interval, unsigned int which)
{
	(void)which;
	return per_second(interval->requests, interval->duration_ns);
}

static struct run_ratio of_interval_errors(const struct run_interval *interval, unsigned int which)
{
	(void)which;
	return per_second(interval->errors, interval->duration_ns);
}

static struct run_ratio of_interval_latency(const struct run_interval *interval, unsigned int which)
{
	return of_histogram(&interval->latency, which);
}

struct figure {
	const char *label;
	const char *unit;
	bool lower_is_better;
	unsigned int which;
	struct run_ratio (*get)(const struct run *run, unsigned int which);
	/* The figure of one interval; NULL: intervals lack it. */
	struct run_ratio (*interval)(const struct run_interval *interval, unsigned int which);
};

static const struct figure figures[] = {
	{"requests/s, client", "/s", false, 0, get_rate, of_interval_rate},
	{"errors/s", "/s", true, 0, get_errors, of_interval_errors},
	{"latency, mean", "ns", true, MEAN, get_latency, of_interval_latency},
	{"latency, p50", "ns", true, 50000, get_latency, of_interval_latency},
	{"latency, p99", "ns", true, 99000, get_latency, of_interval_latency},
	{"latency, p99.9", "ns", true, 99900, get_latency, NULL},
	{"requests/s, server", "/s", false, 0, get_server_rate, NULL},
	{"socket queue, mean", "ns", true, OF_STAGE(STAGE_SOCKET_QUEUE, MEAN), get_stage, NULL},
	{"socket queue, p99", "ns", true, OF_STAGE(STAGE_SOCKET_QUEUE, 99000), get_stage, NULL},
	{"service, mean", "ns", true, OF_STAGE(STAGE_SERVICE, MEAN), get_stage, NULL},
	{"service, p99", "ns", true, OF_STAGE(STAGE_SERVICE, 99000), get_stage, NULL},
	{"respond, mean", "ns", true, OF_STAGE(STAGE_RESPOND, MEAN), get_stage, NULL},
	{"plateau", "/s", false, 0, get_plateau, NULL},
	{"knee", "", false, 0, get_knee, NULL},
	{"p50 at 75 %", "ns", true, 50000, get_three_quarters, NULL},
	{"p99 at 75 %", "ns", true, 99000, get_three_quarters, NULL},
};

/* Collect @figure of every full interval; the last one is mostly shorter. */
static size_t collect(const struct run *run, const struct figure *figure, double *values)
{
	const struct run_driver *driver = run->driver;
	size_t count = 0;

	for (size_t i = 0; driver && i < driver->interval_count; i++) {
		struct run_ratio value = figure->interval(&driver->intervals[i], figure->which);

		if (value.known && driver->intervals[i].duration_ns >= driver->interval_ns)
			values[count++] = value.value;
	}
	return count;
}

static int test_intervals(const struct run *first, const struct run *run,
			  const struct figure *figure, struct compare_side *side)
{
	double a[RUN_INTERVALS_MAX], b[RUN_INTERVALS_MAX];
	size_t a_count, b_count;
	int r;

	side->reason = "not kept by interval";
	if (!figure->interval)
		return 0;
	a_count = collect(first, figure, a);
	b_count = collect(run, figure, b);
	side->reason = "fewer than 8 intervals";
	if (a_count < COMPARE_INTERVALS || b_count < COMPARE_INTERVALS)
		return 0;
	r = compare_rank_sum(a, a_count, b, b_count, &side->p_value.value);
	side->p_value.known = !r;
	side->of_intervals = true;
	side->reason = NULL;
	return r;
}

_Static_assert(COMPARE_INTERVALS == 8, "the reason in test_intervals()");

/* A figure of each run of a group, in ascending order. */
struct sample {
	const struct compare_group *group;
	double *values; /* NULL: a run lacks it */
};

static void free_sample(struct sample *sample)
{
	free(sample->values);
}

static int by_number(const void *a, const void *b)
{
	const double *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int get_sample(const struct compare_group *group, const struct figure *figure,
		      struct sample *ret_sample)
{
	autofree double *values = calloc(group->count, sizeof(*values));

	if (!values)
		return -ENOMEM;
	*ret_sample = (struct sample){.group = group};
	for (size_t i = 0; i < group->count; i++) {
		struct run_ratio value = figure->get(group->runs[i], figure->which);

		if (!value.known)
			return 0;
		values[i] = value.value;
	}
	qsort(values, group->count, sizeof(*values), by_number);
	ret_sample->values = TAKE_PTR(values);
	return 0;
}

static struct run_ratio median_of(const struct sample *sample)
{
	size_t count = sample->group->count;

	return sample->values
		       ? known((sample->values[(count - 1) / 2] + sample->values[count / 2]) / 2)
		       : (struct run_ratio){0};
}

static int test(const struct sample *first, const struct sample *other, const struct figure *figure,
		struct compare_side *side)
{
	size_t a_count = first->group->count, b_count = other->group->count;
	int r;

	if (a_count == 1 && b_count == 1)
		return test_intervals(first->group->runs[0], other->group->runs[0], figure, side);
	side->reason = "fewer than 6 runs";
	if (a_count < COMPARE_RUNS || b_count < COMPARE_RUNS)
		return 0;
	r = compare_rank_sum(first->values, a_count, other->values, b_count, &side->p_value.value);
	side->p_value.known = !r;
	side->reason = NULL;
	return r;
}

_Static_assert(COMPARE_RUNS == 6, "the reason in test()");

static int compare_side(const struct sample *first, const struct compare_group *group,
			const struct figure *figure, const struct compare_row *row,
			struct compare_side *side)
{
	CLEANUP(free_sample) struct sample other = {0};
	int r = get_sample(group, figure, &other);

	if (r)
		return r;
	side->value = median_of(&other);
	if (!row->first.known || !side->value.known) {
		side->reason = "only one of them has it";
		return 0;
	}
	if (row->first.value > 0)
		side->change = known((side->value.value - row->first.value) / row->first.value);
	return test(first, &other, figure, side);
}

static int compare_row(struct compare_row *row, const struct compare *compare,
		       const struct figure *figure)
{
	CLEANUP(free_sample) struct sample first = {0};
	int r = get_sample(&compare->groups[0], figure, &first);

	*row = (struct compare_row){
		.label = figure->label,
		.unit = figure->unit,
		.lower_is_better = figure->lower_is_better,
		.sides = calloc(compare->side_count + 1, sizeof(*row->sides)),
	};
	if (r || !row->sides)
		return -ENOMEM;
	row->first = median_of(&first);
	for (size_t i = 0; i < compare->side_count && !r; i++)
		r = compare_side(&first, &compare->groups[i + 1], figure, row, &row->sides[i]);
	return r;
}

static void group_runs(struct compare *compare, struct run *const *runs, const char *const *names,
		       size_t count)
{
	struct compare_group *last = NULL;

	for (size_t i = 0; i < count; i++) {
		if (last && !strcmp(last->name, names[i])) {
			last->count++;
			continue;
		}
		last = last ? last + 1 : compare->groups;
		*last = (struct compare_group){names[i], &runs[i], 1};
	}
	compare->side_count = last ? (size_t)(last - compare->groups) : 0;
}

char *compare_run_name(const char *const *names, size_t count, size_t i)
{
	size_t all = 0, place = 0;
	char *name;

	for (size_t k = 0; k < count; k++) {
		all += !strcmp(names[k], names[i]);
		place = k == i ? all : place;
	}
	if (all == 1)
		return strdup(names[i]);
	return asprintf(&name, "%s, %zu of %zu", names[i], place, all) < 0 ? NULL : name;
}

struct compare *compare_runs(struct run *const *runs, const char *const *names, size_t count)
{
	autocompare struct compare *compare = calloc(1, sizeof(*compare));

	if (!compare)
		return NULL;
	compare->groups = calloc(count, sizeof(*compare->groups));
	compare->rows = calloc(ARRAY_SIZE(figures), sizeof(*compare->rows));
	if (!compare->groups || !compare->rows)
		return NULL;
	group_runs(compare, runs, names, count);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		bool known = false;

		for (size_t k = 0; k < count; k++)
			known |= figures[i].get(runs[k], figures[i].which).known;
		if (!known)
			continue;
		if (compare_row(&compare->rows[compare->row_count++], compare, &figures[i]))
			return NULL;
	}
	return TAKE_PTR(compare);
}

void compare_free(struct compare *compare)
{
	for (size_t i = 0; i < compare->row_count; i++)
		free(compare->rows[i].sides);
	free(compare->rows);
	free(compare->groups);
	free(compare);
}
