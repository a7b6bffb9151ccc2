// SPDX-License-Identifier: MIT
/* A table of rules over a reading; see notes.h. */
#include "notes.h"

#include <stdio.h>
#include <string.h>

#include "view.h"
#include "sojourn/finding.h"
#include "sojourn/remedy.h"
#include "sojourn/text.h"

/* From this share on, a queue or table is worth a sentence. */
#define NEARLY_FULL 0.8

static double share(struct run_number used, struct run_number limit)
{
	if (!used.known || !limit.known || !limit.value)
		return 0;
	return (double)used.value / (double)limit.value;
}

static bool accept_overflow(const struct run_service *service, char *text, size_t size)
{
	const struct run_accept_queue *queue = &service->accept_queue;

	if (!queue->overflows.known || !queue->overflows.value)
		return false;
	snprintf(text, size, "accept queue overflowed: %ju connections dropped (limit %ju)",
		 (uintmax_t)queue->overflows.value, (uintmax_t)queue->limit.value);
	return true;
}

static bool accept_full(const struct run_service *service, char *text, size_t size)
{
	const struct run_accept_queue *queue = &service->accept_queue;

	for (size_t i = 0; i < service->listener_count; i++) {
		const struct run_listener *one = &service->listeners[i];

		if (share(one->depth, one->limit) < NEARLY_FULL)
			continue;
		snprintf(text, size,
			 "accept queue %ju of %ju at one of %zu listeners (%s %ju): accept() is "
			 "not called often enough",
			 (uintmax_t)one->depth.value, (uintmax_t)one->limit.value,
			 service->listener_count, one->pid.known ? one->comm : "socket",
			 (uintmax_t)(one->pid.known ? one->pid.value : one->inode));
		return true;
	}
	if (share(queue->depth, queue->limit) < NEARLY_FULL)
		return false;
	snprintf(text, size, "accept queue %ju of %ju: accept() is not called often enough",
		 (uintmax_t)queue->depth.value, (uintmax_t)queue->limit.value);
	return true;
}

static bool fds_full(const struct run_service *service, char *text, size_t size)
{
	const struct run_process *fullest = run_fullest(service);

	if (!fullest || share(fullest->open_fds, fullest->fd_limit) < NEARLY_FULL)
		return false;
	snprintf(text, size, "process %u has %ju of %ju descriptors open", fullest->pid,
		 (uintmax_t)fullest->open_fds.value, (uintmax_t)fullest->fd_limit.value);
	return true;
}

static double p99_of(const struct run_service *service, enum stage stage)
{
	return (double)histogram_quantile(&service->stages[stage].histogram, 0.99);
}

static bool queueing(const struct run_service *service, char *text, size_t size)
{
	if (!live_waits(service))
		return false;
	snprintf(text, size, "requests wait longer (p99 %s) than they are worked on (p99 %s)",
		 live_time(p99_of(service, STAGE_SOCKET_QUEUE)),
		 live_time(p99_of(service, STAGE_SERVICE)));
	return true;
}

/* A late accept() and a late first read look alike: docs/measurement.md. */
static bool accept_inferred(const struct run_service *service, char *text, size_t size)
{
	double waiting_ns = p99_of(service, STAGE_ACCEPT_QUEUE);

	if (!run_accept_is_inferred(service->stages) || waiting_ns <= LIVE_WAIT_FLOOR_NS)
		return false;
	snprintf(text, size,
		 "accept or socket queue, p99 %s: accept() is late, or the first read after it; "
		 "--accept-source syscall distinguishes them",
		 live_time(waiting_ns));
	return true;
}

static bool multiplexed(const struct run_service *service, char *text, size_t size)
{
	static const char *const options[RUN_REMEDY_COUNT] = {
		[RUN_REMEDY_NONE] = "",
		[RUN_REMEDY_TLS] = " (--tls)",
		[RUN_REMEDY_TLS_SHOWS] = " (--tls does not show their text)",
		[RUN_REMEDY_NO_HTTP2] = " (--no-http2)",
		[RUN_REMEDY_HTTP] = " (--http)",
		[RUN_REMEDY_FROM_START] = " (--http)",
	};

	if (!service->losses[RUN_LOSS_MULTIPLEXED])
		return false;
	snprintf(text, size, "%ju HTTP/2 connections: not counted, not timed%s",
		 (uintmax_t)service->losses[RUN_LOSS_MULTIPLEXED],
		 options[run_http2_remedy(service)]);
	return true;
}

/* List the losses in the words of a report. */
static bool losses(const struct run_service *service, char *text, size_t size)
{
	size_t used = 0;

	for (enum run_loss i = 0; i < RUN_LOSS_COUNT; i++) {
		if (!service->losses[i] || i == RUN_LOSS_MULTIPLEXED || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s %ju",
					 used ? ", " : "caveats: ", run_loss_names[i],
					 (uintmax_t)service->losses[i]);
	}
	if (used)
		text_words(text);
	return used;
}

