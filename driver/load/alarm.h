/* SPDX-License-Identifier: MIT */
/* A timer with a resolution of nanoseconds; those of libuv count milliseconds. */
#ifndef DRIVER_LOAD_ALARM_H
#define DRIVER_LOAD_ALARM_H

#include <stdint.h>
#include <uv.h>

struct alarm {
	uv_poll_t poll;
	uv_check_t check;
	int fd;		   /* timerfd; -1: not open */
	uint64_t armed_ns; /* UINT64_MAX: not armed */
	uint64_t due_ns;   /* intended time of the ring() in progress */
	void (*ring)(void *user);
	void *user;
};

/* Open the alarm. After -errno there is nothing to close. */
int alarm_open(struct alarm *alarm, uv_loop_t *loop, void (*ring)(void *user), void *user);
/* Close the alarm, even if it is not open. Its handles are gone when the loop has ended. */
void alarm_close(struct alarm *alarm);

/*
 * Ring once, at @at_ns of CLOCK_MONOTONIC or soon after; UINT64_MAX: never. Events that the loop
 * has found by then come before it.
 */
void alarm_set(struct alarm *alarm, uint64_t at_ns);

#endif
