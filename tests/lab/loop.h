/* SPDX-License-Identifier: MIT */
/* A small epoll loop with timers of nanosecond resolution (one timerfd, a heap of deadlines). */
#ifndef LAB_LOOP_H
#define LAB_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

/* Embedded in the descriptor's owner. Its callback may free its own source, but no other. */
struct source {
	void (*ready)(struct source *source, uint32_t events);
};

/* Embedded likewise, zeroed except `fire`. Timers fire after the sources of their round. */
struct timer {
	uint64_t deadline_ns;
	size_t place; /* in the heap, from 1; 0: not running */
	void (*fire)(struct timer *timer);
};

struct loop {
	int epoll_fd;
	int timer_fd;
	bool stop;
	uint64_t now_ns; /* when epoll_wait() returned */
	uint64_t armed_ns;
	struct source timer_source;
	struct timer **heap; /* [0] unused */
	size_t count;
	size_t size;
};

/* 0 or -errno. */
int loop_open(struct loop *loop);
void loop_close(struct loop *loop);

/* Run until a callback sets `stop`. 0 or -errno. */
int loop_run(struct loop *loop);

/*
 * @events: EPOLLIN, EPOLLOUT, both or 0. loop_watch() returns 0 or -errno. Closing the descriptor
 * ends the watch, too.
 */
int loop_watch(struct loop *loop, struct source *source, int fd, uint32_t events);
void loop_change(struct loop *loop, struct source *source, int fd, uint32_t events);
void loop_forget(struct loop *loop, int fd);

/* Fire @delay_ns from now. -ENOMEM leaves the timer stopped. Stopping a stopped timer is fine. */
int loop_start_timer(struct loop *loop, struct timer *timer, uint64_t delay_ns);
void loop_stop_timer(struct loop *loop, struct timer *timer);

#endif
