// SPDX-License-Identifier: MIT
/* epoll, and a binary heap of timers with one timerfd (epoll_wait's timeouts are not precise). */
#include "loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "sojourn/clock.h"

#define ROUND_EVENTS 128

static void on_timer_fd(struct source *source, uint32_t events)
{
	struct loop *loop = container_of(source, struct loop, timer_source);
	uint64_t expirations;

	(void)events;
	/* The heap knows which timers are due. */
	if (read(loop->timer_fd, &expirations, sizeof(expirations)) > 0)
		loop->armed_ns = 0;
}

int loop_open(struct loop *loop)
{
	int err;

	*loop = (struct loop){.timer_source.ready = on_timer_fd};
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = loop->epoll_fd < 0 || loop->timer_fd < 0 ? -errno : 0;
	if (!err)
		err = loop_watch(loop, &loop->timer_source, loop->timer_fd, EPOLLIN);
	if (err)
		loop_close(loop);
	return err;
}

void loop_close(struct loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	free(loop->heap);
}

int loop_watch(struct loop *loop, struct source *source, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

void loop_change(struct loop *loop, struct source *source, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

void loop_forget(struct loop *loop, int fd)
{
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void place_timer(struct loop *loop, struct timer *timer, size_t place)
{
	loop->heap[place] = timer;
	timer->place = place;
}

static void sift_up(struct loop *loop, struct timer *timer, size_t place)
{
	for (; place > 1; place /= 2) {
		struct timer *parent = loop->heap[place / 2];

		if (parent->deadline_ns <= timer->deadline_ns)
			break;
		place_timer(loop, parent, place);
	}
	place_timer(loop, timer, place);
}

static void sift_down(struct loop *loop, struct timer *timer, size_t place)
{
	for (size_t child; (child = 2 * place) <= loop->count; place = child) {
		if (child < loop->count &&
		    loop->heap[child + 1]->deadline_ns < loop->heap[child]->deadline_ns)
			child++;
		if (timer->deadline_ns <= loop->heap[child]->deadline_ns)
			break;
		place_timer(loop, loop->heap[child], place);
	}
	place_timer(loop, timer, place);
}

static int grow_heap(struct loop *loop)
{
	size_t size = loop->size ? 2 * loop->size : 64;
	struct timer **heap = realloc(loop->heap, size * sizeof(struct timer *));

	if (!heap)
		return -ENOMEM;
	loop->heap = heap;
	loop->size = size;
	return 0;
}

int loop_start_timer(struct loop *loop, struct timer *timer, uint64_t delay_ns)
{
	loop_stop_timer(loop, timer);
	if (loop->count + 1 >= loop->size && grow_heap(loop))
		return -ENOMEM;
	timer->deadline_ns = clock_now_ns() + delay_ns;
	loop->count++;
	sift_up(loop, timer, loop->count);
	return 0;
}

void loop_stop_timer(struct loop *loop, struct timer *timer)
{
	size_t place = timer->place;
	struct timer *last;

	if (!place)
		return;
	timer->place = 0;
	last = loop->heap[loop->count--];
	if (last == timer)
		return;
	if (place > 1 && loop->heap[place / 2]->deadline_ns > last->deadline_ns)
		sift_up(loop, last, place);
	else
		sift_down(loop, last, place);
}

/*
 * Fire the timers that were due when the round started. A timer restarted by its callback waits for
 * the next round.
 */
static void fire_timers(struct loop *loop)
{
	uint64_t now = loop->count ? clock_now_ns() : 0;

	while (loop->count && loop->heap[1]->deadline_ns <= now && !loop->stop) {
		struct timer *timer = loop->heap[1];

		loop_stop_timer(loop, timer);
		timer->fire(timer);
	}
}

/* Arm for the first deadline. A stopped timer leaves it armed too early, which only costs a round. */
static void arm_timer_fd(struct loop *loop)
{
	uint64_t next = loop->count ? loop->heap[1]->deadline_ns : 0;
	struct itimerspec when = {
		.it_value = {(time_t)(next / NSEC_PER_SEC), (long)(next % NSEC_PER_SEC)}};

	if (!next || next == loop->armed_ns)
		return;
	timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
	loop->armed_ns = next;
}

int loop_run(struct loop *loop)
{
	struct epoll_event events[ROUND_EVENTS];

	while (!loop->stop) {
		int count;

		arm_timer_fd(loop);
		count = epoll_wait(loop->epoll_fd, events, ROUND_EVENTS, -1);
		if (count < 0 && errno != EINTR)
			return -errno;
		loop->now_ns = clock_now_ns();
		for (int i = 0; i < count && !loop->stop; i++) {
			struct source *source = events[i].data.ptr;

			source->ready(source, events[i].events);
		}
		fire_timers(loop);
	}
	return 0;
}
