// SPDX-License-Identifier: MIT
/* The order of a look: first reading, sample, second reading, owners, findings. */
#include "doctor_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reserve.h"
#include "sojourn/clock.h"

#define POINT_NS (100 * NSEC_PER_MSEC)

int doctor_open(const struct doctor_options *options, struct doctor **ret_doctor)
{
	CLEANUP(cleanup_doctor_close) struct doctor *doctor = calloc(1, sizeof(*doctor));
	int r;

	if (!doctor)
		return -ENOMEM;
	doctor->options = options;
	/* What it needs later it opens now: it works on when the host runs out of files. */
	doctor->home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	doctor->source = options->procfs ? SOCKETS_PROCFS : resource_sockets_source();
	r = doctor_targets_find(options, &doctor->targets);
	if (r < 0)
		return r;
	doctor->pairs = calloc(doctor->targets.count, sizeof(*doctor->pairs));
	if (!doctor->pairs)
		return -ENOMEM;
	*ret_doctor = TAKE_PTR(doctor);
	return 0;
}

void doctor_watch(struct doctor *doctor, struct resource_events *events, int error)
{
	doctor->events = events;
	doctor->events_error = error;
}

void doctor_close(struct doctor *doctor)
{
	for (size_t i = 0; doctor && doctor->pairs && i < doctor->targets.count; i++) {
		resource_netns_free(&doctor->pairs[i].before);
		resource_netns_free(&doctor->pairs[i].after);
		resource_owners_free(&doctor->pairs[i].owners);
	}
	if (!doctor)
		return;
	events_reading_free(&doctor->events_before);
	events_reading_free(&doctor->events_after);
	free(doctor->pairs);
	doctor_targets_free(&doctor->targets);
	resource_process_free(&doctor->processes);
	cleanup_close(&doctor->home_fd);
	free(doctor);
}

/* ---- readings ---- */

static int read_target(struct doctor *doctor, size_t index, uint64_t sample_ns,
		       struct resource_netns *ret_netns)
{
	const struct doctor_target *target = &doctor->targets.entries[index];
	int r = resource_netns_enter(target->fd);

	if (r < 0)
		return r;
	r = resource_netns_read(doctor->source, (uint32_t)(sample_ns / NSEC_PER_MSEC), ret_netns);
	if (!r)
		memcpy(ret_netns->name, target->name, sizeof(target->name));
	if (target->fd >= 0)
		(void)resource_netns_enter(doctor->home_fd);
	return r;
}

static void note_target(const struct doctor *doctor, size_t index, int r,
			struct doctor_report *report)
{
	if (r < 0)
		doctor_note(report, "network namespace %s: %s%s",
			    doctor->targets.entries[index].name, strerror(-r),
			    r == -EPERM ? " (entering it needs CAP_SYS_ADMIN)" : "");
}

static void read_before(struct doctor *doctor)
{
	resource_numbers_read(&doctor->host_before);
	for (size_t i = 0; i < doctor->targets.count; i++) {
		struct resource_pair *pair = &doctor->pairs[i];

		resource_netns_free(&pair->before);
		(void)read_target(doctor, i, 0, &pair->before);
	}
}

static void read_after(struct doctor *doctor, uint64_t sample_ns, struct doctor_report *report)
{
	resource_numbers_read(&doctor->host_after);
	for (size_t i = 0; i < doctor->targets.count; i++) {
		struct resource_pair *pair = &doctor->pairs[i];

		resource_netns_free(&pair->after);
		note_target(doctor, i, read_target(doctor, i, sample_ns, &pair->after), report);
		pair->seconds = (double)(pair->after.at_ns - pair->before.at_ns) / NSEC_PER_SEC;
		report->sockets += pair->before.sockets + pair->after.sockets;
	}
}

static void read_events(struct doctor *doctor, struct events_reading *reading)
{
	events_reading_free(reading);
	if (doctor->events)
		(void)resource_events_read(doctor->events, reading);
}

/* The second reading of the last sample becomes the first of the next. */
static void advance(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		struct resource_pair *pair = &doctor->pairs[i];

		resource_netns_free(&pair->before);
		pair->before = pair->after;
		pair->after = (struct resource_netns){};
	}
	doctor->host_before = doctor->host_after;
	events_reading_free(&doctor->events_before);
	doctor->events_before = doctor->events_after;
	doctor->events_after = (struct events_reading){};
}

static void find_owners(struct doctor *doctor, struct doctor_report *report)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		struct resource_pair *pair = &doctor->pairs[i];
		const struct doctor_target *target = &doctor->targets.entries[i];
		int r;

		resource_owners_free(&pair->owners);
		if (!pair->after.at_ns || resource_netns_enter(target->fd) < 0)
			continue;
		r = resource_owners_find(&pair->before, &pair->after, doctor->options->pid != 0,
					 &pair->owners);
		if (target->fd >= 0)
			(void)resource_netns_enter(doctor->home_fd);
		if (r < 0)
			doctor_note(report, "owners of sockets: %s", strerror(-r));
		report->walks += pair->owners.walks;
	}
}

