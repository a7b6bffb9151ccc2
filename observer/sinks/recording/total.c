// SPDX-License-Identifier: MIT
/*
 * A recording as one document; see recording.h. Readings count from their observation's begin, so that the
 * last one has everything, and a damaged one costs only its place in the past.
 */
#include <errno.h>
#include <string.h>

#include "recording.h"
#include "model/kept/series.h"
#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sojourn/machine.h"
#include "sojourn/run_sum.h"

struct total {
	struct model_series *series;
	struct run *before;   /* the observations that have ended, as one; NULL: none */
	struct run *last;     /* the last reading of this one; NULL: none yet */
	struct run *findings; /* a document that holds nothing else */
	uint64_t started_ns;  /* wall clock; 0: not known */
	uint64_t ended_ns;
	unsigned int session;
	struct recording_summary summary;
};

static void total_done(struct total *total)
{
	model_series_free(total->series);
	run_free(total->before);
	run_free(total->last);
	run_free(total->findings);
}

/* ---- adding observations ---- */

/* If both observations have messages, clear first_message_ns: nobody counted between the observations. */
static void add_messages(struct run_service *service, const struct run_service *earlier)
{
	if (!service->last_message_ns) {
		service->first_message_ns = earlier->first_message_ns;
		service->last_message_ns = earlier->last_message_ns;
	} else if (earlier->last_message_ns) {
		service->first_message_ns = 0;
	}
}

static void keep_highest(struct run_number *number, const struct run_number *earlier)
{
	if (earlier->known && earlier->value > number->value)
		*number = *earlier;
}

/* Add the counts; state is that of the later one. */
static void add_service(struct run_service *service, struct run_service *earlier)
{
	run_service_add(service, earlier);
	add_messages(service, earlier);
	keep_highest(&service->accept_queue.depth_max, &earlier->accept_queue.depth_max);
	keep_highest(&service->http2.streams_highest, &earlier->http2.streams_highest);
	keep_highest(&service->http2.open_highest, &earlier->http2.open_highest);
	if (earlier->min_rtt_ns.known &&
	    (!service->min_rtt_ns.known || earlier->min_rtt_ns.value < service->min_rtt_ns.value))
		service->min_rtt_ns = earlier->min_rtt_ns;
}

static int add_services(struct run *run, struct run *earlier)
{
	for (size_t i = 0; i < earlier->service_count; i++) {
		struct run_service *from = &earlier->services[i], *to = run_find_service(run, from);

		if (to) {
			add_service(to, from);
			continue;
		}
		to = ARRAY_APPEND(run->services, run->service_count);
		if (!to)
			return -ENOMEM;
		*to = *from;
		*from = (struct run_service){};
	}
	return 0;
}

static int add_cost(struct run_cost *cost, const struct run_cost *earlier)
{
	if (!cost || !earlier)
		return 0;
	cost->cpu_ns += earlier->cpu_ns;
	if (earlier->resident_bytes > cost->resident_bytes)
		cost->resident_bytes = earlier->resident_bytes;
	if (earlier->map_bytes > cost->map_bytes)
		cost->map_bytes = earlier->map_bytes;
	run_cost_share(cost, earlier);
	run_machine_merge(&cost->machine, &earlier->machine);
	return run_cost_add_programs(cost, earlier);
}

/* Add the observation that came before @run; the time between them is part of neither. */
static int add_earlier(struct run *run, struct run *earlier)
{
	int r;

	if (!earlier)
		return 0;
	r = add_services(run, earlier);
	if (!r)
		r = add_cost(run->cost, earlier->cost);
	run->services_dropped += earlier->services_dropped;
	run->connections_dropped += earlier->connections_dropped;
	run_reclaimed_add(&run->reclaimed, &earlier->reclaimed);
	free(run->started_at);
	run->started_at = TAKE_PTR(earlier->started_at);
	return r;
}

/* ---- findings ---- */

static bool same_finding(const struct run_finding *a, const struct run_finding *b)
{
	return !strcmp(a->id, b->id) && !strcmp(a->object, b->object) && a->port == b->port &&
	       a->netns == b->netns;
}

