// SPDX-License-Identifier: MIT
/*
 * observer/sinks/recording/sink.c and recording*.c: written recordings are read, also after a
 * crash.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sinks/recording/recording.h"
#include "sinks/recording/sink.h"
#include "sojourn/clock.h"
#include "sojourn/series.h"
#include "support/directory.h"
#include "support/runs.h"

#define FILE_NAME "a.rec"

/* ---- a made-up observation ---- */

/* Exchanges grow by 100 a second from 8080's start, by 50 from that of 8081, which starts later. */
struct made_up {
	unsigned int seconds;
	uint64_t started_ns;
	int said; /* the last error that the sink reported, or 1 */
	unsigned int said_count;
};

static struct made_up made_up;

static int brief(void *context, struct run **ret_run)
{
	const struct made_up *m = context;
	struct run *run = run_new("sojourn", NULL);

	assert_non_null(run);
	free(run->started_at);
	run->started_at = run_format_time(m->started_ns);
	run->duration_ns = m->seconds * NSEC_PER_SEC;
	run->cost = calloc(1, sizeof(*run->cost));
	assert_non_null(run->cost);
	run->cost->cpu_ns = 1000 * m->seconds;
	run->cost->resident_bytes = 5000 - m->seconds;
	support_add_service(run, 8080, 100 * m->seconds);
	if (m->seconds > 2)
		support_add_service(run, 8081, 50 * (m->seconds - 2));
	*ret_run = run;
	return 0;
}

static int judge(void *context, struct run *run)
{
	(void)context;
	(void)run;
	return 0;
}

static const struct snapshot_source source = {.context = &made_up, .brief = brief, .judge = judge};

static void say(const char *path, int error)
{
	assert_string_equal(path, FILE_NAME);
	made_up.said = error;
	made_up.said_count++;
}

static struct run *reading(void)
{
	struct run *run;

	assert_int_equal(brief(&made_up, &run), 0);
	return run;
}

/* Record from @started seconds since 1970; readings up to @last, the last one as the end. */
static void record_with(uint64_t max_bytes, unsigned int started, unsigned int last)
{
	const struct sink_record_options options = {
		.path = FILE_NAME, .interval_ns = NSEC_PER_SEC, .max_bytes = max_bytes, .say = say};
	autosink struct sink *sink = NULL;
	autorun struct run *end = NULL;

	made_up = (struct made_up){.started_ns = started * NSEC_PER_SEC};
	assert_int_equal(sink_record_open(&options, &sink), 0);
	assert_int_equal(sink_record_begin(sink, &source), 0);
	for (made_up.seconds = 1; made_up.seconds < last; made_up.seconds++)
		assert_int_equal(sink_interval(sink), 0);
	end = reading();
	assert_int_equal(sink_end(sink, end), 0);
	assert_int_equal(sink_record_count(sink), last + 1);
}

#define record(started, last) record_with(0, started, last)

static void write_text(const char *path, const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	if (!file || fputs(text, file) < 0 || fclose(file))
		fail_msg("cannot write %s", path);
}

/* ---- reading it ---- */

static struct run *total_of(const char *path, struct recording_summary *ret_summary)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	autofree char *error = NULL;
	struct run *run;

	assert_int_equal(recording_open(path, &recording, &error), 0);
	assert_int_equal(recording_total(recording, &run, ret_summary), 0);
	return run;
}

/* The past adds up to the present, in points of a second without gaps. */
static void assert_past(const struct run_service *service, uint64_t end_ns)
{
	uint64_t exchanges = 0, queue_ns = 0;
	uint64_t at_ns = 0;

	assert_non_null(service->series);
	for (size_t i = 0; i < service->series->count; i++) {
		const struct run_point *point = &service->series->points[i];

		assert_true(!i || point->begin_ns == at_ns);
		at_ns = point->begin_ns + point->duration_ns;
		exchanges += point->exchanges;
		queue_ns += point->stages[STAGE_SOCKET_QUEUE].sum_ns;
	}
	assert_int_equal(at_ns, end_ns);
	assert_int_equal(exchanges, service->exchanges);
	assert_int_equal(queue_ns, service->stages[STAGE_SOCKET_QUEUE].histogram.sum);
}

