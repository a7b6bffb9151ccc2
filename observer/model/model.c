// SPDX-License-Identifier: MIT
/* Readings, phases and their differences; see model.h. */
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "clients.h"
#include "history.h"
#include "meanwhile.h"
#include "period.h"
#include "reclaim.h"
#include "kernel/heap.h"
#include "model/kept/series.h"
#include "model/upstreams/timed_calls.h"
#include "model/upstreams/upstreams.h"
#include "process/reserve.h"
#include "resources/look.h"
#include "sources/ring.h"
#include "sources/source.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"

struct model {
	struct loader *loader;
	const struct plan *plan;
	struct model_options options;
	struct source_proc *proc;
	struct source_ring *ring;	/* NULL: no exchange is sampled */
	struct resource_events *events; /* events for the findings */
	int events_error;
	struct look_target target; /* the namespace that findings are about */
	char *started_at;
	uint64_t started_ns;
	struct service_key *keys;
	size_t key_count;
	uint32_t *used; /* indices of the keys with a port, in the order of a reading's services */
	size_t used_count;
	uint64_t *came;	     /* by index: since the latest visit to the sockets began */
	uint64_t unanswered; /* over TCP, as of the latest reading */
	uint32_t max_services;
	struct source_libraries *libraries; /* NULL without --tls */
	struct reclaim *reclaim;
	struct period total;
	struct look *recent; /* NULL until snapshot_judge() */
	uint64_t recent_ns;
	uint64_t recent_services_dropped; /* at the begin of @recent */
	uint64_t recent_connections_dropped;
	struct period phases[SNAPSHOT_PHASES];
	uint64_t last_id;
	struct run *tick; /* the reading at the last point of the series; NULL: there was none */
	struct history *history; /* NULL: none is kept */
	struct run *slot; /* the reading at the history's last point of ten seconds; NULL: none */
	struct meanwhile meanwhile;
};

void model_free(struct model *model)
{
	if (!model)
		return;
	look_free(model->recent);
	period_done(&model->total, model->ring);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		period_done(&model->phases[i], model->ring);
	if (model->slot != model->tick)
		run_free(model->slot);
	run_free(model->tick);
	history_free(model->history);
	source_ring_free(model->ring);
	source_libraries_free(model->libraries);
	source_proc_free(model->proc);
	reclaim_free(model->reclaim);
	events_close(model->events);
	cleanup_close(&model->target.fd);
	free(model->started_at);
	free(model->keys);
	free(model->used);
	free(model->came);
	free(model);
}

/* ---- reading ---- */

static int read_service(struct model *model, uint32_t index, struct run_service *service)
{
	const struct service_key *key = &model->keys[index];
	int r;

	memcpy(service->protocol, key->protocol == IPPROTO_UDP ? "udp" : "tcp", sizeof("tcp"));
	service->port = key->port;
	service->netns = key->netns;
	service->turn = reclaim_turn(model->reclaim, index);
	r = source_slots_read(model->loader, index, key, service);
	source_stages_mark(model->loader, model->plan, key, service);
	if (r || key->protocol != IPPROTO_TCP)
		return r;
	model->came[index] = service->accepted - model->came[index];
	source_ring_read_newest(model->ring, index, service);
	r = source_paths_read(model->loader, index, &service->proposed);
	return r ? r : source_sockets_read(model->loader, index, service);
}

static int read_processes(struct model *model, struct run *run)
{
	int r = 0;

	source_proc_update(model->proc, model->loader);
	meanwhile_run(&model->meanwhile);
	for (size_t i = 0; !r && i < run->service_count; i++) {
		r = source_proc_read(model->proc, model->loader, model->used[i], &run->services[i]);
		meanwhile_run(&model->meanwhile);
	}
	return r;
}

/*
 * Read what the kernel counts before the processes, which takes much longer. A request that is open in the pass over
 * the sockets, and answered before its service's counts are read, is in both.
 */
static int read_services(struct model *model, struct run *run)
{
	int r = run_make_services(run, model->used_count);

	for (size_t i = 0; !r && i < run->service_count; i++) {
		r = read_service(model, model->used[i], &run->services[i]);
		meanwhile_run(&model->meanwhile);
	}
	model->unanswered = source_slots_unanswered(model->loader, model->keys, model->key_count);
	return r ? r : read_processes(model, run);
}

