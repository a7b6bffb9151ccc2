// SPDX-License-Identifier: MIT
/* lib/run/merge*.c, lib/run/intervals.c: documents merged, and refusals. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/run.h"
#include "sojourn/shared.h"
#include "support/runs.h"

#define SECOND NSEC_PER_SEC
#define EPOCH  (1795248000 * SECOND)

static void check_merged(const struct run *run)
{
	assert_non_null(run->driver);
	assert_non_null(run->cost);
	assert_int_equal(run->service_count, 1);
	assert_string_equal(run->host, "server");
	assert_string_equal(run->driver->host, "client");
	assert_string_equal(run->tool, "sojourn 0.1.0 + sojourn-drive 0.1.0");
	assert_int_equal(run->duration_ns, 2100000000);
}

static void rename_host(struct run *run, const char *host)
{
	free(run->host);
	run->host = strdup(host);
}

static void merge(struct run *run, struct run *other)
{
	autofree char *error = NULL;

	if (run_merge(run, other, &error))
		fail_msg("refused: %s", error ? error : "without memory");
	assert_null(error);
}

static void expect_refusal(struct run *run, struct run *other, const char *first,
			   const char *second)
{
	autofree char *error = NULL;

	assert_int_equal(run_merge(run, other, &error), -EINVAL);
	if (!strstr(error, first) || !strstr(error, second))
		fail_msg("'%s' lacks '%s' or '%s'", error, first, second);
}

static void merge_works_either_way(void **state)
{
	autorun struct run *observer = support_observer_run(), *driver = support_driver_run();
	autorun struct run *other_observer = support_observer_run();
	autorun struct run *other_driver = support_driver_run();

	rename_host(driver, "client");
	rename_host(other_driver, "client");
	merge(driver, observer);
	check_merged(driver);
	assert_null(observer->cost);
	assert_int_equal(observer->service_count, 0);

	merge(other_observer, other_driver);
	check_merged(other_observer);
	assert_null(other_driver->driver);
}

/* Make a driver's document; @begin_s and @duration_s of its measured phase, in intervals of 1 s. */
static struct run *driver_run(const char *host, unsigned int begin_s, unsigned int duration_s)
{
	struct run *run = support_driver_run();
	struct run_driver *driver = run->driver;

	rename_host(run, host);
	driver->begin_ns = EPOCH + begin_s * SECOND;
	driver->duration_ns = duration_s * SECOND;
	driver->processes = 1;
	driver->interval_ns = SECOND;
	driver->interval_count = duration_s;
	driver->intervals = calloc(duration_s, sizeof(*driver->intervals));
	assert_non_null(driver->intervals);
	for (size_t i = 0; i < duration_s; i++) {
		driver->intervals[i].begin_ns = i * SECOND;
		driver->intervals[i].duration_ns = SECOND;
	}
	return run;
}

/* Add a response at @at_s of the driver's own time. */
static void respond(struct run *run, double at_s, uint64_t latency_ns)
{
	struct run_driver *driver = run->driver;
	struct run_interval *interval = &driver->intervals[(size_t)at_s];

	driver->requests++;
	driver->status[2]++;
	histogram_record(&driver->round_trip, latency_ns);
	interval->requests++;
	histogram_record(&interval->latency, latency_ns);
}

static void clear_counts(struct run_driver *driver)
{
	driver->requests = 0;
	driver->status[2] = 0;
	driver->round_trip = (struct histogram){0};
}

static uint64_t sum_of_requests(const struct run_driver *driver)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < driver->interval_count; i++)
		sum += driver->intervals[i].requests;
	return sum;
}

/* Three drivers record together what one would record alone. */
static void drivers_add_exactly(void **state)
{
	autorun struct run *all = driver_run("a", 0, 4);
	struct run *parts[3];
	uint64_t random = 88172645463325252ULL;

	clear_counts(all->driver);
	for (unsigned int i = 0; i < 3; i++) {
		parts[i] = driver_run((const char *const[]){"a", "b", "c"}[i], 0, 4);
		clear_counts(parts[i]->driver);
	}
	for (unsigned int i = 0; i < 10000; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		respond(all, (double)(i % 4), random >> 40);
		respond(parts[i % 3], (double)(i % 4), random >> 40);
	}
	parts[1]->driver->errors[RUN_ERROR_RESET] = 5;
	parts[2]->driver->errors[RUN_ERROR_RESET] = 7;
	merge(parts[0], parts[1]);
	merge(parts[0], parts[2]);

	assert_int_equal(parts[0]->driver->requests, 10000);
	assert_int_equal(parts[0]->driver->status[2], 10000);
	assert_int_equal(parts[0]->driver->errors[RUN_ERROR_RESET], 12);
	assert_memory_equal(&parts[0]->driver->round_trip, &all->driver->round_trip,
			    sizeof(struct histogram));
	assert_int_equal(parts[0]->driver->interval_count, 4);
	assert_memory_equal(parts[0]->driver->intervals, all->driver->intervals,
			    4 * sizeof(struct run_interval));
	assert_int_equal(parts[0]->driver->connections, 3 * 64);
	assert_int_equal(parts[0]->driver->threads, 3 * 2);
	assert_int_equal(parts[0]->driver->processes, 3);
	assert_int_equal(parts[0]->driver->duration_ns, 4 * SECOND);
	assert_null(parts[0]->host);
	assert_null(parts[0]->driver->host);
	assert_string_equal(parts[0]->driver->target, "http://127.0.0.1:8080/");
	for (unsigned int i = 0; i < 3; i++)
		run_free(parts[i]);
}