/* Assert that @run is, to the byte, the observation's own report at second @last. */
static void assert_total(struct run *run, unsigned int last)
{
	autofree char *text = NULL, *expected = NULL;
	autorun struct run *direct = NULL;

	for (size_t i = 0; i < run->service_count; i++) {
		assert_past(&run->services[i], run->duration_ns);
		run_series_free(TAKE_PTR(run->services[i].series));
	}
	made_up.seconds = last;
	direct = reading();
	text = run_to_json(run);
	expected = run_to_json(direct);
	assert_string_equal(text, expected);
}

static off_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void whole_is_the_last_reading(void **state)
{
	struct recording_summary summary;
	autorun struct run *run = NULL;

	record(1000, 5);
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.readings, 6);
	assert_int_equal(summary.damaged, 0);
	assert_int_equal(summary.sessions, 1);
	assert_total(run, 5);
}

static off_t last_line(const char *path)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	autofree char *error = NULL;

	assert_int_equal(recording_open(path, &recording, &error), 0);
	return recording->lines[recording->count - 1].offset;
}

static void cut_off_at_every_byte(void **state)
{
	off_t whole, last;

	record(1000, 4);
	whole = size_of(FILE_NAME);
	last = last_line(FILE_NAME);
	for (off_t size = whole; size-- > last;) {
		CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
		struct recording_summary summary;
		autorun struct run *run = NULL;
		autofree char *error = NULL;

		assert_int_equal(truncate(FILE_NAME, size), 0);
		assert_int_equal(recording_open(FILE_NAME, &recording, &error), 0);
		assert_int_equal(recording->count, 4);
		assert_int_equal(recording->cut_off, size - last);
		if (size % 199 && size != last && size != whole - 1)
			continue; /* parsing takes a while */
		assert_int_equal(recording_total(recording, &run, &summary), 0);
		assert_int_equal(summary.readings, 4);
		assert_total(run, 3);
	}
}

/* A crash of the host may leave a hole of any size. Reading that as zeros would take minutes. */
static void ends_in_a_hole(void **state)
{
	struct recording_summary summary;
	autorun struct run *run = NULL;

	record(1000, 4);
	assert_int_equal(truncate(FILE_NAME, (off_t)1 << 40), 0);
	record(1060, 6);
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.readings, 5 + 7);
	assert_int_equal(summary.damaged, 1);
	assert_int_equal(truncate(FILE_NAME, (off_t)2 << 40), 0);
	run_free(TAKE_PTR(run));
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.readings, 5 + 7);
}

/* The half line becomes one of its own, and both observations count. */
static void goes_on_behind_a_cut(void **state)
{
	struct recording_summary summary;
	autorun struct run *run = NULL;

	record(1000, 4);
	assert_int_equal(truncate(FILE_NAME, size_of(FILE_NAME) - 100), 0);
	record(1060, 6);
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.readings, 4 + 7);
	assert_int_equal(summary.damaged, 1);
	assert_int_equal(summary.sessions, 2);
	assert_int_equal(summary.unobserved_ns, 57 * NSEC_PER_SEC);
	assert_int_equal(run->duration_ns, (3 + 6) * NSEC_PER_SEC);
	assert_string_equal(run->started_at, "1970-01-01T00:16:40.000Z");
	assert_int_equal(run->services[0].exchanges, 300 + 600);
	assert_int_equal(run->services[0].stages[STAGE_SERVICE].histogram.count, 900);
	assert_int_equal(run->services[1].exchanges, 50 + 200);
	assert_int_equal(run->cost->cpu_ns, 9000);
	assert_int_equal(run->cost->resident_bytes, 5000 - 3);
	assert_past(&run->services[0], run->duration_ns);
	assert_past(&run->services[1], run->duration_ns);
}

