// SPDX-License-Identifier: MIT
/*
 * The reference for the driver's punctuality: a program that waits for the same times in the same
 * way (a timerfd and epoll_wait()), and sends nothing. Its lateness is the machine's.
 *
 *     bare_timer RATE SECONDS    prints each lateness in ns, sorted
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "sojourn/clock.h"

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void wait_until(int timer, int epoll, uint64_t at_ns)
{
	struct itimerspec spec = {.it_value = {.tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
					       .tv_nsec = (long)(at_ns % NSEC_PER_SEC)}};
	struct epoll_event event;

	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL) ||
	    epoll_wait(epoll, &event, 1, -1) != 1)
		fail("bare_timer");
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN};
	uint64_t rate = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t count = rate ? rate * strtoull(argv[2], NULL, 10) : 0;
	uint64_t *late_ns = count ? calloc(count, sizeof(*late_ns)) : NULL;
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), epoll = epoll_create1(0);
	uint64_t begin_ns = clock_now_ns() + NSEC_PER_MSEC;

	if (!late_ns || timer < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event))
		fail("bare_timer");
	for (uint64_t i = 0; i < count; i++) {
		uint64_t at_ns = begin_ns + i * NSEC_PER_SEC / rate;

		if (clock_now_ns() < at_ns)
			wait_until(timer, epoll, at_ns);
		late_ns[i] = clock_now_ns() - at_ns;
	}
	qsort(late_ns, count, sizeof(*late_ns), compare);
	for (uint64_t i = 0; i < count; i++)
		printf("%" PRIu64 "\n", late_ns[i]);
	free(late_ns);
	return 0;
}
