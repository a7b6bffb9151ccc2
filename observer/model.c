// SPDX-License-Identifier: MIT
/* Readings, phases and their differences; see model.h. */
#include "model.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "source.h"
#include "reserve.h"
#include "source_findings.h"
#include "source_ring.h"
#include "source_series.h"

/* A period: from its begin, whose reading is @base, until it is asked for. */
struct period {
	uint64_t id; /* 0: free */
	struct run *base;
	uint64_t *first_ns; /* by service: earliest arrival since the begin, 0: none yet */
	struct source_samples *samples;	  /* NULL: none are taken */
	struct source_findings *findings; /* NULL: not looked for */
	struct source_series *series;	  /* NULL: none is kept */
	bool pointed; /* its last point ended with the model's tick, not its base */
};

struct model {
	struct loader *loader;
	const struct plan *plan;
	struct model_options options;
	struct source_proc *proc;
	struct source_ring *ring;	/* NULL: no exchange is sampled */
	struct resource_events *events; /* of the findings */
	int events_error;
	char *netns; /* path of the namespace that they are about; NULL: our own */
	char *started_at;
	uint64_t started_ns;
	struct service_key *keys;
	size_t key_count;
	uint32_t max_services;
	struct period total;
	struct source_findings *recent; /* NULL until snapshot_judge() */
	uint64_t recent_ns;
	struct period phases[SNAPSHOT_PHASES];
	uint64_t last_id;
	struct run *tick; /* the reading at the last point of the series; NULL: there was none */
};

static void period_done(struct model *model, struct period *period)
{
	source_ring_end(model->ring, period->samples);
	run_free(period->base);
	free(period->first_ns);
	source_findings_end(period->findings);
	source_series_free(period->series);
	*period = (struct period){};
}

void model_free(struct model *model)
{
	if (!model)
		return;
	source_findings_end(model->recent);
	period_done(model, &model->total);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		period_done(model, &model->phases[i]);
	run_free(model->tick);
	source_ring_free(model->ring);
	source_proc_free(model->proc);
	resource_events_close(model->events);
	free(model->netns);
	free(model->started_at);
	free(model->keys);
	free(model);
}

/* ---- reading ---- */

static int read_service(struct model *model, uint32_t index, const struct run_ports *ports,
			struct run *run)
{
	const struct service_key *key = &model->keys[index];
	struct run_service *service;

	if (!key->port)
		return 0;
	service = run_add_service(run);
	if (!service)
		return -ENOMEM;
	memcpy(service->protocol, key->protocol == IPPROTO_UDP ? "udp" : "tcp", sizeof("tcp"));
	service->port = key->port;
	service->netns = key->netns;
	source_slots_read(model->loader, index, service);
	source_slots_mark(model->loader, model->plan, key, service);
	if (key->protocol == IPPROTO_TCP) {
		source_sockets_read(model->loader, index, service);
		service->ports = *ports;
	}
	return source_proc_read(model->proc, index, service);
}

static int read_all(struct model *model, struct run *run)
{
	struct run_ports ports;
	int r;

	run->connections_in = strdup(loader_storage());
	run->cost = calloc(1, sizeof(*run->cost));
	if (!run->cost || !run->connections_in)
		return -ENOMEM;
	r = source_cost_read(model->loader, model->options.run_statistics, run->cost);
	source_sockets_ports(model->loader, &ports);
	for (size_t i = 0; !r && i < model->key_count; i++)
		r = read_service(model, (uint32_t)i, &ports, run);
	run->services_dropped = loader_services_dropped(model->loader);
	run->duration_ns = clock_now_ns() - model->started_ns;
	return r;
}

/* Readings all begin with the observation: run_subtract() tells a later period's begin from that. */
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

