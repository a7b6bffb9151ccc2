// SPDX-License-Identifier: MIT
/* The parts of each step's time as CSV, compared with the file in golden/. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/join.h"
#include "sojourn/report.h"
#include "support/golden.h"
#include "support/runs.h"

#define STEPS 3

/* Two steps in turn, with foreign names; and one without a sample. */
static struct run *stepped_run(void)
{
	static const char *const names[STEPS] = {"create, \"new\"", "read|all", "never"};
	struct run *run = support_sampled_run();
	struct run_row_list *rows = &run->driver->rows[RUN_ROWS_STEP];
	struct run_samples *sent = run->driver->samples, *seen = run->services[0].samples;

	rows->list = calloc(STEPS, sizeof(*rows->list));
	assert_non_null(rows->list);
	for (rows->count = 0; rows->count < STEPS; rows->count++)
		rows->list[rows->count].name = strdup(names[rows->count]);
	for (size_t i = 0; i < sent->count; i++) {
		sent->samples[i].known |= RUN_SAMPLE_STEP;
		sent->samples[i].step = sent->samples[i].index % 2;
	}
	for (size_t i = 0; i < seen->count; i++)
		seen->samples[i].stage_ns[STAGE_RESPOND] = seen->samples[i].index % 2 * 5000;
	assert_int_equal(join_run(run, 1), 0);
	assert_int_equal(run->joined->step_count, STEPS);
	return run;
}

static void steps_as_csv(void **state)
{
	autorun struct run *run = stepped_run();
	autofree char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	assert_int_equal(report_csv(run, file), 0);
	fclose(file);
	support_golden(text, UNIT_DIR "/golden/joined-steps.csv");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_as_csv),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