/* A driver that sends @rate requests in each second. */
static struct run *steady_run(const char *host, unsigned int begin_s, unsigned int duration_s,
			      unsigned int rate)
{
	struct run *run = driver_run(host, begin_s, duration_s);

	clear_counts(run->driver);
	for (unsigned int i = 0; i < duration_s * rate; i++)
		respond(run, (double)i / rate, 1000);
	return run;
}

static void check_shared(const struct run *run, unsigned int seconds, uint64_t requests)
{
	const struct run_shared shared = run_driver_shared(run->driver);

	assert_true(shared.apart);
	assert_int_equal(shared.known, seconds > 0);
	assert_int_equal(shared.duration_ns, seconds * SECOND);
	assert_int_equal(shared.requests, requests);
}

static void the_time_that_all_share(void **state)
{
	autorun struct run *a = steady_run("a", 2, 4, 100), *b = steady_run("b", 3, 5, 10);
	autorun struct run *c = steady_run("c", 2, 2, 1), *d = steady_run("d", 9, 1, 1);
	autorun struct run *together = steady_run("a", 2, 4, 100);
	autorun struct run *other = steady_run("b", 2, 4, 10);
	autorun struct run *lost = steady_run("a", 2, 4, 100), *late = steady_run("b", 2, 4, 10);
	autorun struct run *first = steady_run("a", 2, 4, 100);

	assert_false(run_driver_shared(a->driver).apart);
	merge(together, other);
	assert_false(run_driver_shared(together->driver).apart);
	merge(a, b);
	check_shared(a, 3, 330); /* 3 … 6 */
	merge(a, c);
	check_shared(a, 1, 111); /* 3 … 4 */
	merge(a, d);
	check_shared(a, 0, 0);
	lost->driver->interval_count = 0;
	lost->driver->duration_ns = SECOND;
	late->driver->begin_ns += SECOND / 20;
	merge(first, late);
	check_shared(first, 0, 0); /* their intervals do not begin together */
	merge(first, lost);
	check_shared(first, 0, 0);
}

static void waiting_for_a_cpu_adds_if_all_know_it(void **state)
{
	autorun struct run *first = driver_run("a", 0, 1), *second = driver_run("b", 0, 1),
			   *silent = driver_run("c", 0, 1);

	first->driver->cpu_wait_ns = (struct run_number){true, 5};
	second->driver->cpu_wait_ns = (struct run_number){true, 7};
	silent->driver->cpu_wait_ns = (struct run_number){0};
	merge(first, second);
	assert_true(first->driver->cpu_wait_ns.known);
	assert_int_equal(first->driver->cpu_wait_ns.value, 12);
	merge(first, silent);
	assert_false(first->driver->cpu_wait_ns.known);
}

static void the_parts_remain(void **state)
{
	autorun struct run *a = driver_run("a", 5, 4), *b = driver_run("b", 3, 4);
	autorun struct run *c = driver_run("c", 20, 2);
	const struct run_driver *driver = a->driver;

	b->driver->requests = 77;
	free(b->driver->target);
	b->driver->target = strdup("http://127.0.0.1:8081/");
	merge(a, b);
	merge(a, c);
	assert_int_equal(driver->part_count, 3);
	assert_string_equal(driver->parts[0].host, "b");
	assert_int_equal(driver->parts[0].requests, 77);
	assert_string_equal(driver->parts[0].target, "http://127.0.0.1:8081/");
	assert_string_equal(driver->parts[1].host, "a");
	assert_int_equal(driver->parts[1].latency.count, 1000);
	assert_string_equal(driver->parts[2].host, "c");
	assert_null(driver->target);
	/* 3 … 9 and 20 … 22: at least one of them measured for 8 s. */
	assert_int_equal(driver->duration_ns, 8 * SECOND);
	assert_int_equal(driver->begin_ns, EPOCH + 3 * SECOND);
	assert_int_equal(driver->interval_count, 19);
}