/* A reading of everything that the kernel has counted; @flush: see loader_visit_sockets(). */
static int take_reading(struct model *model, bool flush, struct run **ret_run)
{
	autorun struct run *run = run_new("sojourn", model->options.command);
	int r;

	if (!run)
		return -ENOMEM;
	r = set_begin(model, run);
	if (!r)
		r = loader_visit_sockets(model->loader, flush);
	if (r < 0)
		return r;
	model->key_count = loader_services(model->loader, model->keys, model->max_services);
	source_proc_update(model->proc, model->loader, model->keys, model->key_count);
	r = read_all(model, run);
	if (r < 0)
		return r;
	*ret_run = TAKE_PTR(run);
	return 0;
}

/* ---- periods ---- */

/* Notes the first arrivals of the epoch for the periods that have seen none before. */
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

static int period_begin(struct model *model, struct period *period)
{
	RESERVE_SCOPE;
	struct period begun = {.id = ++model->last_id};
	int r = take_reading(model, false, &begun.base);

	if (r < 0)
		return r;
	begun.first_ns = calloc(model->max_services, sizeof(*begun.first_ns));
	r = begun.first_ns ? source_ring_begin(model->ring, &begun.samples) : -ENOMEM;
	if (!r)
		r = source_series_new(&begun.series);
	if (r < 0) {
		period_done(model, &begun);
		return r;
	}
	/* Without, the document says that nobody looked. */
	if (model->options.findings)
		(void)source_findings_begin(model->netns, model->events, model->events_error,
					    &begun.findings);
	note_all_first(model);
	loader_next_epoch(model->loader);
	*period = begun;
	return 0;
}

/* Messages of the period: none where nothing was exchanged in it. */
static void set_messages(const struct model *model, const struct period *period, struct run *run)
{
	size_t at = 0;

	for (size_t i = 0; i < model->key_count && at < run->service_count; i++) {
		struct run_service *service = &run->services[at];

		if (!model->keys[i].port)
			continue;
		service->first_message_ns = period->first_ns[i];
		if (!service->first_message_ns)
			service->last_message_ns = 0;
		at++;
	}
}

static int add_samples(struct model *model, const struct period *period, struct run *run)
{
	size_t at = 0;
	int r = source_ring_drain(model->ring);

	for (size_t i = 0; !r && i < model->key_count && at < run->service_count; i++) {
		if (!model->keys[i].port)
			continue;
		if (model->keys[i].protocol == IPPROTO_TCP)
			r = source_ring_read(model->ring, period->samples, (uint32_t)i,
					     &run->services[at]);
		at++;
	}
	return r;
}

/* A document tells what is open, a reading between two others does not: it is none of either. */
static void conclude(const struct model *model, struct run *run)
{
	size_t at = 0;

	for (size_t i = 0; i < model->key_count && at < run->service_count; i++) {
		if (!model->keys[i].port)
			continue;
		if (model->keys[i].protocol == IPPROTO_UDP)
			source_slots_conclude(model->loader, (uint32_t)i, &run->services[at]);
		at++;
	}
}

/* The reading with which the last point of the period's series ended. */
static const struct run *last_point(const struct model *model, const struct period *period)
{
	return period->pointed ? model->tick : period->base;
}

/* @whole: with single exchanges, which are many, and findings, which cost more than counts. */
static int period_read(struct model *model, const struct period *period, bool whole,
		       struct run **ret_run)
{
	autorun struct run *run = NULL;
	RESERVE_SCOPE;
	int r = take_reading(model, whole && model->ring, &run);

	if (!r && whole)
		r = add_samples(model, period, run);
	if (!r && whole && period->series)
		r = source_series_read(period->series, period->base, last_point(model, period),
				       run);
	if (r < 0)
		return r;
	if (whole)
		conclude(model, run);
	note_all_first(model);
	run_subtract(run, period->base);
	set_messages(model, period, run);
	if (whole && period->findings)
		r = source_findings_read(period->findings, run);
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
	return source_ring_drain(model->ring);
}

/* A series that lacks a point would not add up: without memory there is none. */
static void point_period(struct model *model, struct period *period, const struct run *now)
{
	if (period->findings)
		source_findings_point(period->findings);
	if (!now || !period->series)
		return;
	if (source_series_point(period->series, period->base, last_point(model, period), now))
		source_series_free(TAKE_PTR(period->series));
	period->pointed = true;
}

