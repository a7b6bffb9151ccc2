// SPDX-License-Identifier: MIT
/* The parts of a round trip while the server has other clients: text and Markdown. */
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

static void check_markdown(struct run *run, const char *expected)
{
	const char *const names[] = {"run.json"};
	autofree char *text = NULL;
	struct run *runs[] = {run};
	size_t length;
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	assert_int_equal(report_markdown(runs, names, 1, &(struct report_options){0}, file), 0);
	fclose(file);
	if (!strstr(text, expected))
		fail_msg("no \"%s\" in\n%s", expected, text);
}

/* The driver's own exchanges are known if all or some are joined; else nothing is claimed. */
static void others_are_served(void **state)
{
	autorun struct run *run = run_with_others();
	struct run_samples *seen = run->services[0].samples;

	assert_int_equal(join_run(run, 0), 0);
	support_check_golden(run, "others-joined", 100);
	support_check_golden(run, "others-joined-80", 80);
	check_markdown(run,
		       "of the driver's 1,000 requests, all joined:\n\n| part | mean | share |\n"
		       "|---|--:|--:|\n| network + client | 25.0 \u00b5s | 7.3 % |\n");
	run_samples_lower(seen, RUN_SAMPLE_ALL / 4);
	seen->samples[0].flow.client_port = 7;
	assert_int_equal(join_run(run, 0), 0);
	support_check_golden(run, "others-some-joined", 100);
	run_joined_free(run->joined);
	run->joined = NULL;
	support_check_golden(run, "others-not-joined", 100);
	support_check_golden(run, "others-not-joined-80", 80);
	check_markdown(run,
		       "\nnot divided: the observer saw 4,000 exchanges at port 8080, the driver ");
}

/* Sources of stages that have several, and losses, are in Markdown, too. */
static void sources_and_caveats(void **state)
{
	autorun struct run *run = support_sampled_run();
	struct run_service *service = &run->services[0];

	support_send_stages(service, 60);
	service->transmit_followed += 3;
	service->losses[RUN_LOSS_TRANSMIT_UNSEEN] = 3;
	service->samples->lost = 7;
	check_markdown(run,
		       "\naccept or socket queue: source inferred \\(from the first read\\)\n");
	check_markdown(run, "\n| accept or socket queue | 64 | ");
	check_markdown(run, "\ntransmit queue: source sockops \\(the kernel's time stamps\\)\n");
	check_markdown(run, "\n- 7 samples lost: ");
	check_markdown(run,
		       "\n- 3 transmit unseen: responses followed whose last byte was not seen to "
		       "leave; the means are of those seen, mostly smaller ones; --prefer ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_served),
		cmocka_unit_test(sources_and_caveats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