/* Intervals move to their time; no count is lost. */
static void intervals_are_aligned(void **state)
{
	autorun struct run *a = driver_run("a", 0, 3), *b = driver_run("b", 2, 3);

	b->driver->begin_ns -= SECOND * 4 / 10; /* 1.6 s: nearest to the third */
	respond(a, 2, 1000);
	respond(b, 0, 2000);
	respond(b, 2, 3000);
	merge(b, a);
	assert_int_equal(b->driver->interval_count, 5);
	assert_int_equal(b->driver->intervals[2].requests, 2);
	assert_int_equal(b->driver->intervals[2].latency.sum, 3000);
	assert_int_equal(b->driver->intervals[4].requests, 1);
	assert_int_equal(b->driver->intervals[4].begin_ns, 4 * SECOND);
	assert_int_equal(sum_of_requests(b->driver), 3);
}

static void intervals_of_other_lengths_are_joined(void **state)
{
	autorun struct run *a = driver_run("a", 0, 5), *b = driver_run("b", 0, 3);
	autorun struct run *odd = driver_run("c", 0, 5);

	b->driver->interval_ns = 2 * SECOND;
	for (size_t i = 0; i < 3; i++)
		b->driver->intervals[i].begin_ns *= 2;
	for (unsigned int i = 0; i < 5; i++)
		respond(a, i, 1000);
	respond(b, 1, 1000);
	odd->driver->interval_ns = 3 * SECOND;
	merge(a, b);
	assert_int_equal(a->driver->interval_ns, 2 * SECOND);
	assert_int_equal(a->driver->interval_count, 3);
	assert_int_equal(a->driver->intervals[1].requests, 3);
	assert_int_equal(sum_of_requests(a->driver), 6);
	expect_refusal(a, odd, "driver.interval_ns", "2000000000 and 3000000000");
}

/* Hours apart: intervals become longer, and no more than a document may have. */
static void far_apart(void **state)
{
	autorun struct run *a = driver_run("a", 0, 5), *b = driver_run("b", 7200, 5);

	respond(a, 1, 1000);
	respond(b, 1, 1000);
	merge(a, b);
	assert_true(a->driver->interval_count <= RUN_INTERVALS_MAX);
	assert_int_equal(sum_of_requests(a->driver), 2);
	assert_int_equal(a->driver->duration_ns, 10 * SECOND);
}

static void failures_keep_their_time(void **state)
{
	autorun struct run *a = driver_run("a", 10, 5), *b = driver_run("b", 12, 5);

	for (unsigned int i = 0; i < 2; i++) {
		struct run_driver *driver = i ? b->driver : a->driver;

		driver->failure_count = 1;
		driver->failures = calloc(1, sizeof(*driver->failures));
		assert_non_null(driver->failures);
		driver->failures[0] = (struct run_failure){
			.kind = "reset", .count = 3, .first_ns = SECOND, .last_ns = 2 * SECOND};
	}
	merge(b, a);
	assert_int_equal(b->driver->failure_count, 1);
	assert_int_equal(b->driver->failures[0].count, 6);
	assert_int_equal(b->driver->failures[0].first_ns, SECOND);
	assert_int_equal(b->driver->failures[0].last_ns, 4 * SECOND);
}

static void what_cannot_be_merged_is_named(void **state)
{
	autorun struct run *closed = driver_run("a", 0, 2), *open = driver_run("b", 0, 2);
	autorun struct run *fresh = driver_run("c", 0, 2), *thinks = driver_run("d", 0, 2);
	autorun struct run *whole = driver_run("e", 0, 2), *timeless = driver_run("f", 0, 2);
	autorun struct run *observer = support_observer_run();

	closed->driver->arrival = strdup("closed");
	open->driver->arrival = strdup("constant");
	open->driver->rate = 7;
	expect_refusal(closed, open, "driver.arrival", "'closed' and 'constant'");
	fresh->driver->new_connections = true;
	expect_refusal(whole, fresh, "driver.new_connections", "true and false");
	thinks->driver->think_ns = 5;
	expect_refusal(whole, thinks, "driver.think_ns", "0 and 5");
	timeless->driver->begin_ns = 0;
	merge(timeless, observer);
	expect_refusal(timeless, whole, "driver.begin_ns", "missing");
}