static int read_processes(struct doctor *doctor)
{
	RESERVE_SCOPE;

	resource_process_free(&doctor->processes);
	doctor->points = 0;
	doctor->point_ns = POINT_NS;
	return resource_process_list(doctor->options->pid, &doctor->processes);
}

int doctor_begin(struct doctor *doctor)
{
	RESERVE_SCOPE;
	int r = read_processes(doctor);

	if (r < 0)
		return r;
	read_before(doctor);
	read_events(doctor, &doctor->events_before);
	return 0;
}

/* Every other point goes, so that the rest are twice as far apart. */
static void thin(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->processes.count; i++) {
		uint32_t *trend = doctor->processes.entries[i].trend;

		for (unsigned int j = 0; j < TREND_POINTS / 2; j++)
			trend[j] = trend[2 * j];
	}
	doctor->points = TREND_POINTS / 2;
	doctor->point_ns *= 2;
}

void doctor_point(struct doctor *doctor, uint64_t interval_ns)
{
	uint64_t now_ns = clock_now_ns();
	RESERVE_SCOPE;

	if (!doctor->points)
		doctor->point_ns = interval_ns;
	/* A late one would bend the line: it is left out, and with it the trend so far. */
	if (doctor->points && now_ns > doctor->next_ns + doctor->point_ns / 4)
		doctor->points = 0, doctor->point_ns = interval_ns;
	if (doctor->points && now_ns + doctor->point_ns / 4 < doctor->next_ns)
		return;
	resource_process_point(&doctor->processes, doctor->points++);
	doctor->next_ns = doctor->points == 1 ? now_ns + doctor->point_ns
					      : doctor->next_ns + doctor->point_ns;
	if (doctor->points == TREND_POINTS)
		thin(doctor);
}

int doctor_end(struct doctor *doctor, struct doctor_report *ret_report)
{
	uint64_t cpu_ns = clock_process_cpu_ns(), from_ns = doctor->pairs[0].before.at_ns;
	uint64_t sample_ns = from_ns ? clock_now_ns() - from_ns : 0;
	struct doctor_report report = {.wall_ns = clock_wall_ns()};
	RESERVE_SCOPE;
	int r;

	read_after(doctor, sample_ns, &report);
	read_events(doctor, &doctor->events_after);
	resource_process_count(&doctor->processes);
	report.seconds = doctor->pairs[0].seconds * !!sample_ns;
	find_owners(doctor, &report);
	r = doctor_conclude(doctor, &report);
	report.cpu_ns = clock_process_cpu_ns() - cpu_ns;
	if (r < 0) {
		doctor_report_free(&report);
		return r;
	}
	*ret_report = report;
	return 0;
}

static void take_point(struct doctor *doctor, unsigned int point)
{
	RESERVE_SCOPE;

	resource_process_point(&doctor->processes, point);
}

/* Sleeps for @sample_ns, with points of the trend in between. -EINTR: asked to stop. */
static int wait_sample(struct doctor *doctor, uint64_t sample_ns)
{
	unsigned int points = (unsigned int)(sample_ns / POINT_NS) + 1;
	uint64_t from_ns = clock_now_ns();

	points = points < 5 ? 5 : points > TREND_POINTS ? TREND_POINTS : points;
	take_point(doctor, 0);
	for (unsigned int i = 1; i < points; i++) {
		uint64_t at = from_ns + sample_ns * i / (points - 1), now = clock_now_ns();
		struct timespec rest = {};

		if (at > now) {
			rest.tv_sec = (time_t)((at - now) / NSEC_PER_SEC);
			rest.tv_nsec = (long)((at - now) % NSEC_PER_SEC);
		}
		if (sigtimedwait(&doctor->stop, NULL, &rest) > 0)
			return -EINTR;
		take_point(doctor, i);
	}
	doctor->points = points;
	doctor->point_ns = sample_ns / (points - 1);
	return 0;
}

/* From now on a signal ends a sample, and then the program. */
static void block_signals(struct doctor *doctor)
{
	sigemptyset(&doctor->stop);
	sigaddset(&doctor->stop, SIGINT);
	sigaddset(&doctor->stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &doctor->stop, NULL);
}

int doctor_look(struct doctor *doctor, uint64_t sample_ns, struct doctor_report *ret_report)
{
	uint64_t cpu_ns = clock_process_cpu_ns();
	int r = 0;

	block_signals(doctor);
	advance(doctor);
	if (sample_ns && !doctor->pairs[0].before.at_ns)
		r = doctor_begin(doctor);
	else
		r = read_processes(doctor);
	/* Also where it failed: who watches tries again, not at once. */
	if (sample_ns && wait_sample(doctor, sample_ns) < 0)
		r = -EINTR;
	if (!r)
		r = doctor_end(doctor, ret_report);
	if (!r)
		ret_report->cpu_ns = clock_process_cpu_ns() - cpu_ns;
	return r;
}

void doctor_report_free(struct doctor_report *report)
{
	diagnose_free(&report->findings);
	resource_list_free(&report->resources);
}
