// SPDX-License-Identifier: MIT
/* A timerfd on a libuv loop. It is never read: arming it again also makes it unready. */
#include "alarm.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sojourn/clock.h"

#define NEVER UINT64_MAX

static void arm(struct alarm *alarm, uint64_t at_ns)
{
	struct itimerspec spec = {0};

	if (at_ns != NEVER) {
		at_ns = at_ns ? at_ns : 1; /* 0 would disarm it */
		spec.it_value.tv_sec = (time_t)(at_ns / NSEC_PER_SEC);
		spec.it_value.tv_nsec = (long)(at_ns % NSEC_PER_SEC);
	}
	timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void on_check(uv_check_t *check)
{
	struct alarm *alarm = check->data;

	uv_check_stop(check);
	alarm->due_ns = alarm->armed_ns;
	alarm->armed_ns = NEVER;
	alarm->ring(alarm->user);
	if (alarm->armed_ns == NEVER)
		arm(alarm, NEVER);
}

/*
 * Ring after the other events that the loop has found. If it is late, they may be the end of a
 * connection on which a request would leave.
 */
static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct alarm *alarm = poll->data;

	(void)status;
	(void)events;
	uv_check_start(&alarm->check, on_check);
}

int alarm_open(struct alarm *alarm, uv_loop_t *loop, void (*ring)(void *user), void *user)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	*alarm = (struct alarm){.fd = fd, .armed_ns = NEVER, .ring = ring, .user = user};
	err = uv_poll_init(loop, &alarm->poll, fd);
	if (err) {
		close(fd);
		alarm->fd = -1;
		return err;
	}
	alarm->poll.data = alarm;
	uv_check_init(loop, &alarm->check);
	alarm->check.data = alarm;
	return uv_poll_start(&alarm->poll, UV_READABLE, on_ready);
}

static void on_close(uv_handle_t *handle)
{
	struct alarm *alarm = handle->data;

	close(alarm->fd);
	alarm->fd = -1;
}

void alarm_close(struct alarm *alarm)
{
	if (alarm->fd < 0)
		return;
	uv_close((uv_handle_t *)&alarm->check, NULL);
	uv_close((uv_handle_t *)&alarm->poll, on_close);
}

void alarm_set(struct alarm *alarm, uint64_t at_ns)
{
	if (at_ns == alarm->armed_ns)
		return;
	alarm->armed_ns = at_ns;
	arm(alarm, at_ns);
}
