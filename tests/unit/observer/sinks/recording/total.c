// SPDX-License-Identifier: MIT
/*
 * observer/sinks/recording/total.c: findings and programs of a recording; for counts see
 * recording.c.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sinks/recording/recording.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"

/*
 * Write a reading at second @seconds with the findings @found; those with a '!' are critical. It did not see @unseen.
 * NULL: it did not look.
 */
static void write_reading(FILE *file, unsigned int seconds, const char *const *found,
			  const char *unseen)
{
	autorun struct run *run = run_new("sojourn", NULL);
	autofree char *text = NULL;

	assert_non_null(run);
	run->duration_ns = seconds * NSEC_PER_SEC;
	for (; *found; found++) {
		struct run_finding *finding = ARRAY_APPEND(run->findings, run->finding_count);

		assert_non_null(finding);
		snprintf(finding->id, sizeof(finding->id), "%s", *found);
		snprintf(finding->severity, sizeof(finding->severity), "%s",
			 strchr(*found, '!')   ? "critical"
			 : strchr(*found, '?') ? "notice"
					       : "warning");
		finding->used = (struct run_number){true, seconds};
	}
	if (unseen)
		assert_int_equal(run_add_text(&run->not_seen, unseen), 0);
	text = run_to_json(run);
	if (!text || fputs(text, file) < 0)
		fail();
}

/* Write three readings. The last one did not see @unseen. */
static void write_recording(const char *path, const char *unseen)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(RECORDING_MAGIC "}\n", file) < 0) {
		fail();
		return;
	}
	write_reading(file, 1, (const char *[]){"a", "?", "b", NULL}, "first");
	write_reading(file, 2, (const char *[]){"b", "c!", NULL}, "second");
	write_reading(file, 3, (const char *[]){NULL}, unseen);
	assert_int_equal(fclose(file), 0);
}

/* Read the total of a recording whose last reading did not see @unseen. */
static struct run *total_of_readings(const char *unseen)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	char path[] = "/tmp/sojourn-unit-XXXXXX";
	struct recording_summary summary;
	autofree char *error = NULL;
	autoclose int fd = mkstemp(path);
	struct run *run;

	assert_true(fd >= 0);
	write_recording(path, unseen);
	assert_int_equal(recording_open(path, &recording, &error), 0);
	unlink(path);
	assert_int_equal(recording_total(recording, &run, &summary), 0);
	assert_int_equal(summary.readings, 3);
	return run;
}

/* Every finding of any time, as last seen, the worst first. */
static void findings_of_any_time(void **state)
{
	static const struct {
		const char *id;
		uint64_t used;
	} expected[] = {{"c!", 2}, {"a", 1}, {"b", 2}, {"?", 1}};
	autorun struct run *run = total_of_readings(NULL);

	assert_int_equal(run->finding_count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(run->findings[i].id, expected[i].id);
		assert_int_equal(run->findings[i].used.value, expected[i].used);
	}
}

/* The list of things not seen is that of the last reading that looked. */
static void not_seen_at_last(void **state)
{
	autorun struct run *looked = total_of_readings("third"), *blind = total_of_readings(NULL);

	assert_non_null(looked->not_seen);
	assert_string_equal(looked->not_seen[0], "third");
	assert_null(looked->not_seen[1]);
	assert_non_null(blind->not_seen);
	assert_string_equal(blind->not_seen[0], "second");
	assert_null(blind->not_seen[1]);
}

/*
 * Write a new observation whose only reading has @count programs, each of which has run @runs
 * times.
 */
static void write_observation(FILE *file, const char *const *programs, size_t count, uint64_t runs)
{
	autorun struct run *run = run_new("sojourn", NULL);
	autofree char *text = NULL;

	assert_non_null(run);
	run->duration_ns = NSEC_PER_SEC;
	run->cost = calloc(1, sizeof(*run->cost));
	assert_non_null(run->cost);
	run->cost->programs = calloc(count, sizeof(*run->cost->programs));
	assert_non_null(run->cost->programs);
	run->cost->program_count = count;
	for (size_t i = 0; i < count; i++) {
		struct run_program *program = &run->cost->programs[i];

		snprintf(program->name, sizeof(program->name), "%s", programs[i]);
		program->runs = (struct run_number){true, runs};
		program->recursion_misses = 1;
	}
	text = run_to_json(run);
	if (!text || fprintf(file, RECORDING_MAGIC "}\n%s", text) < 0)
		fail();
}

/* Of every observation: one with other options may run other programs. */
static void programs_of_any_observation(void **state)
{
	static const char *const both[] = {"read", "switch"}, *const one[] = {"read"};
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	char path[] = "/tmp/sojourn-unit-XXXXXX";
	struct recording_summary summary;
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int fd = mkstemp(path);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	assert_non_null(file);
	write_observation(file, both, ARRAY_SIZE(both), 5);
	write_observation(file, one, ARRAY_SIZE(one), 7);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(recording_open(path, &recording, &error), 0);
	unlink(path);
	assert_int_equal(recording_total(recording, &run, &summary), 0);
	assert_int_equal(summary.sessions, 2);
	assert_non_null(run->cost);
	assert_int_equal(run->cost->program_count, 2);
	assert_string_equal(run->cost->programs[0].name, "read");
	assert_int_equal(run->cost->programs[0].runs.value, 12);
	assert_int_equal(run->cost->programs[0].recursion_misses, 2);
	assert_string_equal(run->cost->programs[1].name, "switch");
	assert_int_equal(run->cost->programs[1].runs.value, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_of_any_time),
		cmocka_unit_test(not_seen_at_last),
		cmocka_unit_test(programs_of_any_observation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
