// SPDX-License-Identifier: MIT
/*
 * Events of the "Trace Event Format" (Google, 2016). X is a slice on a track, which must lie within
 * or beside its neighbours; b and e bound slices that may overlap; M names tracks. Times are in µs.
 *
 * All times are the client's. The division of the network's time between the directions is not
 * known: the server's stages are drawn in the middle.
 */
#include "sojourn/text.h"
#include "sojourn/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/print.h"
#include "sojourn/autojson.h"
#include "sojourn/clock.h"

#define TRACE_PID 1

struct trace {
	json_t *events;
	uint64_t begin_ns; /* origin of all times */
};

/* Nanoseconds to µs: exact below 2^53 ns, 104 days. */
static json_t *micros(uint64_t ns)
{
	return json_real((double)ns / NSEC_PER_USEC);
}

/* Add an event of kind @phase at @at_ns; it takes over @args. */
static int add_event(struct trace *trace, const char *phase, const char *name, unsigned int tid,
		     uint64_t at_ns, json_t *args, json_t **ret_event)
{
	json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:o}", "ph", phase, "name", name,
				  "cat", "exchange", "pid", TRACE_PID, "tid", (int)tid, "ts",
				  micros(at_ns - trace->begin_ns), "args", args);

	if (!event || json_array_append_new(trace->events, event))
		return -ENOMEM;
	if (ret_event)
		*ret_event = event;
	return 0;
}

static int add_slice(struct trace *trace, const char *name, unsigned int tid, uint64_t at_ns,
		     uint64_t length_ns, json_t *args)
{
	json_t *event;

	if (add_event(trace, "X", name, tid, at_ns, args, &event))
		return -ENOMEM;
	return json_object_set_new(event, "dur", micros(length_ns));
}

/* Give an event that may overlap slices a track of its own. */
static int add_beside(struct trace *trace, const char *name, unsigned int tid, unsigned int id,
		      uint64_t at_ns, uint64_t length_ns)
{
	static const char *const phases[] = {"b", "e"};
	json_t *event;

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		if (add_event(trace, phases[i], name, tid, at_ns + i * length_ns, json_object(),
			      &event) ||
		    json_object_set_new(event, "id", json_integer(id)))
			return -ENOMEM;
	}
	return 0;
}

static int add_name(struct trace *trace, const char *kind, unsigned int tid, const char *name)
{
	return add_event(trace, "M", kind, tid, trace->begin_ns, json_pack("{s:s}", "name", name),
			 NULL);
}

/* The start of the next slice, and the rest of the request. */
struct place {
	unsigned int tid;
	uint64_t at_ns;
	uint64_t left_ns;
};

/*
 * Add a part of the request. A part that ended after the client had the response (overhang) is cut
 * to fit; its arguments have the full length.
 */
static int add_part(struct trace *trace, struct place *place, const char *name, uint64_t length_ns)
{
	uint64_t drawn_ns = length_ns < place->left_ns ? length_ns : place->left_ns;
	int err = 0;

	if (length_ns)
		err = add_slice(trace, name, place->tid, place->at_ns, drawn_ns,
				json_pack("{s:I}", "length_ns", (json_int_t)length_ns));
	place->at_ns += drawn_ns;
	place->left_ns -= drawn_ns;
	return err;
}

static void set_number(json_t *object, const char *name, const struct run_number *number)
{
	if (number->known)
		json_object_set_new(object, name, json_integer((json_int_t)number->value));
}

static json_t *describe(const struct run_exchange *exchange)
{
	const struct run_parts *parts = &exchange->parts;
	json_t *args = json_pack("{s:s, s:s, s:I, s:I, s:I}", "client", exchange->client, "server",
				 exchange->server, "index", (json_int_t)exchange->index,
				 "round_trip_ns", (json_int_t)parts->round_trip_ns, "overhang_ns",
				 (json_int_t)parts->overhang_ns);

	if (!args)
		return NULL;
	set_number(args, "pid", &exchange->pid);
	set_number(args, "request_bytes", &exchange->bytes_in);
	set_number(args, "response_bytes", &exchange->bytes_out);
	set_number(args, "service_running_ns", &parts->running_ns);
	set_number(args, "service_runnable_ns", &parts->runnable_ns);
	set_number(args, "service_blocked_ns", &parts->blocked_ns);
	return args;
}

static int add_parts(struct trace *trace, const struct run_joined *joined,
		     const struct run_parts *parts, struct place *place)
{
	uint64_t there_ns = parts->network_ns / 2;
	int err = add_part(trace, place, "network (half of it)", there_ns);

	for (unsigned int i = 0; i < STAGE_ACK && !err; i++)
		err = add_part(trace, place, as_words(run_stage_label(joined->stages, i)),
			       parts->stages[i].value);
	return err ? err
		   : add_part(trace, place, "network (half of it)", parts->network_ns - there_ns);
}