static int keep_finding(struct run *findings, struct run_finding *found)
{
	struct run_finding *kept = NULL;

	for (size_t i = 0; i < findings->finding_count && !kept; i++) {
		if (same_finding(&findings->findings[i], found))
			kept = &findings->findings[i];
	}
	if (!kept)
		kept = ARRAY_APPEND(findings->findings, findings->finding_count);
	if (!kept)
		return -ENOMEM;
	SWAP(*kept, *found);
	return 0;
}

/* As last seen, whenever that was. */
static int keep_findings(struct run *findings, struct run *run)
{
	int r = 0;

	for (size_t i = 0; i < run->finding_count && !r; i++)
		r = keep_finding(findings, &run->findings[i]);
	/* The older list is freed with the reading. */
	if (run->not_seen)
		SWAP(findings->not_seen, run->not_seen);
	return r;
}

static int weight(const struct run_finding *finding)
{
	return !strcmp(finding->severity, "critical") ? 2 : !!strcmp(finding->severity, "notice");
}

static int compare_severity(const void *a, const void *b)
{
	const struct run_finding *left = a, *right = b;
	int order = weight(right) - weight(left);

	return order ? order : strcmp(left->id, right->id);
}

/* Give all findings to @run, the last reading. keep_findings() has left it those of the reading before. */
static void give_findings(struct run *run, struct run *findings)
{
	SWAP(run->findings, findings->findings);
	SWAP(run->finding_count, findings->finding_count);
	SWAP(run->not_seen, findings->not_seen);
	if (run->finding_count)
		qsort(run->findings, run->finding_count, sizeof(*run->findings), compare_severity);
}

/* ---- one reading after the other ---- */

static uint64_t wall_ns(const struct run *run)
{
	uint64_t ns = 0;

	return run->started_at && !run_parse_time(run->started_at, &ns) ? ns : 0;
}

static void begin_session(struct total *total, const struct run *run)
{
	uint64_t started_ns = wall_ns(run);

	total->summary.sessions++;
	if (total->summary.sessions == 1)
		total->started_ns = started_ns;
	else if (started_ns > total->ended_ns && total->ended_ns)
		total->summary.unobserved_ns += started_ns - total->ended_ns;
}

/* Add a reading, and take it over. Its time then counts from the start of the first observation. */
static int take_reading(struct total *total, unsigned int session, struct run *run)
{
	const struct run nothing = {};
	struct run before = {};
	uint64_t own_ns = run->duration_ns;
	int r = 0;

	if (total->last && session != total->session) {
		struct run *last = TAKE_PTR(total->last);

		r = add_earlier(last, total->before);
		run_free(total->before);
		total->before = last;
	}
	if (!r && !total->last)
		begin_session(total, run);
	total->session = session;
	before.duration_ns = total->before ? total->before->duration_ns : 0;
	if (!r) {
		run->duration_ns += before.duration_ns;
		r = model_series_point(total->series, &nothing, total->last ? total->last : &before,
				       run);
	}
	if (!r)
		r = keep_findings(total->findings, run);
	total->ended_ns = wall_ns(run) + own_ns;
	total->summary.readings++;
	run_free(total->last);
	total->last = run;
	return r;
}

static int take_all(struct total *total, const struct recording *recording)
{
	int r = 0;

	for (size_t i = 0; i < recording->count && (!r || r == -EINVAL); i++) {
		struct run *run;

		r = recording_read(recording, i, &run);
		if (r == -EINVAL)
			total->summary.damaged++;
		else if (!r)
			r = take_reading(total, recording->lines[i].session, run);
	}
	return r == -EINVAL ? 0 : r;
}

int recording_total(const struct recording *recording, struct run **ret_run,
		    struct recording_summary *ret_summary)
{
	CLEANUP(total_done) struct total total = {.summary.damaged = recording->damaged};
	int r = model_series_new(UINT64_MAX, false, &total.series);

	total.findings = calloc(1, sizeof(*total.findings));
	if (!r && !total.findings)
		r = -ENOMEM;
	if (!r)
		r = take_all(&total, recording);
	if (!r && !total.last)
		r = -EINVAL;
	if (!r)
		r = add_earlier(total.last, total.before);
	if (!r)
		r = model_series_give(total.series, total.started_ns, total.last);
	if (r < 0)
		return r;
	run_doubt(total.last);
	give_findings(total.last, total.findings);
	*ret_summary = total.summary;
	*ret_run = TAKE_PTR(total.last);
	return 0;
}
