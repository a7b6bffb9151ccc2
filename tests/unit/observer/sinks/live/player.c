// SPDX-License-Identifier: MIT
/*
 * observer/sinks/live/player.c: a recording played in both directions, past damage and other
 * observations.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sinks/live/player.h"
#include "sojourn/clock.h"
#include "support/runs.h"

/* A made-up recording: readings[] each at second i of its observation. */
struct tape {
	char path[64];
	struct recording *recording;
	struct live_player player;
	struct live_view view;
};

static void write_reading(FILE *file, unsigned int started, unsigned int seconds)
{
	autorun struct run *run = run_new("sojourn", NULL);
	autofree char *text = NULL;

	assert_non_null(run);
	free(run->started_at);
	run->started_at = run_format_time(started * NSEC_PER_SEC);
	run->duration_ns = seconds * NSEC_PER_SEC;
	/* 10, 20, 30 … in each second */
	support_add_service(run, 8080, 5 * seconds * (seconds + 1));
	text = run_to_json(run);
	assert_non_null(text);
	if (fputs(text, file) < 0)
		fail();
}

static void begin_observation(FILE *file)
{
	if (fputs(RECORDING_MAGIC "}\n", file) < 0)
		fail();
}

/* Five seconds from 1000 on, then three from 2000 on. */
static int enter(void **state)
{
	struct tape *tape = calloc(1, sizeof(*tape));
	autofree char *error = NULL;
	FILE *file;
	int fd;

	if (!tape)
		return -1;
	snprintf(tape->path, sizeof(tape->path), "/tmp/sojourn-unit-XXXXXX");
	fd = mkstemp(tape->path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		return -1;
	begin_observation(file);
	for (unsigned int i = 0; i <= 5; i++)
		write_reading(file, 1000, i);
	begin_observation(file);
	for (unsigned int i = 0; i <= 3; i++)
		write_reading(file, 2000, i);
	if (fclose(file) || recording_open(tape->path, &tape->recording, &error))
		return -1;
	live_player_init(&tape->player, tape->recording);
	live_view_init(&tape->view);
	*state = tape;
	return 0;
}

static int leave(void **state)
{
	struct tape *tape = *state;

	live_player_done(&tape->player);
	live_view_done(&tape->view);
	recording_close(tape->recording);
	unlink(tape->path);
	free(tape);
	return 0;
}

static void forward(struct tape *tape, unsigned int count)
{
	while (count--)
		assert_int_equal(live_player_forward(&tape->player, &tape->view), 0);
}

static void back(struct tape *tape, unsigned int count)
{
	while (count--)
		assert_int_equal(live_player_back(&tape->player, &tape->view), 0);
}

/*
 * The view shows @requests in the last interval, @total since the observation's start, and a past
 * of that length.
 */
static void assert_shown(const struct tape *tape, size_t at, unsigned int requests,
			 unsigned int total, size_t past)
{
	assert_int_equal(tape->player.at, at);
	assert_int_equal(tape->view.total->services[0].exchanges, total);
	if (!requests) {
		assert_null(tape->view.interval);
		assert_null(live_view_selected(&tape->view));
		return;
	}
	assert_int_equal(live_view_selected(&tape->view)->service->exchanges, requests);
	assert_true(live_view_selected(&tape->view)->seconds == 1);
	assert_int_equal(live_view_selected(&tape->view)->history->count, past);
}

static void forth_and_back(void **state)
{
	struct tape *tape = *state;

	forward(tape, 1);
	assert_shown(tape, 0, 0, 0, 0);
	assert_int_equal(live_player_back(&tape->player, &tape->view), -ENODATA);
	forward(tape, 3);
	assert_shown(tape, 3, 30, 60, 3);
	back(tape, 1);
	assert_shown(tape, 2, 20, 30, 2);
	forward(tape, 1);
	assert_shown(tape, 3, 30, 60, 3);
	back(tape, 2);
	assert_shown(tape, 1, 10, 10, 1);
	back(tape, 1);
	assert_shown(tape, 0, 0, 0, 0);
	assert_int_equal(tape->player.wall_ns, 1000 * NSEC_PER_SEC);
}

/* Readings of two observations are not subtracted. */
static void another_observation(void **state)
{
	struct tape *tape = *state;

	forward(tape, 6);
	assert_shown(tape, 5, 50, 150, 5);
	forward(tape, 1);
	assert_shown(tape, 6, 0, 0, 0);
	assert_int_equal(tape->player.wall_ns, 2000 * NSEC_PER_SEC);
	forward(tape, 1);
	assert_shown(tape, 7, 10, 10, 6);
	back(tape, 1);
	assert_shown(tape, 6, 0, 0, 0);
	back(tape, 1);
	assert_shown(tape, 5, 50, 150, 5);
}

static void ends(void **state)
{
	struct tape *tape = *state;
	uint64_t stay_ns;

	forward(tape, 9);
	assert_false(live_player_ended(&tape->player));
	forward(tape, 1);
	assert_true(live_player_ended(&tape->player));
	assert_int_equal(live_player_forward(&tape->player, &tape->view), -ENODATA);
	assert_int_equal(live_player_stay_ns(&tape->player, &stay_ns), -ENODATA);
	assert_shown(tape, 9, 30, 60, 8);
	back(tape, 1);
	assert_false(live_player_ended(&tape->player));
}

static void as_fast_as_asked(void **state)
{
	struct tape *tape = *state;
	uint64_t stay_ns = 0;

	forward(tape, 2);
	assert_int_equal(live_player_stay_ns(&tape->player, &stay_ns), 0);
	assert_int_equal(stay_ns, NSEC_PER_SEC);
	tape->player.speed = 4;
	assert_int_equal(live_player_stay_ns(&tape->player, &stay_ns), 0);
	assert_int_equal(stay_ns, NSEC_PER_SEC / 4);
	/* The player skips the thousand seconds between the observations. */
	tape->player.speed = 1;
	forward(tape, 4);
	assert_int_equal(live_player_stay_ns(&tape->player, &stay_ns), 0);
	assert_int_equal(stay_ns, NSEC_PER_SEC);
}

/* An unreadable reading is skipped in both directions; its neighbours cover both seconds. */
static void past_a_damaged_one(void **state)
{
	struct tape *tape = *state;
	autoclose int fd = open(tape->path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "x", 1, tape->recording->lines[2].offset + 60), 1);
	forward(tape, 3);
	assert_int_equal(tape->player.at, 3);
	assert_int_equal(tape->view.interval->services[0].exchanges, 20 + 30);
	back(tape, 1);
	assert_shown(tape, 1, 10, 10, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(forth_and_back),	TEST(another_observation), TEST(ends),
		TEST(as_fast_as_asked), TEST(past_a_damaged_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