static void other_times_are_refused(void **state)
{
	autorun struct run *early = driver_run("server", 0, 2),
			   *late = driver_run("server", 3600, 2);
	autorun struct run *far = driver_run("client", 3, 2), *again = driver_run("server", 0, 2);
	autorun struct run *observer = support_observer_run(), *same = support_observer_run();
	autofree char *error = NULL, *swapped = NULL;

	assert_int_equal(run_check_times(late, observer, &error), -EINVAL);
	assert_non_null(strstr(error, "must overlap"));
	assert_int_equal(run_check_times(observer, late, &swapped), -EINVAL);
	assert_int_equal(run_check_times(far, same, &swapped), 0);
	merge(far, same); /* the clock of another host may be as wrong */
	merge(early, observer);
	expect_refusal(early, again, "driver", "twice");
}

/* Members of a fleet on one host have equal start times, and often equal counts. */
static void runs_that_differ_in_times_alone_merge(void **state)
{
	autorun struct run *one = driver_run("server", 0, 2), *other = driver_run("server", 0, 2);
	autorun struct run *none = driver_run("server", 0, 2), *idle = driver_run("server", 0, 2);

	other->driver->round_trip.sum++;
	merge(one, other);
	assert_int_equal(one->driver->part_count, 2);
	none->driver->requests = idle->driver->requests = 0;
	merge(none, idle);
}

/* A document older than `driver.begin_ns`: the document's own time replaces it. */
static void older_documents_merge(void **state)
{
	autorun struct run *a = support_driver_run(), *b = support_driver_run();

	merge(a, b);
	assert_int_equal(a->driver->requests, 2000);
	assert_int_equal(a->driver->duration_ns, 2 * SECOND);
	assert_int_equal(a->driver->interval_count, 0);
}

static void observers_of_several_hosts(void **state)
{
	autorun struct run *a = support_observer_run(), *b = support_observer_run();
	autorun struct run *again = support_observer_run(), *driver = driver_run("client", 0, 2);

	rename_host(b, "other");
	merge(a, b);
	merge(a, driver);
	assert_int_equal(a->service_count, 2);
	assert_string_equal(a->services[0].host, "server");
	assert_string_equal(a->services[1].host, "other");
	assert_null(a->host);
	assert_string_equal(a->kernel, "6.18.0");
	assert_int_equal(a->cost->cpu_ns, 24000000);
	assert_string_equal(a->driver->host, "client");
	assert_string_equal(a->tool, "sojourn 0.1.0 + sojourn-drive 0.1.0");
	rename_host(again, "other");
	expect_refusal(a, again, "services[]", "tcp port 8080 of host other");
}

static void drift_is_a_correlation(void **state)
{
	autorun struct run *run = driver_run("a", 0, 10);
	struct run_driver *driver = run->driver;

	assert_false(run_drift(driver).known); /* no rate but 0 */
	for (size_t i = 0; i < 10; i++)
		driver->intervals[i].requests = 1000 + 10 * i;
	assert_true(fabs(run_drift(driver).value - 1) < 1e-9);
	for (size_t i = 0; i < 10; i++)
		driver->intervals[i].requests = 2000 - 10 * i;
	assert_true(fabs(run_drift(driver).value + 1) < 1e-9);
	/* A stall in the middle is no drift, and the short last interval does not count. */
	for (size_t i = 0; i < 10; i++)
		driver->intervals[i].requests = i == 4 ? 0 : 1000;
	driver->intervals[9] = (struct run_interval){.requests = 1, .duration_ns = SECOND / 9};
	assert_true(driver->interval_count == 10 && fabs(run_drift(driver).value) < 0.2);
	driver->interval_count = 2;
	assert_false(run_drift(driver).known);
}

static void sweeps_are_refused(void **state)
{
	autorun struct run *sweep = support_full_run(), *driver = support_driver_run();
	autofree char *error = NULL;

	assert_int_equal(run_merge(driver, sweep, &error), -EINVAL);
	assert_non_null(strstr(error, "sweep: "));
}

static struct run *run_with_rows(enum run_rows_by by, const char *host, const char *const *names,
				 size_t count)
{
	struct run *run = driver_run(host, 0, 1);
	struct run_row_list *rows = &run->driver->rows[by];

	run->driver->scenario = strdup("shop");
	rows->count = count;
	rows->list = calloc(count, sizeof(*rows->list));
	assert_non_null(rows->list);
	for (size_t i = 0; i < count; i++) {
		struct run_row *step = &rows->list[i];

		step->name = strdup(names[i]);
		step->target = strdup(host);
		step->requests = 10 * (i + 1);
		step->errors[RUN_ERROR_UNEXPECTED] = i;
		histogram_record(&step->round_trip, 1000 * (i + 1));
	}
	return run;
}

