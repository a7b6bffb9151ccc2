// SPDX-License-Identifier: MIT
/* The order of a look: first reading, sample, second reading, owners, findings. */
#include "doctor_look.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_targets.h"
#include "resource_events.h"
#include "sojourn/clock.h"

#define POINT_NS (100 * NSEC_PER_MSEC)

struct doctor {
	const struct doctor_options *options;
	struct doctor_targets targets;
	struct resource_pair *pairs; /* one per target */
	struct process_list processes;
	unsigned int points;
	struct resource_events *events; /* NULL: not watched */
	int events_error;
	int home_fd;
	enum socket_source source;
	sigset_t stop;
};

__attribute__((format(printf, 2, 3))) static void note(struct doctor_report *report,
						       const char *format, ...)
{
	va_list arguments;

	if (report->note_count == DOCTOR_NOTES)
		return;
	va_start(arguments, format);
	vsnprintf(report->notes[report->note_count++], sizeof(report->notes[0]), format, arguments);
	va_end(arguments);
}

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
	sigemptyset(&doctor->stop);
	sigaddset(&doctor->stop, SIGINT);
	sigaddset(&doctor->stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &doctor->stop, NULL);
	if (options->watch)
		doctor->events_error = resource_events_open(&doctor->events);
	*ret_doctor = TAKE_PTR(doctor);
	return 0;
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
	resource_events_close(doctor->events);
	free(doctor->pairs);
	doctor_targets_free(&doctor->targets);
	resource_process_free(&doctor->processes);
	cleanup_close(&doctor->home_fd);
	free(doctor);
}

/* ---- readings ---- */

static int read_target(struct doctor *doctor, size_t index, uint64_t sample_ns)
{
	const struct doctor_target *target = &doctor->targets.entries[index];
	struct resource_pair *pair = &doctor->pairs[index];
	int r;

	/* The last reading becomes the first of this sample. */
	resource_netns_free(&pair->before);
	pair->before = pair->after;
	pair->after = (struct resource_netns){};
	r = resource_netns_enter(target->fd);
	if (r < 0)
		return r;
	r = resource_netns_read(doctor->source, (uint32_t)(sample_ns / NSEC_PER_MSEC),
				&pair->after);
	if (!r) {
		memcpy(pair->after.name, target->name, sizeof(target->name));
		pair->seconds = (double)(pair->after.at_ns - pair->before.at_ns) / NSEC_PER_SEC;
	}
	if (target->fd >= 0)
		(void)resource_netns_enter(doctor->home_fd);
	return r;
}

static void read_all(struct doctor *doctor, uint64_t sample_ns, struct doctor_report *report)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_netns *after = &doctor->pairs[i].after;
		int r = read_target(doctor, i, sample_ns);

		if (r < 0)
			note(report, "network namespace %s: %s%s", doctor->targets.entries[i].name,
			     strerror(-r), r == -EPERM ? " (entering it needs CAP_SYS_ADMIN)" : "");
		report->sockets += after->sockets;
	}
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
			note(report, "owners of sockets: %s", strerror(-r));
		report->walks += pair->owners.walks;
	}
}

/* Sleeps until @until_ns, with points of the trend in between. -EINTR: asked to stop. */
static int wait_sample(struct doctor *doctor, uint64_t from_ns, uint64_t sample_ns)
{
	unsigned int points = (unsigned int)(sample_ns / POINT_NS) + 1;

	points = points < 5 ? 5 : points > TREND_POINTS ? TREND_POINTS : points;
	for (unsigned int i = 1; i < points; i++) {
		uint64_t at = from_ns + sample_ns * i / (points - 1), now = clock_now_ns();
		struct timespec rest = {};

		if (at > now) {
			rest.tv_sec = (time_t)((at - now) / NSEC_PER_SEC);
			rest.tv_nsec = (long)((at - now) % NSEC_PER_SEC);
		}
		if (sigtimedwait(&doctor->stop, NULL, &rest) > 0)
			return -EINTR;
		resource_process_point(&doctor->processes, i);
	}
	doctor->points = points;
	return 0;
}

static int read_processes(struct doctor *doctor)
{
	resource_process_free(&doctor->processes);
	doctor->points = 0;
	return resource_process_list(doctor->options->pid, &doctor->processes);
}

/* ---- findings ---- */

static bool owned_by(const struct resource *resource, uint32_t pid)
{
	for (size_t i = 0; i < resource->owner_count; i++) {
		if (resource->owners[i].pid == pid)
			return true;
	}
	return false;
}

/* The host's and the namespace's limits concern every process and port. */
static bool selected(const struct doctor_options *options, const struct resource *resource)
{
	static const bool of_socket[RESOURCE_KINDS] = {
		[RESOURCE_PORTS] = true,      [RESOURCE_ACCEPT_QUEUE] = true,
		[RESOURCE_SYN_QUEUE] = true,  [RESOURCE_CLOSE_WAIT] = true,
		[RESOURCE_UDP_BUFFER] = true, [RESOURCE_PORT_FAILURES] = true,
	};
	bool any_port = !resource->port && !resource->other_port;

	if (options->pid && (of_socket[resource->kind] || resource->kind == RESOURCE_DESCRIPTORS) &&
	    !owned_by(resource, options->pid))
		return false;
	return !options->port || !of_socket[resource->kind] || any_port ||
	       resource->port == options->port || resource->other_port == options->port;
}