/* Add the service's port to the list, as long as there is room. */
static void name_dropped(void *context, const struct service_key *key, uint64_t connections)
{
	struct run *run = context;
	char *text = run->dropped_ports;
	size_t length = strlen(text), size = sizeof(run->dropped_ports);

	(void)connections;
	if (length + sizeof(", 65535, …") < size)
		snprintf(text + length, size - length, "%s%u", length ? ", " : "ports ", key->port);
	else if (length + sizeof(", …") < size && !strstr(text, "…"))
		snprintf(text + length, size - length, ", …");
}

static int read_all(struct model *model, struct run *run)
{
	int r;

	run->cost = calloc(1, sizeof(*run->cost));
	if (!run->cost)
		return -ENOMEM;
	r = read_services(model, run);
	if (!r)
		r = source_cost_read(model->loader, model->options.run_statistics, run->cost);
	run->cost->map_bytes += events_map_bytes(model->events);
	if (loader_config(model->loader)->all_netns)
		run->namespaces = *loader_namespaces(model->loader);
	run->services_dropped = loader_services_dropped(model->loader);
	run->connections_dropped = loader_connections_dropped(model->loader);
	loader_dropped(model->loader, name_dropped, run);
	run->listeners_idle = loader_idle_listeners(model->loader);
	run->reclaimed = *reclaim_sum(model->reclaim);
	run->duration_ns = clock_now_ns() - model->started_ns;
	return r;
}

/* All readings begin with the observation; run_subtract() derives the start of a later period from that. */
static int set_begin(struct model *model, struct run *run)
{
	if (!model->started_at) {
		model->started_at = TAKE_PTR(run->started_at);
		model->started_ns = clock_now_ns();
	}
	free(run->started_at);
	run->started_at = strdup(model->started_at);
	return run->started_at ? 0 : -ENOMEM;
}

static void read_keys(struct model *model)
{
	model->key_count = loader_services(model->loader, model->keys, model->max_services);
	model->used_count = 0;
	for (size_t i = 0; i < model->key_count; i++)
		if (model->keys[i].port)
			model->used[model->used_count++] = (uint32_t)i;
}

/*
 * Visit the sockets once, then read all that the kernel has counted. Take the sampled exchanges in between. Each was
 * counted before the kernel sent it: no document has more samples than exchanges. @sampled: they will be read.
 */
static int read_once(struct model *model, bool sampled, struct run **ret_run)
{
	autorun struct run *run = run_new("sojourn", model->options.command);
	int r;

	if (!run)
		return -ENOMEM;
	r = set_begin(model, run);
	source_slots_accepted(model->loader, model->keys, model->max_services, model->came);
	if (!r)
		r = loader_visit_sockets(model->loader, sampled);
	if (!r)
		r = source_ring_drain(model->ring);
	if (r < 0)
		return r;
	read_keys(model);
	reclaim_update(model->reclaim, model->keys, model->key_count);
	r = read_all(model, run);
	if (r < 0)
		return r;
	*ret_run = TAKE_PTR(run);
	return 0;
}

static void read_libraries(const struct model *model, struct run *run)
{
	source_libraries_update(model->libraries, model->proc);
	for (size_t i = 0; i < run->service_count; i++)
		for (size_t j = 0; j < run->services[i].process_count; j++)
			source_libraries_read(model->libraries, &run->services[i].processes[j]);
}

/* How long a document's reading may be taken again: a server with many connections takes a while to end. */
#define READ_AGAIN_NS (200 * NSEC_PER_MSEC)

/*
 * Take a reading. One of a @whole document is taken again if requests were given up since its visit to the sockets
 * began. They may be open by the visit, and unanswered by the counts.
 */
static int take_reading(struct model *model, bool whole, struct run **ret_run)
{
	uint64_t before, end_ns = clock_now_ns() + (whole ? READ_AGAIN_NS : 0);
	autorun struct run *run = NULL;
	int r;

	do {
		run_free(TAKE_PTR(run));
		before = source_slots_unanswered(model->loader, model->keys, model->key_count);
		r = read_once(model, whole && model->ring, &run);
	} while (!r && model->unanswered != before && clock_now_ns() < end_ns);
	if (r < 0)
		return r;
	if (model->libraries)
		read_libraries(model, run);
	*ret_run = TAKE_PTR(run);
	return 0;
}