/* Steps of one name are merged, at any index; others follow. */
static void steps_add_by_name(void **state)
{
	autorun struct run *run =
		run_with_rows(RUN_ROWS_STEP, "a", (const char *const[]){"create", "read"}, 2);
	struct run *other =
		run_with_rows(RUN_ROWS_STEP, "b", (const char *const[]){"delete", "create"}, 2);
	const struct run_row *steps;

	merge(run, other);
	run_free(other);
	steps = run->driver->rows[RUN_ROWS_STEP].list;
	assert_int_equal(run->driver->rows[RUN_ROWS_STEP].count, 3);
	assert_string_equal(run->driver->scenario, "shop");
	assert_string_equal(steps[0].name, "create");
	assert_int_equal(steps[0].requests, 10 + 20);
	assert_int_equal(steps[0].errors[RUN_ERROR_UNEXPECTED], 1);
	assert_int_equal(steps[0].round_trip.count, 2);
	assert_int_equal(steps[0].round_trip.sum, 1000 + 2000);
	assert_null(steps[0].target); /* the targets differ */
	assert_string_equal(steps[1].name, "read");
	assert_int_equal(steps[1].requests, 20);
	assert_string_equal(steps[2].name, "delete");
	assert_string_equal(steps[2].target, "b");
}

static void statuses_add_from_the_lowest_up(void **state)
{
	autorun struct run *run =
		run_with_rows(RUN_ROWS_STATUS, "a", (const char *const[]){"404", "503"}, 2);
	struct run *other =
		run_with_rows(RUN_ROWS_STATUS, "b", (const char *const[]){"200", "404"}, 2);
	const struct run_row_list *rows = &run->driver->rows[RUN_ROWS_STATUS];

	merge(run, other);
	run_free(other);
	assert_int_equal(rows->count, 3);
	assert_string_equal(rows->list[0].name, "200");
	assert_string_equal(rows->list[1].name, "404");
	assert_int_equal(rows->list[1].requests, 10 + 20);
	assert_string_equal(rows->list[2].name, "503");
}

/* One driver's statuses would not add up to both drivers' requests. */
static void statuses_of_one_driver_alone_are_none(void **state)
{
	static const char *const names[] = {"200", "404"};

	for (int known = 0; known < 2; known++) {
		autorun struct run *run = known ? run_with_rows(RUN_ROWS_STATUS, "a", names, 2)
						: driver_run("a", 0, 1);
		struct run *other = known ? driver_run("b", 0, 1)
					  : run_with_rows(RUN_ROWS_STATUS, "b", names, 2);

		run->driver->requests = other->driver->requests = 30;
		merge(run, other);
		run_free(other);
		assert_int_equal(run->driver->rows[RUN_ROWS_STATUS].count, 0);
	}
}

/* One driver's exchanges do not represent two; the order of drivers does not matter. */
static void joined_is_of_one_driver(void **state)
{
	for (int drivers = 1; drivers <= 2; drivers++) {
		autorun struct run *run =
			drivers == 2 ? support_driver_run() : support_observer_run();
		autorun struct run *other = support_driver_run();

		(void)state;
		other->joined = calloc(1, sizeof(*other->joined));
		other->driver->ports.used = (struct run_number){true, 7};
		if (drivers == 2)
			run->joined = calloc(1, sizeof(*run->joined));
		merge(run, other);
		assert_int_equal(!run->joined, drivers == 2);
		assert_int_equal(run->driver->ports.used.known, drivers == 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_works_either_way),
		cmocka_unit_test(drivers_add_exactly),
		cmocka_unit_test(waiting_for_a_cpu_adds_if_all_know_it),
		cmocka_unit_test(the_parts_remain),
		cmocka_unit_test(the_time_that_all_share),
		cmocka_unit_test(steps_add_by_name),
		cmocka_unit_test(statuses_add_from_the_lowest_up),
		cmocka_unit_test(statuses_of_one_driver_alone_are_none),
		cmocka_unit_test(intervals_are_aligned),
		cmocka_unit_test(intervals_of_other_lengths_are_joined),
		cmocka_unit_test(far_apart),
		cmocka_unit_test(failures_keep_their_time),
		cmocka_unit_test(what_cannot_be_merged_is_named),
		cmocka_unit_test(other_times_are_refused),
		cmocka_unit_test(runs_that_differ_in_times_alone_merge),
		cmocka_unit_test(older_documents_merge),
		cmocka_unit_test(observers_of_several_hosts),
		cmocka_unit_test(joined_is_of_one_driver),
		cmocka_unit_test(drift_is_a_correlation),
		cmocka_unit_test(sweeps_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