/* A sum with a missing part is unknown. */
static void not_measured_once_is_not_measured(void **state)
{
	static const char changed[] = "\"measured\":false";
	struct recording_summary summary;
	autorun struct run *run = NULL;
	autofree char *text = NULL;

	record(1000, 2);
	made_up.seconds = 2;
	run = reading();
	support_miss_stage(&run->services[0], STAGE_RECEIVE, "because");
	text = run_to_json(run);
	assert_non_null(strstr(text, changed));
	assert_int_equal(truncate(FILE_NAME, last_line(FILE_NAME)), 0);
	write_text(FILE_NAME, "a", text);
	record(1060, 2);
	run_free(TAKE_PTR(run));
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(run->services[0].exchanges, 400);
	assert_false(run->services[0].stages[STAGE_RECEIVE].measured);
	assert_string_equal(run->services[0].stages[STAGE_RECEIVE].reason, "because");
	assert_int_equal(run->services[0].stages[STAGE_SERVICE].histogram.count, 400);
}

/* A hole in the middle costs a point in time, and no count. */
static void damaged_in_the_middle(void **state)
{
	CLEANUP(cleanup_recording_close) struct recording *recording = NULL;
	struct recording_summary summary;
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	autoclose int fd = -1;

	record(1000, 5);
	assert_int_equal(recording_open(FILE_NAME, &recording, &error), 0);
	fd = open(FILE_NAME, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "\0\0\0", 3, recording->lines[1].offset), 3);
	assert_int_equal(pwrite(fd, "x", 1, recording->lines[2].offset + 40), 1);
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.readings, 4);
	assert_int_equal(summary.damaged, 2);
	assert_int_equal(run->services[0].series->count, 4);
	assert_total(run, 5);
}

static void nothing_whole(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{"", "not a recording"},
		{RECORDING_MAGIC "}", "one whole reading: the first is cut off"},
		{RECORDING_MAGIC "}\n", "one whole reading"},
		{RECORDING_MAGIC "}\n\n{}\n", "one whole reading"},
		{"{\"schema\":\"sojourn.run/1\"}\n", "not a recording"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct recording *recording;
		autofree char *error = NULL;

		write_text(FILE_NAME, "w", cases[i].text);
		assert_int_equal(recording_open(FILE_NAME, &recording, &error), -EINVAL);
		assert_non_null(strstr(error, cases[i].error));
	}
}

/* ---- ownership of files ---- */

static int try_to_open(uint64_t max_bytes)
{
	const struct sink_record_options options = {.path = FILE_NAME, .max_bytes = max_bytes};
	autosink struct sink *sink = NULL;

	return sink_record_open(&options, &sink);
}

static void other_files_stay(void **state)
{
	static const char text[] = "{\"schema\":\"sojourn.run/1\"}\n";
	char found[64] = "";
	autoclose int fd = -1;

	write_text(FILE_NAME, "w", text);
	assert_int_equal(try_to_open(0), -EEXIST);
	fd = open(FILE_NAME, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, found, sizeof(found) - 1), strlen(text));
	assert_string_equal(found, text);
	/* A file that rotation would replace, too. */
	assert_int_equal(rename(FILE_NAME, FILE_NAME ".1"), 0);
	assert_int_equal(try_to_open(1000000), -EEXIST);
	assert_int_equal(try_to_open(0), 0);
}

static void one_writer_at_a_time(void **state)
{
	const struct sink_record_options options = {.path = FILE_NAME};
	autosink struct sink *sink = NULL;

	assert_int_equal(sink_record_open(&options, &sink), 0);
	assert_int_equal(try_to_open(0), -EWOULDBLOCK);
	sink_close(TAKE_PTR(sink));
	assert_int_equal(try_to_open(0), 0);
}