/* ---- periods ---- */

/* Note the first arrivals of the epoch for the periods that have seen none before. */
static void note_first(struct model *model, struct period *period)
{
	for (size_t i = 0; period->id && i < model->key_count; i++) {
		if (!period->first_ns[i])
			period->first_ns[i] =
				source_slots_first_message(model->loader, (uint32_t)i);
	}
}

static void note_all_first(struct model *model)
{
	note_first(model, &model->total);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		note_first(model, &model->phases[i]);
}

static int begin_look(struct model *model, struct look **ret_look)
{
	const struct look_options options = {.targets = &model->target,
					     .target_count = 1,
					     .every_user = model->options.every_user,
					     .every_netns = model->options.every_netns,
					     .events = model->events,
					     .events_error = model->events_error};
	CLEANUP(cleanup_look_free) struct look *look = NULL;
	int r = look_new(&options, &look);

	if (!r)
		r = look_begin(look);
	if (!r)
		*ret_look = TAKE_PTR(look);
	return r;
}

static int read_look(const struct model *model, struct look *look, bool past, struct run *run)
{
	int r = look_end(look, past, run, NULL);

	if (r == -ENODATA)
		return run_add_text(&run->not_seen, "the network namespace may not be entered");
	/* A look at each would take megabytes of memory, and as long as a look at this one. */
	if (!r && loader_config(model->loader)->all_netns)
		r = run_add_text(&run->not_seen, "resources of other network namespaces than the "
						 "observer's: 'sojourn doctor --all-netns' looks");
	return r;
}

static struct budget_past past_of(const struct model *model)
{
	return budget_past(model->options.budget->past_bytes, model->options.past, HISTORY_BYTES);
}

static int period_begin(struct model *model, struct period *period)
{
	bool total = period == &model->total;
	uint64_t series_bytes =
		total ? past_of(model).series_bytes : model->options.budget->phase_series_bytes;
	RESERVE_SCOPE;
	struct period begun = {.id = ++model->last_id};
	int r = upstreams_new(model->loader, &begun.upstreams);

	if (!r)
		r = take_reading(model, false, &begun.base);
	if (r < 0) {
		period_done(&begun, model->ring);
		return r;
	}
	/* Without these sockets the document names no upstreams. */
	(void)upstreams_begin(begun.upstreams, begun.base);
	begun.first_ns = calloc(model->max_services, sizeof(*begun.first_ns));
	r = begun.first_ns ? source_ring_begin(model->ring, &begun.samples) : -ENOMEM;
	if (!r)
		r = model_series_new(series_bytes, !total, &begun.series);
	if (r < 0) {
		period_done(&begun, model->ring);
		return r;
	}
	/* Without a look the document says so. */
	if (model->options.findings)
		(void)begin_look(model, &begun.look);
	note_all_first(model);
	loader_next_epoch(model->loader);
	*period = begun;
	return 0;
}

/* Add the samples that read_once() has taken. */
static int add_samples(struct model *model, const struct period *period, struct run *run)
{
	int r = 0;

	for (size_t i = 0; !r && i < run->service_count; i++)
		if (model->keys[model->used[i]].protocol == IPPROTO_TCP)
			r = source_ring_read(model->ring, period->samples, model->used[i],
					     &run->services[i]);
	return r;
}

/* Call @judge for each UDP service of @run. */
static void judge_datagrams(const struct model *model, struct run *run,
			    void (*judge)(const struct loader *loader, uint32_t index,
					  struct run_service *service))
{
	for (size_t i = 0; i < run->service_count; i++)
		if (model->keys[model->used[i]].protocol == IPPROTO_UDP)
			judge(model->loader, model->used[i], &run->services[i]);
}

/* Let @run, a reading, cover the period. @whole: with its series, and with open exchanges. */
static int period_subtract(struct model *model, const struct period *period, bool whole,
			   struct run *run)
{
	int r = period_open(period);