/* Under a rate: add the time since the request was due, mostly while its connection was busy. */
static int add_wait(struct trace *trace, const struct run_exchange *exchange, unsigned int tid,
		    unsigned int id)
{
	uint64_t wait_ns = exchange->parts.wait_ns;

	if (!wait_ns)
		return 0;
	return add_beside(trace, "due, not sent", tid, id, exchange->start_ns - wait_ns, wait_ns);
}

/* Add the time from the wire to the acknowledgement, which overlaps the response's way. */
static int add_ack(struct trace *trace, const struct run_exchange *exchange, unsigned int tid,
		   unsigned int id)
{
	const struct run_parts *parts = &exchange->parts;
	uint64_t at_ns = exchange->start_ns + parts->network_ns / 2;

	if (!parts->stages[STAGE_ACK].known)
		return 0;
	for (unsigned int i = 0; i < STAGE_ACK; i++)
		at_ns += parts->stages[i].value;
	return add_beside(trace, run_stage_names[STAGE_ACK], tid, id, at_ns,
			  parts->stages[STAGE_ACK].value);
}

static int add_exchange(struct trace *trace, const struct run_joined *joined,
			const struct run_exchange *exchange, unsigned int tid, unsigned int id)
{
	const struct run_parts *parts = &exchange->parts;
	struct place place = {tid, exchange->start_ns, parts->round_trip_ns};
	json_t *args = describe(exchange);
	char name[32];
	int err;

	snprintf(name, sizeof(name), "request %u", exchange->index);
	err = add_slice(trace, name, tid, exchange->start_ns, parts->round_trip_ns, args);
	if (!err)
		err = add_parts(trace, joined, parts, &place);
	if (!err)
		err = add_wait(trace, exchange, tid, 2 * id);
	return err ? err : add_ack(trace, exchange, tid, 2 * id + 1);
}

/* The connections, a track each. */
struct tracks {
	const char **clients; /* sorted, each once */
	size_t count;
};

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int open_tracks(const struct run_joined *joined, struct tracks *tracks)
{
	size_t count = joined->slowest_count;

	tracks->clients = calloc(count + 1, sizeof(*tracks->clients));
	if (!tracks->clients)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		tracks->clients[i] = joined->slowest[i].client;
	qsort(tracks->clients, count, sizeof(*tracks->clients), compare_text);
	for (size_t i = 0; i < count; i++)
		if (!i || strcmp(tracks->clients[i], tracks->clients[tracks->count - 1]))
			tracks->clients[tracks->count++] = tracks->clients[i];
	return 0;
}

static void close_tracks(struct tracks *tracks)
{
	free(tracks->clients);
}

static uint64_t find_begin(const struct run_joined *joined)
{
	uint64_t begin_ns = UINT64_MAX;

	for (size_t i = 0; i < joined->slowest_count; i++) {
		const struct run_exchange *exchange = &joined->slowest[i];
		uint64_t due_ns = exchange->start_ns - exchange->parts.wait_ns;

		if (due_ns < begin_ns)
			begin_ns = due_ns;
	}
	return begin_ns;
}

static int add_exchanges(struct trace *trace, const struct run *run)
{
	CLEANUP(close_tracks) struct tracks tracks = {0};
	const char *target = run->driver->target;
	int err = open_tracks(run->joined, &tracks);

	if (!err)
		err = add_name(trace, "process_name", 0, target ? target : "sojourn");
	/* Track numbers start at 1. */
	for (size_t i = 0; i < tracks.count && !err; i++)
		err = add_name(trace, "thread_name", (unsigned int)i + 1, tracks.clients[i]);
	for (size_t i = 0; i < run->joined->slowest_count && !err; i++) {
		const struct run_exchange *exchange = &run->joined->slowest[i];
		const char *client = exchange->client;
		const char **found = bsearch(&client, tracks.clients, tracks.count,
					     sizeof(*tracks.clients), compare_text);

		err = add_exchange(trace, run->joined, exchange,
				   (unsigned int)(found - tracks.clients) + 1, (unsigned int)i);
	}
	return err;
}

char *trace_to_json(const struct run *run)
{
	autojson json_t *document = json_object();
	autofree char *json = NULL;
	struct trace trace = {.events = json_array(), .begin_ns = find_begin(run->joined)};

	if (json_object_set_new(document, "displayTimeUnit", json_string("ns")) ||
	    json_object_set(document, "traceEvents", trace.events) || add_exchanges(&trace, run)) {
		json_decref(trace.events);
		return NULL;
	}
	json_decref(trace.events);
	json = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(15));
	return json ? text_format("%s\n", json) : NULL;
}

int trace_write(const struct run *run, const char *path)
{
	autofree char *text = trace_to_json(run);

	return text ? run_write_text(text, path) : -ENOMEM;
}
