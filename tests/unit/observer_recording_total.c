/* SPDX-License-Identifier: MIT */
/* observer/recording_total.c: findings of a recording; counts are observer_recording.c's. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"

/* A reading at second @seconds that has @found; those with a '!' are critical. */
static void write_reading(FILE *file, unsigned int seconds, const char *const *found)
{
	autorun struct run *run = run_new("sojourn", NULL);
	autofree char *text = NULL;

	assert_non_null(run);
	run->duration_ns = seconds * NSEC_PER_SEC;
	for (; *found; found++) {
		struct run_finding *finding = run_add_finding(run);

		assert_non_null(finding);
		snprintf(finding->id, sizeof(finding->id), "%s", *found);
		snprintf(finding->severity, sizeof(finding->severity), "%s",
			 strchr(*found, '!') ? "critical" : "warning");
		finding->used = (struct run_number){true, seconds};
	}
	text = run_to_json(run);
	if (!text || fputs(text, file) < 0)
		fail();
}

static void write_recording(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(RECORDING_MAGIC "}\n", file) < 0) {
		fail();
		return;
	}
	write_reading(file, 1, (const char *[]){"a", "b", NULL});
	write_reading(file, 2, (const char *[]){"b", "c!", NULL});
	write_reading(file, 3, (const char *[]){NULL});
	assert_int_equal(fclose(file), 0);
}

/* Whatever was ever found, as it was last seen, the worst first. */
static void findings_of_any_time(void **state)
{
	static const struct {
		const char *id;
		uint64_t used;
	} expected[] = {{"c!", 2}, {"a", 1}, {"b", 2}};
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	char path[] = "/tmp/sojourn-unit-XXXXXX";
	struct recording_summary summary;
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	autoclose int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	write_recording(path);
	assert_int_equal(recording_open(path, &recording, &error), 0);
	unlink(path);
	assert_int_equal(recording_total(recording, &run, &summary), 0);
	assert_int_equal(summary.readings, 3);
	assert_int_equal(run->finding_count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(run->findings[i].id, expected[i].id);
		assert_int_equal(run->findings[i].used.value, expected[i].used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(findings_of_any_time)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
