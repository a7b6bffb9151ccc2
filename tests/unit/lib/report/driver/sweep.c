// SPDX-License-Identifier: MIT
/* The report of a sweep: a row for each load, the plateau, and missing figures named. */
#include "support/report.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"
#include "sojourn/sweep.h"

static void add_step(struct run_sweep *sweep, uint64_t load, uint64_t per_second, uint64_t mean_ns)
{
	struct run_sweep_step *step = ARRAY_APPEND(sweep->steps, sweep->step_count);

	assert_non_null(step);
	step->load = load;
	step->duration_ns = 2 * NSEC_PER_SEC;
	step->requests = 2 * per_second;
	step->attempts = 1;
	step->steady = true;
	for (unsigned int i = 0; i < 100; i++)
		histogram_record(&step->latency, mean_ns);
}

static struct run *sweep_run(const char *over)
{
	struct run *run = calloc(1, sizeof(*run));

	assert_non_null(run);
	run->tool = strdup("sojourn-drive 0.1.0");
	run->sweep = calloc(1, sizeof(*run->sweep));
	assert_non_null(run->sweep);
	run->sweep->target = strdup("http://127.0.0.1:8080/");
	run->sweep->method = strdup("GET");
	run->sweep->over = strdup(over);
	add_step(run->sweep, 1, 1000, 1000000);
	add_step(run->sweep, 2, 2000, 1000000);
	add_step(run->sweep, 4, 2500, 1600000);
	return run;
}

static void test_plateau(void **state)
{
	autorun struct run *run = sweep_run("connections");
	autofree char *text = NULL;

	run->sweep->plateau = (struct run_number){true, 2500};
	run->sweep->knee = (struct run_number){true, 3};
	run->sweep->misfit_per_mille = (struct run_number){true, 12};
	run->sweep->stopped = strdup("more load only queues");
	run->sweep->resumed = strdup("after 2 of 4 steps");
	run->sweep->steps[1].steady = false;
	run->sweep->steps[2].limited = strdup("cpu");
	run->sweep->three_quarters = calloc(1, sizeof(*run->sweep->three_quarters));
	assert_non_null(run->sweep->three_quarters);
	run->sweep->three_quarters->load = 1875;
	run->sweep->three_quarters->duration_ns = NSEC_PER_SEC;
	run->sweep->three_quarters->requests = 1870;
	run->sweep->three_quarters->steady = true;
	histogram_record(&run->sweep->three_quarters->latency, 900000);
	text = support_render(run, 100, false);
	assert_non_null(strstr(text, "sweep over numbers of connections \u00b7 GET http://127."));
	assert_non_null(strstr(text, "connections      good/s      each/s        p50        p99"));
	assert_non_null(strstr(text, "          1       1,000       1,000    1.00 ms    1.00 ms"));
	assert_non_null(strstr(text, "          2       2,000       1,000    1.00 ms    1.00 ms  "
				     "      0  ████████████████      not steady\n"));
	/* 4 is the first >= 3; a note without room goes below. */
	assert_non_null(strstr(text, "          4       2,500         625    1.60 ms    1.60 ms  "
				     "      0  ████████████████████\n"
				     "               ◄ knee, limited by the driver (cpu)\n"));
	assert_non_null(strstr(text, "plateau        2,500 requests/s from 3 connections on "
				     "\u00b7 steps off the fit by 1.2 %\n"));
	assert_non_null(strstr(text, "at 75 % of it  1,875/s due \u00b7 1,870/s \u00b7 mean 900"));
	assert_non_null(strstr(text, "stopped        more load only queues\n"));
	assert_non_null(
		strstr(text, "resumed        after 2 of 4 steps, as its coordinator had ended"));
	assert_null(strstr(text, "server's/s"));
	assert_ptr_equal(strstr(text, "LIMITED BY THE DRIVER, not by the server alone, in 1 of 3"),
			 text); /* the first line */
}

static void test_none(void **state)
{
	autorun struct run *run = sweep_run("rate");
	autofree char *text = NULL;

	run->sweep->connections = 50;
	run->sweep->unfitted = strdup("throughput still grew at the last step");
	run->sweep->steps[0].server_exchanges = (struct run_number){true, 1990};
	run->sweep->steps[0].server_duration_ns = (struct run_number){true, 2 * NSEC_PER_SEC};
	text = support_render(run, 100, false);
	assert_non_null(strstr(text, "      due/s      good/s  server's/s      each/s"));
	assert_non_null(strstr(text, "          1       1,000         995          20"));
	assert_non_null(strstr(text, "          4       2,500           -          50"));
	assert_non_null(
		strstr(text, "plateau        none: throughput still grew at the last step\n"));
	assert_null(strstr(text, "75 %"));
	assert_null(strstr(text, "stopped"));
	assert_null(strstr(text, "LIMITED"));
	assert_null(strstr(text, "\u25c4"));
}

/* Failures are no throughput. The share of each of many clients is not rounded to 0. */
static void test_failures(void **state)
{
	autorun struct run *run = sweep_run("connections");
	struct run_sweep_step *step = ARRAY_APPEND(run->sweep->steps, run->sweep->step_count);
	autofree char *text = NULL;

	assert_non_null(step);
	step->load = 600;
	step->duration_ns = NSEC_PER_SEC;
	step->requests = 5000;
	step->good = (struct run_number){true, 100};
	step->errors = 4900;
	step->steady = true;
	text = support_render(run, 100, false);
	assert_non_null(strstr(
		text, "        600         100       0.167          -          -    "
		      "4,900  █\n")); /* in proportion to good responses: 1 of the best one's 20 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plateau),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
