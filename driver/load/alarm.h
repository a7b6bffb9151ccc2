/* SPDX-License-Identifier: MIT */
/* A call at a time in nanoseconds: libuv's timers count in milliseconds. */
#ifndef DRIVER_LOAD_ALARM_H
#define DRIVER_LOAD_ALARM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct alarm {
	uv_poll_t poll;
	int fd;		   /* timerfd; -1: not open */
	uint64_t armed_ns; /* UINT64_MAX: not */
	uint64_t due_ns;   /* when it should have rung, while it does */
	void (*ring)(void *user);
	void *user;
};

/* -errno; then there is nothing to close. */
int alarm_open(struct alarm *alarm, uv_loop_t *loop, void (*ring)(void *user), void *user);
/* The handle is gone when the loop has run out; takes one that is not open. */
void alarm_close(struct alarm *alarm);

/* Rings once, at @at_ns of CLOCK_MONOTONIC or soon after; UINT64_MAX: never. */
void alarm_set(struct alarm *alarm, uint64_t at_ns);

#endif