	if (r < 0)
		return r;
	if (whole && period->series)
		r = model_series_read(period->series, period->base,
				      period_last_point(period, model->tick), run);
	if (r < 0) {
		period_close(period);
		return r;
	}
	/* Count open exchanges in a document only: a reading between two others belongs to neither. */
	if (whole)
		judge_datagrams(model, run, source_slots_conclude);
	note_all_first(model);
	run_subtract(run, period->base);
	period_settle_connections(model->came, model->used, run);
	period_close(period);
	if (whole)
		judge_datagrams(model, run, source_slots_doubt);
	period_set_messages(period, model->used, run);
	return 0;
}

/* @whole: with single exchanges, which are many, and findings, which cost more than counts. */
static int period_read(struct model *model, const struct period *period, bool whole,
		       struct run **ret_run)
{
	autorun struct run *run = NULL;
	RESERVE_SCOPE;
	int r = take_reading(model, whole, &run);

	if (!r && whole)
		r = add_samples(model, period, run);
	meanwhile_run(&model->meanwhile);
	if (!r)
		r = period_subtract(model, period, whole, run);
	meanwhile_run(&model->meanwhile);
	if (!r && whole)
		r = upstreams_read(period->upstreams, model->loader, model->keys, model->key_count,
				   run);
	meanwhile_run(&model->meanwhile);
	if (!r && whole && period->look)
		r = read_look(model, period->look, true, run);
	if (r < 0)
		return r;
	*ret_run = TAKE_PTR(run);
	return 0;
}

int model_read(struct model *model, struct run **ret_run)
{
	return period_read(model, &model->total, true, ret_run);
}

int model_fd(const struct model *model)
{
	return source_ring_fd(model->ring);
}

int model_drain(struct model *model)
{
	loader_follow_streams(model->loader);
	return source_ring_drain(model->ring);
}

/* End phases whose owners are gone. */
static void expire_phases(struct model *model)
{
	uint64_t now = clock_now_ns();

	for (size_t i = 0; i < SNAPSHOT_PHASES; i++) {
		struct period *phase = &model->phases[i];

		if (!phase->id || now < phase->expires_ns)
			continue;
		if (model->options.expired)
			model->options.expired(phase->id, phase->lease_s);
		period_done(phase, model->ring);
	}
}

/* Return the readings with which the history's last points ended. */
static const struct run *last_of_history(const struct model *model, enum history_kind kind)
{
	const struct run *last = kind == HISTORY_FINE ? model->tick : model->slot;

	return last ? last : model->total.base;
}

/* Return whether the slot of ten seconds ends with the tick @now. The next slot begins there. */
static bool ends_slot(const struct model *model, const struct run *now)
{
	const struct run *last = last_of_history(model, HISTORY_COARSE);

	return now->duration_ns - last->duration_ns >= HISTORY_SLOT_NS - MODEL_POINT_NS / 2;
}

static void point_history(struct model *model, const struct run *now)
{
	for (enum history_kind kind = 0; kind < HISTORY_KINDS; kind++)
		if (kind == HISTORY_FINE || ends_slot(model, now))
			history_point(model->history, kind, model->total.base,
				      last_of_history(model, kind), now);
}

/* Keep only the readings that the next points need, because readings are large. */
static void replace_readings(struct model *model, struct run *now)
{
	struct run *tick = model->tick;

	if (model->history && ends_slot(model, now)) {
		if (model->slot != tick)
			run_free(model->slot);
		model->slot = now;
	}
	if (tick != model->slot)
		run_free(tick);
	model->tick = now;
}

/*
 * Forget the service at @index in all periods. Its counts are in the sum already, and another service gets its slots.
 */
static void forget_everywhere(void *context, uint32_t index)
{
	struct model *model = context;
	struct service_key *key = &model->keys[index];
	const struct run_service like = {
		.protocol = "tcp",
		.port = key->port,
		.netns = key->netns,
		.turn = reclaim_turn(model->reclaim, index),
	};

	period_forget(&model->total, index, &like);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		period_forget(&model->phases[i], index, &like);
	source_ring_forget(model->ring, index);
	*key = (struct service_key){};
}

/* All phases together get one share for their series. */
static void limit_phases(struct model *model)
{
	uint64_t open = 0;

	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		open += model->phases[i].id != 0;
	for (size_t i = 0; open && i < SNAPSHOT_PHASES; i++)
		if (model->phases[i].series)
			model_series_limit(model->phases[i].series,
					   model->options.budget->phase_series_bytes / open);
}

