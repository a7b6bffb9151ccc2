// SPDX-License-Identifier: MIT
/* Resting slots and due requests. Neighbours: schedule.c (when), worker.c (sends). */
#include "pacer.h"

#include <errno.h>
#include <stdlib.h>

static bool is_open_loop(const struct pacer *pacer)
{
	return pacer->spec.arrival != SCHEDULE_CLOSED;
}

int pacer_open(struct pacer *pacer, const struct schedule_spec *spec, uint32_t sharer,
	       uint32_t sharers, uint32_t slots)
{
	*pacer =
		(struct pacer){.spec = *spec, .sharer = sharer, .sharers = sharers, .slots = slots};
	pacer->rest = calloc(slots, sizeof(*pacer->rest));
	pacer->returned_ns = calloc(slots, sizeof(*pacer->returned_ns));
	pacer->random = spec->seed + sharer * 0x9fb21c651e98df25ULL;
	if (pacer->rest && pacer->returned_ns)
		return 0;
	pacer_close(pacer);
	return -ENOMEM;
}

void pacer_close(struct pacer *pacer)
{
	free(pacer->rest);
	free(pacer->returned_ns);
	*pacer = (struct pacer){0};
}

static void swap(struct pacer_rest *a, struct pacer_rest *b)
{
	struct pacer_rest kept = *a;

	*a = *b;
	*b = kept;
}

static void heap_push(struct pacer *pacer, struct pacer_rest entry)
{
	struct pacer_rest *heap = pacer->rest;
	uint32_t i = pacer->resting++;

	heap[i] = entry;
	for (; i && heap[(i - 1) / 2].at_ns > heap[i].at_ns; i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static struct pacer_rest heap_pop(struct pacer *pacer)
{
	struct pacer_rest *heap = pacer->rest, top = heap[0];
	uint32_t count = --pacer->resting, i = 0;

	heap[0] = heap[count];
	for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && heap[child + 1].at_ns < heap[child].at_ns)
			child++;
		if (heap[i].at_ns <= heap[child].at_ns)
			break;
		swap(&heap[i], &heap[child]);
	}
	return top;
}

/* Take the slot that has been free for longest, so that all connections are used. */
static struct pacer_rest ring_pop(struct pacer *pacer)
{
	struct pacer_rest entry = pacer->rest[pacer->first];

	pacer->first = (pacer->first + 1) % pacer->slots;
	pacer->resting--;
	return entry;
}

void pacer_rest(struct pacer *pacer, uint32_t slot, uint64_t now_ns)
{
	struct pacer_rest entry = {.at_ns = now_ns, .slot = slot};

	if (is_open_loop(pacer))
		pacer->rest[(pacer->first + pacer->resting++) % pacer->slots] = entry;
	else
		heap_push(pacer, entry);
}

static void begin(struct pacer *pacer, const struct schedule_spec *spec, uint64_t now_ns)
{
	schedule_begin(&pacer->schedule, spec, pacer->sharer, pacer->sharers, now_ns);
	pacer->resting = pacer->first = pacer->returned = 0;
	for (uint32_t slot = 0; slot < pacer->slots; slot++)
		pacer_rest(pacer, slot, now_ns);
}

void pacer_begin(struct pacer *pacer, uint64_t now_ns)
{
	begin(pacer, &pacer->spec, now_ns);
}

void pacer_begin_level(struct pacer *pacer, uint64_t now_ns)
{
	struct schedule_spec level = schedule_level(&pacer->spec);

	begin(pacer, &level, now_ns);
}

/* Take the next request due by @now_ns; returned ones come first. */
static bool take_request(struct pacer *pacer, uint64_t now_ns, uint64_t *ret_intended_ns)
{
	if (pacer->returned) {
		*ret_intended_ns = pacer->returned_ns[--pacer->returned];
		return true;
	}
	schedule_follow(&pacer->schedule);
	if (pacer->schedule.next_ns > now_ns)
		return false;
	*ret_intended_ns = pacer->schedule.next_ns;
	schedule_advance(&pacer->schedule);
	return true;
}

static bool take_thinker(struct pacer *pacer, uint64_t now_ns, struct pacer_due *ret_due)
{
	struct pacer_rest entry;

	if (pacer->rest[0].at_ns > now_ns)
		return false;
	entry = heap_pop(pacer);
	*ret_due = (struct pacer_due){entry.slot, entry.at_ns, entry.at_ns};
	return true;
}

void pacer_absent(struct pacer *pacer, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns > pacer->absent_ns[1])
		pacer->absent_ns[0] = from_ns;
	pacer->absent_ns[1] = to_ns;
}

/* @free_ns: since when a slot has been free for the request. */
static struct pacer_due due_since(const struct pacer *pacer, uint32_t slot, uint64_t intended_ns,
				  uint64_t free_ns)
{
	if (intended_ns >= pacer->absent_ns[0] && intended_ns < pacer->absent_ns[1])
		free_ns = intended_ns;
	return (struct pacer_due){
		.slot = slot,
		.intended_ns = intended_ns,
		.possible_ns = free_ns > intended_ns ? free_ns : intended_ns,
	};
}

bool pacer_take(struct pacer *pacer, uint64_t now_ns, struct pacer_due *ret_due)
{
	struct pacer_rest entry;
	uint64_t intended_ns;

	if (!pacer->resting)
		return false;
	if (!is_open_loop(pacer))
		return take_thinker(pacer, now_ns, ret_due);
	if (!take_request(pacer, now_ns, &intended_ns))
		return false;
	entry = ring_pop(pacer);
	*ret_due = due_since(pacer, entry.slot, intended_ns, entry.at_ns);
	return true;
}

/*
 * A slot that has just had its response sends the next due request, before resting slots do. If one
 * of these was free earlier, the delay since then is the driver's.
 */
static bool take_at_once(struct pacer *pacer, uint32_t slot, uint64_t now_ns,
			 struct pacer_due *ret_due)
{
	uint64_t intended_ns, free_ns = now_ns;

	if (!take_request(pacer, now_ns, &intended_ns))
		return false;
	if (pacer->resting && pacer->rest[pacer->first].at_ns < now_ns)
		free_ns = pacer->rest[pacer->first].at_ns;
	*ret_due = due_since(pacer, slot, intended_ns, free_ns);
	return true;
}

bool pacer_next(struct pacer *pacer, uint32_t slot, uint64_t now_ns, struct pacer_due *ret_due)
{
	if (is_open_loop(pacer) && take_at_once(pacer, slot, now_ns, ret_due))
		return true;
	if (is_open_loop(pacer))
		pacer_rest(pacer, slot, now_ns);
	else
		pacer_rest(pacer, slot, now_ns + schedule_think_ns(&pacer->spec, &pacer->random));
	return false;
}

/* A closed loop keeps no request: the next slot whose think time ends sends one anyway. */
void pacer_return(struct pacer *pacer, uint64_t intended_ns)
{
	if (is_open_loop(pacer) && pacer->returned < pacer->slots)
		pacer->returned_ns[pacer->returned++] = intended_ns;
}

uint64_t pacer_wake_ns(const struct pacer *pacer)
{
	if (!pacer->resting)
		return SCHEDULE_NEVER;
	if (!is_open_loop(pacer))
		return pacer->rest[0].at_ns;
	return pacer->returned ? 0 : pacer->schedule.next_ns;
}

uint64_t pacer_unsent(struct pacer *pacer, uint64_t stop_ns)
{
	if (pacer->resting)
		return 0; /* omit requests due at this very moment */
	return pacer->returned + schedule_skip(&pacer->schedule, stop_ns);
}
