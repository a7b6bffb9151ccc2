// SPDX-License-Identifier: MIT
/* lib/run/merge_driver.c: which loads form one load. For the rest see merge.c. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/run.h"
#include "support/runs.h"

static struct run *load(const char *arrival, uint64_t rate)
{
	struct run *run = support_driver_run();

	free(run->driver->arrival);
	run->driver->arrival = strdup(arrival);
	run->driver->rate = rate;
	return run;
}

/* A constant rate and independent arrivals together are a load of both rates. */
static void rates_of_any_arrival_add_up(void **state)
{
	autorun struct run *a = load("constant", 7), *b = load("poisson", 5),
			   *c = load("poisson", 1);
	autofree char *error = NULL;

	assert_int_equal(run_merge(b, c, &error), 0);
	assert_string_equal(b->driver->arrival, "poisson");
	assert_int_equal(run_merge(a, b, &error), 0);
	assert_int_equal(a->driver->rate, 13);
	assert_null(a->driver->arrival); /* a label that differs */
}

static void a_closed_loop_has_another_latency(void **state)
{
	autorun struct run *closed = load("closed", 0), *open = load("constant", 7);
	autofree char *error = NULL;

	assert_int_equal(run_merge(closed, open, &error), -EINVAL);
	assert_non_null(strstr(error, "driver.arrival: 'closed' and 'constant'"));
	assert_non_null(strstr(error, "latency counts from when a request was due"));
}

/* If a signal ended either of them, the requested load of both is unknown. */
static void an_interrupted_driver_is_told_of(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		autorun struct run *a = load("constant", 7), *b = load("constant", 5);
		struct run_driver *ended = i ? a->driver : b->driver;
		autofree char *error = NULL;

		ended->interrupted = calloc(1, sizeof(*ended->interrupted));
		assert_non_null(ended->interrupted);
		ended->interrupted->requests = (struct run_number){true, 9};
		assert_int_equal(run_merge(a, b, &error), 0);
		assert_non_null(a->driver->interrupted);
		assert_false(a->driver->interrupted->requests.known);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_of_any_arrival_add_up),
		cmocka_unit_test(a_closed_loop_has_another_latency),
		cmocka_unit_test(an_interrupted_driver_is_told_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
