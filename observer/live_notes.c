// SPDX-License-Identifier: MIT
/* A table of rules over a reading; see live_notes.h. */
#include "live_notes.h"

#include <stdio.h>
#include <string.h>

#include "interval.h"
#include "live_view.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

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

	if (share(queue->depth, queue->limit) < NEARLY_FULL)
		return false;
	snprintf(text, size, "accept queue %ju of %ju: accept() is not called often enough",
		 (uintmax_t)queue->depth.value, (uintmax_t)queue->limit.value);
	return true;
}

static bool fds_full(const struct run_service *service, char *text, size_t size)
{
	const struct run_process *fullest = interval_fullest(service);

	if (!fullest || share(fullest->open_fds, fullest->fd_limit) < NEARLY_FULL)
		return false;
	snprintf(text, size, "process %u has %ju of %ju descriptors open", fullest->pid,
		 (uintmax_t)fullest->open_fds.value, (uintmax_t)fullest->fd_limit.value);
	return true;
}

/* More than half of the time in the server is spent before it looks at the request. */
static bool queueing(const struct run_service *service, char *text, size_t size)
{
	const struct run_stage *queue = &service->stages[STAGE_SOCKET_QUEUE];
	const struct run_stage *own = &service->stages[STAGE_SERVICE];
	char waiting[32], working[32];

	if (!queue->measured || !own->measured || !own->histogram.count ||
	    queue->histogram.sum <= own->histogram.sum)
		return false;
	live_format_time(histogram_mean(&queue->histogram), waiting, sizeof(waiting));
	live_format_time(histogram_mean(&own->histogram), working, sizeof(working));
	snprintf(text, size, "requests wait longer (mean %s) than they are worked on (mean %s)",
		 waiting, working);
	return true;
}

static bool multiplexed(const struct run_service *service, char *text, size_t size)
{
	if (!service->losses[RUN_LOSS_MULTIPLEXED])
		return false;
	snprintf(text, size, "%ju HTTP/2 connections: not counted, not timed",
		 (uintmax_t)service->losses[RUN_LOSS_MULTIPLEXED]);
	return true;
}

static bool losses(const struct run_service *service, char *text, size_t size)
{
	size_t used = 0;

	for (enum run_loss i = 0; i < RUN_LOSS_COUNT; i++) {
		if (!service->losses[i] || i == RUN_LOSS_MULTIPLEXED || used >= size)
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s%s %ju",
					 used ? ", " : "losses: ", run_loss_names[i],
					 (uintmax_t)service->losses[i]);
	}
	return used;
}

/* Of the residence; the stages behind it are measured only when asked for. */
static bool missing(const struct run_service *service, char *text, size_t size)
{
	for (enum stage i = 0; i < STAGE_RESIDENCE_END; i++) {
		const struct run_stage *stage = &service->stages[i];

		if (stage->measured)
			continue;
		snprintf(text, size, "%s is not measured: %s", run_stage_names[i],
			 stage->reason ? stage->reason : "no reason given");
		return true;
	}
	return false;
}

static const struct {
	bool critical;
	bool (*applies)(const struct run_service *service, char *text, size_t size);
} rules[] = {
	{true, accept_overflow}, {true, accept_full}, {true, fds_full}, {false, queueing},
	{false, multiplexed},	 {false, losses},     {false, missing},
};

/* Programs' misses and services without a slot concern all. */
static size_t note_run(const struct run *run, struct live_note *notes, size_t size)
{
	uint64_t misses = 0;
	size_t count = 0;

	for (size_t i = 0; run->cost && i < run->cost->program_count; i++)
		misses += run->cost->programs[i].recursion_misses;
	if (run->services_dropped && count < size) {
		notes[count].critical = true;
		snprintf(notes[count++].text, sizeof(notes->text),
			 "%ju services found no slot and are not observed",
			 (uintmax_t)run->services_dropped);
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

static bool concerns(const struct run_finding *finding, const struct run_service *only)
{
	return !only ||
	       (finding->port == only->port && (!finding->netns || finding->netns == only->netns));
}

static size_t note_findings(const struct run *found, const struct run_service *only,
			    struct live_note *notes, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; found && i < found->finding_count && count < size; i++) {
		const struct run_finding *finding = &found->findings[i];
		struct live_note *note = &notes[count];

		if (!concerns(finding, only))
			continue;
		note->critical = !strcmp(finding->severity, "critical");
		snprintf(note->text, sizeof(note->text), "%s: %s", finding->object,
			 finding->what ? finding->what : finding->id);
		text_make_printable(note->text, '?');
		count++;
	}
	return count;
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
