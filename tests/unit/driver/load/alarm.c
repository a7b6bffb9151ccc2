// SPDX-License-Identifier: MIT
/* driver/load/alarm.c: an alarm that is late rings after everything else that the loop has found. */
#include "driver/test.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "load/alarm.h"
#include "sojourn/clock.h"

#define DUE_NS NSEC_PER_MSEC

static char order[8];
static struct alarm alarm_;
static uint64_t again_ns;

static void note(char what)
{
	order[strlen(order)] = what;
}

static void on_alarm(void *user)
{
	(void)user;
	note('a');
	if (again_ns)
		alarm_set(&alarm_, again_ns);
	again_ns = 0;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	note('e');
	uv_close((uv_handle_t *)poll, NULL);
}

/* The kernel reports the alarm first: it was due before the event came. */
static void test_a_late_alarm_comes_last(void **state)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	uv_poll_t event;
	uv_loop_t loop;

	(void)state;
	assert_int_equal(uv_loop_init(&loop), 0);
	assert_int_equal(alarm_open(&alarm_, &loop, on_alarm, NULL), 0);
	assert_int_equal(uv_poll_init(&loop, &event, fd), 0);
	uv_poll_start(&event, UV_READABLE, on_event);
	uv_run(&loop, UV_RUN_NOWAIT); /* watch both */
	alarm_set(&alarm_, clock_now_ns() + DUE_NS);
	clock_sleep_until(clock_now_ns() + 5 * DUE_NS);
	assert_int_equal(eventfd_write(fd, 1), 0);
	again_ns = clock_now_ns() + DUE_NS;
	uv_run(&loop, UV_RUN_ONCE);
	assert_string_equal(order, "ea");
	assert_true(clock_now_ns() > alarm_.due_ns);
	/* It rings once each time that it is set. */
	uv_run(&loop, UV_RUN_ONCE);
	assert_string_equal(order, "eaa");
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_string_equal(order, "eaa");
	alarm_close(&alarm_);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_alarm_comes_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