/* If no reading succeeds, the next point covers a longer time. */
void model_point(struct model *model)
{
	RESERVE_SCOPE;
	struct run *now = NULL;

	expire_phases(model);
	limit_phases(model);
	(void)take_reading(model, false, &now);
	period_point(&model->total, model->tick, now, MODEL_POINT_NS);
	meanwhile_run(&model->meanwhile);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++) {
		period_point(&model->phases[i], model->tick, now, MODEL_POINT_NS);
		meanwhile_run(&model->meanwhile);
	}
	if (!now)
		return;
	if (model->history)
		point_history(model, now);
	meanwhile_run(&model->meanwhile);
	replace_readings(model, now);
	meanwhile_run(&model->meanwhile);
	(void)reclaim_slots(model->reclaim, model->keys, model->key_count, forget_everywhere,
			    model);
}

static struct period *find_phase(struct model *model, uint64_t id)
{
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++) {
		if (model->phases[i].id == id)
			return &model->phases[i];
	}
	return NULL;
}

/* ---- what sinks see ---- */

static void snapshot_meanwhile(void *context, void (*task)(void *context), void *task_context)
{
	struct model *model = context;

	meanwhile_set(&model->meanwhile, task, task_context);
}

static int snapshot_total(void *context, struct run **ret_run)
{
	return model_read(context, ret_run);
}

static int snapshot_brief(void *context, struct run **ret_run)
{
	struct model *model = context;

	return period_read(model, &model->total, false, ret_run);
}

static int snapshot_calls(void *context, struct run *run)
{
	struct model *model = context;

	return timed_calls_read(NULL, model->loader, model->keys, model->key_count, run);
}

static int snapshot_past(void *context, const struct snapshot_past *past, struct run **ret_run)
{
	struct model *model = context;
	autorun struct run *run = NULL;
	RESERVE_SCOPE;
	int r = model->history ? take_reading(model, false, &run) : -ENODATA;

	if (!r)
		r = history_read(model->history, past, model->total.base,
				 last_of_history(model, history_kind_of(past)), run);
	meanwhile_run(&model->meanwhile);
	if (r < 0)
		return r;
	note_all_first(model);
	run_subtract(run, model->total.base);
	period_settle_connections(model->came, model->used, run);
	period_set_messages(&model->total, model->used, run);
	*ret_run = TAKE_PTR(run);
	return 0;
}

/* Start a new look every minute, because a long sample says little about the present. */
#define JUDGED_NS (60 * NSEC_PER_SEC)

static int snapshot_judge(void *context, struct run *run)
{
	struct model *model = context;
	uint64_t now = clock_now_ns(), services = run->services_dropped;
	uint64_t connections = run->connections_dropped;
	int r = 0;

	if (!model->options.findings)
		return 0;
	run->services_dropped -= model->recent_services_dropped;
	run->connections_dropped -= model->recent_connections_dropped;
	if (model->recent)
		r = read_look(model, model->recent, false, run);
	else if (model->total.look)
		r = read_look(model, model->total.look, false, run);
	run->services_dropped = services;
	run->connections_dropped = connections;
	if (r || (model->recent && now - model->recent_ns < JUDGED_NS))
		return r;
	look_free(TAKE_PTR(model->recent));
	model->recent_ns = now;
	model->recent_services_dropped = services;
	model->recent_connections_dropped = connections;
	return begin_look(model, &model->recent);
}

static int snapshot_clients(void *context, const struct run_service *service,
			    struct snapshot_clients *ret_clients)
{
	(void)context;
	return clients_find(service->netns, service->port, ret_clients);
}

static size_t phases_bytes(const struct model *model)
{
	size_t bytes = 0;

	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		bytes += period_bytes(&model->phases[i], model->max_services);
	return bytes;
}

static void renew(struct period *phase)
{
	phase->expires_ns = clock_now_ns() + phase->lease_s * NSEC_PER_SEC;
}