/* Without a reading the next point is of a longer time. */
void model_point(struct model *model)
{
	RESERVE_SCOPE;
	struct run *now = NULL;

	(void)take_reading(model, false, &now);
	point_period(model, &model->total, now);
	for (size_t i = 0; i < SNAPSHOT_PHASES; i++)
		point_period(model, &model->phases[i], now);
	if (!now)
		return;
	run_free(model->tick);
	model->tick = now;
}

uint64_t model_point_interval_ns(const struct model *model)
{
	_Static_assert(SERIES_POINT_NS == FINDINGS_POINT_NS, "points of both are taken together");
	(void)model;
	return SERIES_POINT_NS;
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

static int snapshot_total(void *context, struct run **ret_run)
{
	return model_read(context, ret_run);
}

static int snapshot_brief(void *context, struct run **ret_run)
{
	struct model *model = context;

	return period_read(model, &model->total, false, ret_run);
}

/* What began long ago says little of now: the doctor starts over every minute. */
#define JUDGED_NS (60 * NSEC_PER_SEC)

static int snapshot_judge(void *context, struct run *run)
{
	struct model *model = context;
	uint64_t now = clock_now_ns();
	int r = 0;

	if (!model->options.findings)
		return 0;
	if (model->recent)
		r = source_findings_read(model->recent, run);
	else if (model->total.findings)
		r = source_findings_read(model->total.findings, run);
	if (r || (model->recent && now - model->recent_ns < JUDGED_NS))
		return r;
	source_findings_end(TAKE_PTR(model->recent));
	model->recent_ns = now;
	return source_findings_begin(model->netns, model->events, model->events_error,
				     &model->recent);
}

static int snapshot_phase_begin(void *context, uint64_t *ret_id)
{
	struct model *model = context;
	struct period *phase = find_phase(model, 0);
	int r;

	if (!phase)
		return -ENOSPC;
	r = period_begin(model, phase);
	if (r < 0)
		return r;
	*ret_id = phase->id;
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
		period_done(model, phase);
	return r;
}

struct snapshot_source model_snapshots(struct model *model)
{
	return (struct snapshot_source){
		.context = model,
		.total = snapshot_total,
		.brief = snapshot_brief,
		.judge = snapshot_judge,
		.phase_begin = snapshot_phase_begin,
		.phase_end = snapshot_phase_end,
	};
}

/* ---- begin ---- */

/* Attaching picked up what was there already, before the first reading: that is no "earlier". */
static void forget_preexisting(struct run *base)
{
	for (size_t i = 0; i < base->service_count; i++)
		base->services[i].losses[RUN_LOSS_PREEXISTING] = 0;
}

/* Without events the findings lack something, and say so. */
static int open_findings(struct model *model)
{
	if (model->options.pid &&
	    asprintf(&model->netns, "/proc/%u/ns/net", model->options.pid) < 0) {
		model->netns = NULL;
		return -ENOMEM;
	}
	model->events_error =
		resource_events_open(false, loader_depths_fd(model->loader), &model->events);
	return 0;
}

static int model_init(struct model *model)
{
	int r;

	model->max_services = loader_config(model->loader)->max_services;
	model->keys = calloc(model->max_services, sizeof(*model->keys));
	if (!model->keys)
		return -ENOMEM;
	r = source_proc_new(model->options.pid, &model->proc);
	if (!r && model->options.findings)
		r = open_findings(model);
	if (r < 0)
		return r;
	if (model->options.samples)
		r = source_ring_new(model->loader, model->options.samples, &model->ring);
	if (!r)
		r = period_begin(model, &model->total);
	if (!r)
		forget_preexisting(model->total.base);
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
	model->plan = plan;
	model->options = *options;
	r = model_init(model);
	if (r < 0)
		return r;
	*ret_model = TAKE_PTR(model);
	return 0;
}
