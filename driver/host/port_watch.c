// SPDX-License-Identifier: MIT
/*
 * Looks at the source ports at intervals; see port_watch.h. Neighbour: port_count.c (one look).
 */
#include "port_watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "transport/host_limits.h"
#include "port_count.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

/* Look at most once per interval and second, and after 200 times the last look's CPU time. */
#define APART_NS  NSEC_PER_SEC
#define CPU_SHARE 200
#define LOOKS_MAX (2 * RUN_INTERVALS_MAX)

struct look {
	uint64_t at_ns;
	uint64_t used;
};

struct port_watch {
	struct port_count *count;
	uint64_t ports; /* per source address */
	uint64_t apart_ns;
	uint64_t cpu_ns; /* of the last look */
	pthread_t thread;
	bool running;
	int stop_fd;
	struct look looks[LOOKS_MAX];
	size_t look_count;
	bool failed;
	struct port_fullest last;
};

static void look(struct port_watch *watch)
{
	uint64_t before_ns = clock_thread_cpu_ns();

	watch->failed = port_count_look(watch->count, &watch->last) < 0;
	watch->cpu_ns = clock_thread_cpu_ns() - before_ns;
	if (watch->failed)
		return;
	/* In a very long phase keep every other look: intervals have become longer, too. */
	if (watch->look_count == LOOKS_MAX) {
		for (size_t i = 0; i < LOOKS_MAX / 2; i++)
			watch->looks[i] = watch->looks[2 * i + 1];
		watch->look_count = LOOKS_MAX / 2;
		watch->apart_ns *= 2;
	}
	watch->looks[watch->look_count++] =
		(struct look){.at_ns = clock_now_ns(), .used = watch->last.used};
}

static bool is_over(struct port_watch *watch, uint64_t until_ns)
{
	struct pollfd fd = {.fd = watch->stop_fd, .events = POLLIN};
	uint64_t now_ns = clock_now_ns();
	uint64_t left_ms = until_ns > now_ns ? (until_ns - now_ns) / NSEC_PER_MSEC + 1 : 0;

	return poll(&fd, 1, left_ms < 3600000 ? (int)left_ms : 3600000) != 0;
}

static void *run(void *user)
{
	const struct sched_param none = {0};
	struct port_watch *watch = user;
	uint64_t next_ns = clock_now_ns() + watch->apart_ns, rest_ns;

	/* Looking must not affect the workers' times. */
	(void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
	while (!is_over(watch, next_ns)) {
		if (clock_now_ns() < next_ns)
			continue;
		look(watch);
		rest_ns = CPU_SHARE * watch->cpu_ns;
		while (next_ns <= clock_now_ns())
			next_ns += rest_ns > watch->apart_ns ? rest_ns : watch->apart_ns;
	}
	return NULL;
}

static int open_watch(struct port_watch *watch, const struct source_set *sources,
		      uint64_t interval_ns, const struct target *const *targets, size_t count)
{
	uint32_t range = limits_port_range();
	int err = port_count_new(sources, range, &watch->count);

	/* Add targets with connections; datagrams have ports of their own. */
	for (size_t i = 0; i < count && !err; i++)
		err = port_count_add(watch->count, targets[i]);
	if (err)
		return err;
	watch->ports = limits_ports(range);
	watch->apart_ns = interval_ns > APART_NS ? interval_ns : APART_NS;
	watch->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (watch->stop_fd < 0)
		return -errno;
	err = -pthread_create(&watch->thread, NULL, run, watch);
	watch->running = !err;
	return err;
}

struct port_watch *port_watch_start(const struct source_set *sources, uint64_t interval_ns,
				    const struct target *const *targets, size_t count)
{
	struct port_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->stop_fd = -1;
	if (!open_watch(watch, sources, interval_ns, targets, count))
		return watch;
	port_watch_free(watch);
	return NULL;
}

void port_watch_stop(struct port_watch *watch)
{
	if (!watch || !watch->running)
		return;
	(void)eventfd_write(watch->stop_fd, 1);
	pthread_join(watch->thread, NULL);
	watch->running = false;
	look(watch);
}

void port_watch_free(struct port_watch *watch)
{
	if (!watch)
		return;
	port_watch_stop(watch);
	if (watch->stop_fd >= 0)
		close(watch->stop_fd);
	port_count_free(watch->count);
	free(watch);
}

/* A look near an interval's end, slightly early or late, belongs to that interval. */
static size_t interval_of(const struct run_driver *driver, uint64_t since_ns)
{
	size_t ends = (size_t)((since_ns + driver->interval_ns / 2) / driver->interval_ns);

	return ends ? ends - 1 : SIZE_MAX;
}

void port_watch_fill(const struct port_watch *watch, uint64_t begin_ns, struct run_driver *driver)
{
	size_t count = watch ? watch->look_count : 0;

	for (size_t i = 0; i < count && driver->interval_count; i++) {
		uint64_t at_ns = watch->looks[i].at_ns;
		size_t of = at_ns > begin_ns ? interval_of(driver, at_ns - begin_ns) : SIZE_MAX;

		/* The last look is after the end, however short the last interval is. */
		if (i + 1 == count && !watch->failed)
			of = driver->interval_count - 1;
		if (of < driver->interval_count)
			driver->intervals[of].ports =
				(struct run_number){true, watch->looks[i].used};
	}
	if (!count || watch->failed)
		return;
	driver->ports.used = (struct run_number){true, watch->last.used};
	driver->ports.capacity =
		(struct run_number){true, watch->ports * port_count_sources(watch->count)};
	units_format_endpoint(watch->last.towards.server, watch->last.towards.server_port,
			      driver->ports.towards, sizeof(driver->ports.towards));
}