/* Name a stage of the residence that is not measured. Later stages are measured only on request. */
static bool missing(const struct run_service *service, char *text, size_t size)
{
	/* Service is checked first: it matters most, and UDP lacks some of the others. */
	enum stage which = STAGE_SERVICE;
	char name[32];

	if (service->stages[which].measured)
		for (which = 0; which < STAGE_RESIDENCE_END; which++)
			if (!service->stages[which].measured)
				break;
	if (which == STAGE_RESIDENCE_END)
		return false;
	snprintf(name, sizeof(name), "%s", run_stage_names[which]);
	snprintf(text, size, "%s is not measured: %s", text_words(name),
		 service->stages[which].reason ? service->stages[which].reason : "no reason given");
	return true;
}

/* Nobody listens on a requested port. A service that has listened before also has a process. */
static bool silent(const struct run_service *service, char *text, size_t size)
{
	if (strcmp(service->protocol, "tcp") != 0 || service->process_count ||
	    !service->connections.known || service->accept_queue.depth.known)
		return false;
	snprintf(text, size, "nothing listens there now: waiting");
	return true;
}

/* In the order of their weight. */
static const struct {
	bool critical;
	bool (*applies)(const struct run_service *service, char *text, size_t size);
} rules[] = {
	{.applies = silent},
	{.applies = accept_overflow, .critical = true},
	{.applies = accept_full, .critical = true},
	{.applies = fds_full, .critical = true},
	{.applies = queueing},
	{.applies = accept_inferred},
	{.applies = multiplexed},
	{.applies = losses},
	{.applies = missing},
};

/* Write the problems that concern no single service, such as events that programs missed. */
static size_t note_run(const struct run *run, struct live_note *notes, size_t size)
{
	uint64_t misses = run_cost_misses(run->cost), closed;
	size_t count = 0;

	if (run->services_dropped && count < size) {
		notes[count].critical = true;
		snprintf(notes[count++].text, sizeof(notes->text),
			 "%ju services found no slot: %ju connections were not observed",
			 (uintmax_t)run->services_dropped, (uintmax_t)run->connections_dropped);
	}
	if (run->reclaimed.services && count < size) {
		notes[count].critical = false;
		snprintf(notes[count++].text, sizeof(notes->text),
			 "%ju services, ended or idle, gave their slots to others: %ju exchanges",
			 (uintmax_t)run->reclaimed.services, (uintmax_t)run->reclaimed.exchanges);
	}
	closed = run->namespaces.not_entered + run->namespaces.left_out;
	if (closed && count < size) {
		notes[count].critical = true;
		snprintf(notes[count++].text, sizeof(notes->text),
			 "%ju network namespaces were not entered: gauges there are not known",
			 (uintmax_t)closed);
	}
	if (misses && count < size) {
		notes[count].critical = true;
		snprintf(notes[count++].text, sizeof(notes->text),
			 "%ju events were not seen by our programs", (uintmax_t)misses);
	}
	return count;
}

static bool note_service(size_t rule, const struct run_service *service, struct live_note *note)
{
	char port[16], text[sizeof(note->text) - sizeof(port) - 2];

	if (!rules[rule].applies(service, text, sizeof(text)))
		return false;
	live_format_port(service, port, sizeof(port));
	snprintf(note->text, sizeof(note->text), "%s: %s", port, text);
	note->critical = rules[rule].critical;
	return true;
}

static size_t note_findings(const struct run *found, const struct run_service *only,
			    struct live_note *notes, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; found && i < found->finding_count && count < size; i++) {
		const struct run_finding *finding = &found->findings[i];
		struct live_note *note = &notes[count];

		if (only && (finding->port != only->port ||
			     (finding->netns && finding->netns != only->netns)))
			continue;
		note->critical = !strcmp(finding->severity, "critical");
		snprintf(note->text, sizeof(note->text), "%s: %s", finding->object,
			 finding->what ? finding->what : finding->id);
		text_make_printable(note->text, '?');
		count++;
	}
	return count;
}

bool live_note_open(const struct live_view *view, const struct run_service *service,
		    struct live_note *ret_note)
{
	const struct live_open open = live_view_open(view, service);
	char port[16], process[64], state[64] = "is slow to answer";

	if (open.urgency == LIVE_CALM)
		return false;
	if (open.urgency == LIVE_HANGS)
		snprintf(state, sizeof(state), "hangs, nothing answered for %s",
			 live_time((double)open.silent_ns));
	ret_note->critical = open.urgency == LIVE_HANGS;
	snprintf(ret_note->text, sizeof(ret_note->text),
		 "%s %s %s: %ju read, %ju unread, oldest %s",
		 live_format_port(service, port, sizeof(port)),
		 live_format_process(service, process, sizeof(process)), state,
		 (uintmax_t)service->open.read.value, (uintmax_t)service->open.unread.value,
		 live_time((double)open.oldest_ns));
	return true;
}

size_t live_notes(const struct run *run, const struct run *found, const struct run_service *only,
		  struct live_note *ret_notes, size_t size)
{
	size_t count = note_findings(found, only, ret_notes, size);

	if (!only)
		count += note_run(run, ret_notes + count, size - count);

	for (size_t rule = 0; rule < ARRAY_SIZE(rules); rule++) {
		for (size_t i = 0; i < run->service_count && count < size; i++) {
			const struct run_service *service = &run->services[i];

			if (!only || service == only)
				count += note_service(rule, service, &ret_notes[count]);
		}
	}
	return count;
}
