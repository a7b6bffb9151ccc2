// SPDX-License-Identifier: MIT
/* The parts of a round trip while the server has other clients. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/join.h"
#include "sojourn/report.h"
#include "support/report.h"
#include "support/runs.h"

/* For each of the driver's exchanges, of 2 ms, other clients have three of 50 ms. */
static struct run *run_with_others(void)
{
	struct run *run = support_sampled_run();
	struct run_service *service = &run->services[0];

	for (unsigned int i = 0; i < 3000; i++)
		histogram_record(&service->stages[STAGE_SERVICE].histogram, 50000000);
	service->exchanges += 3000;
	return run;
}

/* The driver's own exchanges are known if all or some are joined; else nothing is claimed. */
static void others_are_served(void **state)
{
	autorun struct run *run = run_with_others();
	struct run_samples *seen = run->services[0].samples;

	assert_int_equal(join_run(run, 0), 0);
	support_check_golden(run, "others-joined", 100);
	support_check_golden(run, "others-joined-80", 80);
	run_samples_lower(seen, RUN_SAMPLE_ALL / 4);
	seen->samples[0].flow.client_port = 7;
	assert_int_equal(join_run(run, 0), 0);
	support_check_golden(run, "others-some-joined", 100);
	run_joined_free(run->joined);
	run->joined = NULL;
	support_check_golden(run, "others-not-joined", 100);
	support_check_golden(run, "others-not-joined-80", 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