/* A recording is its owner's, under any umask; it is not written through another user's link. */
static void for_its_owner_alone(void **state)
{
	const struct sink_record_options options = {
		.path = "link", .interval_ns = NSEC_PER_SEC, .say = say};
	mode_t before = umask(0);
	struct sink *sink = NULL;
	struct stat file;

	record(1, 2);
	umask(before);
	assert_int_equal(stat(FILE_NAME, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(symlink(FILE_NAME, "link"), 0);
	assert_int_equal(sink_record_open(&options, &sink), -ELOOP);
	assert_null(sink);
}

/* The totals stay complete at any number of rotations, and the sizes within bounds. */
static void rotated(void **state)
{
	struct recording_summary summary;
	autorun struct run *run = NULL;
	off_t one;

	record(1000, 1);
	one = size_of(FILE_NAME) / 2;
	assert_int_equal(unlink(FILE_NAME), 0);
	record_with(5 * (uint64_t)one, 1000, 40);
	assert_in_range(size_of(FILE_NAME), 1, 5 * one);
	assert_in_range(size_of(FILE_NAME ".1"), 2 * one, 5 * one);
	run = total_of(FILE_NAME, &summary);
	assert_in_range(summary.readings, 1, 5);
	assert_total(run, 40);
	run_free(TAKE_PTR(run));
	run = total_of(FILE_NAME ".1", &summary);
	assert_total(run, 40 - (unsigned int)summary.readings);
}

/* Out of space in the middle of a line, then space again: only points in time are missing. */
static void full_for_a_while(void **state)
{
	const struct sink_record_options options = {
		.path = FILE_NAME, .interval_ns = NSEC_PER_SEC, .say = say};
	autosink struct sink *sink = NULL;
	autorun struct run *end = NULL, *run = NULL;
	struct recording_summary summary;
	struct rlimit limit, old;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	made_up = (struct made_up){.started_ns = NSEC_PER_SEC, .said = 1};
	assert_int_equal(sink_record_open(&options, &sink), 0);
	assert_int_equal(sink_record_begin(sink, &source), 0);
	limit.rlim_cur = (rlim_t)size_of(FILE_NAME) + 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (made_up.seconds = 1; made_up.seconds < 4; made_up.seconds++) {
		assert_int_equal(sink_interval(sink), 0);
		assert_int_equal(made_up.said, -EFBIG);
		assert_int_equal(made_up.said_count, 1);
		assert_int_equal(size_of(FILE_NAME), limit.rlim_cur);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(sink_interval(sink), 0);
	assert_int_equal(made_up.said, 0);
	made_up.seconds++;
	end = reading();
	assert_int_equal(sink_end(sink, end), 0);
	run = total_of(FILE_NAME, &summary);
	assert_int_equal(summary.damaged, 1);
	assert_int_equal(summary.readings, 3);
	assert_total(run, 5);
}

/* Half of a first line would make the file unrecognisable. */
static void full_from_the_begin(void **state)
{
	const struct sink_record_options options = {.path = FILE_NAME, .say = say};
	autosink struct sink *sink = NULL;
	struct rlimit limit, old;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){10, old.rlim_max};
	assert_int_equal(sink_record_open(&options, &sink), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(sink_record_begin(sink, &source), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(size_of(FILE_NAME), 0);
	assert_int_equal(sink_interval(sink), 0);
	assert_true(recording_is(FILE_NAME));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whole_is_the_last_reading),
		TEST(cut_off_at_every_byte),
		TEST(ends_in_a_hole),
		TEST(goes_on_behind_a_cut),
		TEST(not_measured_once_is_not_measured),
		TEST(damaged_in_the_middle),
		TEST(nothing_whole),
		TEST(other_files_stay),
		TEST(one_writer_at_a_time),
		TEST(for_its_owner_alone),
		TEST(rotated),
		TEST(full_for_a_while),
		TEST(full_from_the_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
