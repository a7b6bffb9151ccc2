// SPDX-License-Identifier: MIT
/* From readings to findings, and what could not be seen; see doctor_state.h. */
#include "doctor_state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/clock.h"

void doctor_note(struct doctor_report *report, const char *format, ...)
{
	va_list arguments;

	if (report->note_count == DOCTOR_NOTES)
		return;
	va_start(arguments, format);
	vsnprintf(report->notes[report->note_count++], sizeof(report->notes[0]), format, arguments);
	va_end(arguments);
}

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
		[RESOURCE_PORTS] = true,
		[RESOURCE_ACCEPT_QUEUE] = true,
		[RESOURCE_SYN_QUEUE] = true,
		[RESOURCE_CLOSE_WAIT] = true,
		[RESOURCE_UDP_BUFFER] = true,
		[RESOURCE_PORT_FAILURES] = true,
		[RESOURCE_ADDRESS_FAILURES] = true,
	};
	bool any_port = !resource->port && !resource->other_port;

	if (options->pid &&
	    (of_socket[resource->kind] || resource->kind == RESOURCE_DESCRIPTORS ||
	     resource->kind == RESOURCE_DESCRIPTOR_FAILURES) &&
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

static const struct resource_netns *netns_of(const void *context, uint32_t inode)
{
	const struct doctor *doctor = context;

	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_netns *netns = &doctor->pairs[i].after;

		if (netns->at_ns && netns->inode == inode)
			return netns;
	}
	return NULL;
}

static void note_events(const struct doctor *doctor, struct doctor_report *report)
{
	if (doctor->events_error)
		doctor_note(report,
			    "connect() calls that fail, and who closes first, as it happens: %s "
			    "(needs CAP_BPF and CAP_PERFMON)",
			    strerror(-doctor->events_error));
	if (!doctor->events)
		return;
	if (!resource_events_sees_files(doctor->events))
		doctor_note(report, "EMFILE, ENFILE and EADDRINUSE as they happen: this kernel "
				    "refuses fexit programs ('sojourn doctor --syscalls' counts "
				    "them, at a price)");
	if (!resource_events_sees_depths(doctor->events))
		doctor_note(report, "how deep accept queues get between two readings: "
				    "tp_btf/sk_data_ready is refused (before Linux 6.3)");
	if (doctor->events_after.failures_lost)
		doctor_note(report, "processes and addresses of %llu failed calls",
			    (unsigned long long)doctor->events_after.failures_lost);
	if (doctor->events_after.actions_lost)
		doctor_note(report, "processes and addresses of %llu connections",
			    (unsigned long long)doctor->events_after.actions_lost);
}

static void note_limits(const struct doctor *doctor, struct doctor_report *report)
{
	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_netns *netns = &doctor->pairs[i].after;

		if (!netns->at_ns)
			continue;
		if (netns->error)
			doctor_note(report, "TCP sockets: %s", strerror(-netns->error));
		if (netns->source == SOCKETS_PROCFS)
			doctor_note(report,
				    "limits and drops of listeners, the age of CLOSE_WAIT and "
				    "ports that are only bound: /proc/net/tcp does not tell");
		if (netns->ports.others)
			doctor_note(report,
				    "ports of %llu sockets towards lighter destinations: only the "
				    "heaviest are counted one by one",
				    (unsigned long long)netns->ports.others);
		if (netns->listeners.left_out + netns->close_wait.left_out)
			doctor_note(report, "%zu sockets more than are kept",
				    (size_t)netns->listeners.left_out + netns->close_wait.left_out);
	}
	if (!doctor->host_after.of[NUMBER_TCP_PAGES_MAX].known)
		doctor_note(report, "the host's limits of orphans and TCP memory: only the first "
				    "network namespace shows them");
	if (doctor->processes.unseen)
		doctor_note(
			report,
			"descriptors and sockets of %llu processes: needs root or CAP_SYS_PTRACE",
			(unsigned long long)doctor->processes.unseen);
	if (doctor->targets.refused)
		doctor_note(report,
			    "network namespaces of %zu processes: needs root or CAP_SYS_PTRACE",
			    doctor->targets.refused);
	note_events(doctor, report);
	if (!report->seconds)
		doctor_note(report,
			    "rates, predictions and new drops: --sample 0 takes one reading");
}

int doctor_conclude(struct doctor *doctor, struct doctor_report *report)
{
	struct resource_list *list = &report->resources;

	for (size_t i = 0; i < doctor->targets.count; i++) {
		const struct resource_pair *pair = &doctor->pairs[i];

		if (!pair->after.at_ns)
			continue;
		report->namespaces++;
		resource_measure_ports(pair, &doctor->processes, doctor->points, list);
		resource_measure_sockets(pair, list);
		resource_measure_limits(pair, list);
	}
	if (!report->namespaces)
		return -ENODATA;
	resource_measure_host(&doctor->host_before, &doctor->host_after, list);
	resource_measure_processes(
		&doctor->processes, doctor->points,
		doctor->points ? (double)doctor->point_ns * (doctor->points - 1) / NSEC_PER_SEC : 0,
		list);
	resource_measure_events(&doctor->events_before, &doctor->events_after, netns_of, doctor,
				list);
	select_resources(doctor->options, list);
	note_limits(doctor, report);
	return diagnose(list, &report->findings);
}
