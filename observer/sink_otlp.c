// SPDX-License-Identifier: MIT
/* Readings on their way to a collector; see sink_otlp.h. */
#include "sink_otlp.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sojourn/clock.h"
#include "sojourn/metrics.h"

struct sink_otlp {
	const struct snapshot_source *source;
	struct otlp_sender *sender;
	struct metrics *metrics;
	void (*say)(int error);
	bool said;
	uint64_t started_ns; /* wall clock */
};

int sink_otlp_open(const struct otlp_target *target, void (*say)(int error),
		   struct sink_otlp **ret_sink)
{
	CLEANUP(cleanup_sink_otlp_close) struct sink_otlp *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	sink->say = say;
	sink->metrics = metrics_new();
	if (!sink->metrics)
		return -ENOMEM;
	r = otlp_sender_start(target, &sink->sender);
	if (r < 0)
		return r;
	*ret_sink = TAKE_PTR(sink);
	return 0;
}

void sink_otlp_close(struct sink_otlp *sink)
{
	if (!sink)
		return;
	otlp_sender_stop(sink->sender);
	if (sink->metrics)
		metrics_free(sink->metrics);
	free(sink);
}

void sink_otlp_begin(struct sink_otlp *sink, const struct snapshot_source *source)
{
	sink->source = source;
	sink->started_ns = clock_wall_ns();
}

/*
 * Whatever becomes of a reading, the next one tells all that it would have told, but when; only that there
 * will be no next one has to be said.
 */
static void push(struct sink_otlp *sink, const struct run *run,
		 int (*give)(struct otlp_sender *sender, const char *text))
{
	autofree char *text = metrics_otlp(sink->metrics, run, sink->started_ns, clock_wall_ns());
	int r = text ? give(sink->sender, text) : -ENOMEM;

	if (r < 0 && r != -EAGAIN && !sink->said) {
		sink->said = true;
		sink->say(r);
	}
}

int sink_otlp_interval(struct sink_otlp *sink)
{
	const struct snapshot_source *source = sink->source;
	autorun struct run *run = NULL;
	int r = source->brief(source->context, &run);

	if (!r)
		r = source->judge(source->context, run);
	if (r < 0)
		return r;
	push(sink, run, otlp_sender_push);
	return 0;
}

void sink_otlp_end(struct sink_otlp *sink, const struct run *run)
{
	push(sink, run, otlp_sender_push_last);
}