static void select_resources(const struct doctor_options *options, struct resource_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!selected(options, &list->entries[i]))
			continue;
		if (kept != i)
			list->entries[kept] = list->entries[i];
		kept++;
	}
	list->count = kept;
}

static const struct resource_netns *netns_of(const struct doctor *doctor, uint32_t inode)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_netns *netns = &doctor->pairs[i].after;

		if (netns->at_ns && netns->inode == inode)
			return netns;
	}
	return NULL;
}

static void note_limits(const struct doctor *doctor, struct doctor_report *report)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_netns *netns = &doctor->pairs[i].after;

		if (!netns->at_ns)
			continue;
		if (netns->error)
			note(report, "TCP sockets: %s", strerror(-netns->error));
		if (netns->source == SOCKETS_PROCFS)
			note(report, "limits and drops of listeners, the age of CLOSE_WAIT and "
				     "ports that are only bound: /proc/net/tcp does not tell");
		if (netns->ports.others)
			note(report,
			     "ports of %llu sockets towards lighter destinations: only the "
			     "heaviest are counted one by one",
			     (unsigned long long)netns->ports.others);
		if (netns->listeners.left_out + netns->close_wait.left_out)
			note(report, "%zu sockets more than are kept",
			     (size_t)netns->listeners.left_out + netns->close_wait.left_out);
	}
	if (doctor->processes.unseen)
		note(report,
		     "descriptors and sockets of %llu processes: needs root or CAP_SYS_PTRACE",
		     (unsigned long long)doctor->processes.unseen);
	if (doctor->targets.refused)
		note(report, "network namespaces of %zu processes: needs root or CAP_SYS_PTRACE",
		     doctor->targets.refused);
	if (doctor->events_error)
		note(report,
		     "connect() calls that fail, as they happen: %s (needs CAP_BPF and "
		     "CAP_PERFMON)",
		     strerror(-doctor->events_error));
	if (doctor->events && resource_events_lost(doctor->events))
		note(report, "processes and destinations of %llu failed connect() calls",
		     (unsigned long long)resource_events_lost(doctor->events));
	if (!report->seconds)
		note(report, "rates, predictions and new drops: --sample 0 takes one reading");
}

/* The kernel tells of every namespace: only those that are looked at concern us. */
static void measure_events(struct doctor *doctor, struct resource_list *list)
{
	size_t kept = list->count;

	if (doctor->events)
		resource_events_measure(doctor->events, list);
	for (size_t i = kept; i < list->count; i++) {
		const struct resource_netns *netns = netns_of(doctor, list->entries[i].netns);

		if (!netns)
			continue;
		list->entries[kept] = list->entries[i];
		memcpy(list->entries[kept++].netns_name, netns->name, sizeof(netns->name));
	}
	list->count = kept;
}

static int conclude(struct doctor *doctor, struct doctor_report *report)
{
	struct resource_list *list = &report->resources;

	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_pair *pair = &doctor->pairs[i];

		if (!pair->after.at_ns)
			continue;
		report->namespaces++;
		resource_measure_ports(pair, list);
		resource_measure_sockets(pair, list);
		resource_measure_limits(pair, list);
		if (report->namespaces == 1)
			resource_measure_host(&pair->after.numbers, list);
	}
	if (!report->namespaces)
		return -ENODATA;
	resource_measure_processes(&doctor->processes, doctor->points, report->seconds, list);
	measure_events(doctor, list);
	select_resources(doctor->options, list);
	note_limits(doctor, report);
	return diagnose(list, &report->findings);
}

int doctor_look(struct doctor *doctor, uint64_t sample_ns, struct doctor_report *ret_report)
{
	uint64_t cpu_ns = clock_process_cpu_ns(), from_ns;
	struct doctor_report report = {};
	int r = read_processes(doctor);

	if (r < 0)
		return r;
	resource_process_point(&doctor->processes, 0);
	if (sample_ns && !doctor->pairs[0].after.at_ns)
		read_all(doctor, sample_ns, &report);
	from_ns = doctor->pairs[0].after.at_ns ? doctor->pairs[0].after.at_ns : clock_now_ns();
	if (sample_ns)
		r = wait_sample(doctor, clock_now_ns(), sample_ns);
	if (!r) {
		report.note_count = 0;
		report.wall_ns = clock_wall_ns();
		read_all(doctor, sample_ns, &report);
		report.seconds = sample_ns ? (double)(clock_now_ns() - from_ns) / NSEC_PER_SEC : 0;
		find_owners(doctor, &report);
		r = conclude(doctor, &report);
	}
	report.cpu_ns = clock_process_cpu_ns() - cpu_ns;
	if (r < 0) {
		doctor_report_free(&report);
		return r;
	}
	*ret_report = report;
	return 0;
}

void doctor_report_free(struct doctor_report *report)
{
	diagnose_free(&report->findings);
	resource_list_free(&report->resources);
}