/* The first phase may exceed the phases' memory, so that one is always possible. */
static int snapshot_phase_begin(void *context, uint32_t lease_s, uint64_t *ret_id)
{
	struct model *model = context;
	struct period *phase;
	size_t taken;
	int r;

	expire_phases(model);
	phase = find_phase(model, 0);
	if (!phase)
		return -ENOSPC;
	taken = phases_bytes(model);
	r = period_begin(model, phase);
	if (r < 0)
		return r;
	period_pack(phase);
	if (taken && phases_bytes(model) > model->options.budget->phase_bytes) {
		period_done(phase, model->ring);
		return -EDQUOT;
	}
	phase->lease_s = lease_s;
	renew(phase);
	*ret_id = phase->id;
	return 0;
}

static int snapshot_phase_renew(void *context, uint64_t id, uint32_t *ret_lease_s)
{
	struct model *model = context;
	struct period *phase = id ? find_phase(model, id) : NULL;

	if (!phase)
		return -ENOENT;
	renew(phase);
	*ret_lease_s = phase->lease_s;
	return 0;
}

static int snapshot_phase_end(void *context, uint64_t id, struct run **ret_run)
{
	struct model *model = context;
	struct period *phase = id ? find_phase(model, id) : NULL;
	int r;

	if (!phase)
		return -ENOENT;
	r = period_read(model, phase, true, ret_run);
	if (!r)
		period_done(phase, model->ring);
	return r;
}

struct snapshot_source model_snapshots(struct model *model)
{
	return (struct snapshot_source){
		.context = model,
		.meanwhile = snapshot_meanwhile,
		.total = snapshot_total,
		.brief = snapshot_brief,
		.past = snapshot_past,
		.judge = snapshot_judge,
		.calls = snapshot_calls,
		.clients = snapshot_clients,
		.phase_begin = snapshot_phase_begin,
		.phase_renew = snapshot_phase_renew,
		.phase_end = snapshot_phase_end,
	};
}

/* ---- begin ---- */

/* Open the events for findings. Without them the findings lack something, and the document says so. */
static void open_findings(struct model *model)
{
	model->events_error = events_open(false, loader_depths_fd(model->loader), &model->events);
	model->target.inode = model->options.netns;
	model->target.fd = model->options.netns_fd < 0
				   ? -1
				   : fcntl(model->options.netns_fd, F_DUPFD_CLOEXEC, 0);
	if (model->options.netns_fd >= 0 && model->target.fd < 0)
		model->options.findings = false;
}

static int model_init(struct model *model)
{
	int r;

	model->max_services = loader_config(model->loader)->max_services;
	model->keys = calloc(model->max_services, sizeof(*model->keys));
	model->used = calloc(model->max_services, sizeof(*model->used));
	model->came = calloc(model->max_services, sizeof(*model->came));
	if (!model->keys || !model->used || !model->came)
		return -ENOMEM;
	r = source_proc_new(&model->proc);
	if (!r && loader_config(model->loader)->tls)
		r = source_libraries_new(model->loader, model->options.library, &model->libraries);
	if (!r)
		r = reclaim_new(model->loader, &model->reclaim);
	if (r < 0)
		return r;
	if (model->options.findings)
		open_findings(model);
	heap_running(); /* these were the last programs to load */
	if (model->options.samples)
		r = source_ring_new(model->loader, model->options.samples,
				    model->options.budget->samples, &model->ring);
	if (!r && model->options.past)
		r = history_new(past_of(model).history_bytes, &model->history);
	if (!r)
		r = period_begin(model, &model->total);
	/* Attaching counted older connections before this first reading. run_subtract() must not remove their counts. */
	for (size_t i = 0; !r && i < model->total.base->service_count; i++) {
		model->total.base->services[i].losses[RUN_LOSS_PREEXISTING] = 0;
		model->total.base->services[i].losses[RUN_LOSS_MPTCP] = 0;
	}
	if (!r)
		run_drop_idle(model->total.base);
	return r;
}

int model_new(struct loader *loader, const struct plan *plan, const struct model_options *options,
	      struct model **ret_model)
{
	CLEANUP(cleanup_model_free) struct model *model = calloc(1, sizeof(*model));
	int r;

	if (!model)
		return -ENOMEM;
	model->loader = loader;
	model->target.fd = -1;
	model->plan = plan;
	model->options = *options;
	r = model_init(model);
	if (r < 0)
		return r;
	*ret_model = TAKE_PTR(model);
	return 0;
}
