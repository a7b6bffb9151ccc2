// SPDX-License-Identifier: MIT
/* Readings on their way to a collector; see sink_otlp.h. */
#include "sink_otlp.h"

#include <errno.h>
#include <stdlib.h>

#include "sojourn/clock.h"
#include "sojourn/metrics.h"

struct sink_otlp {
	const struct snapshot_source *source;
	struct otlp_sender *sender;
	struct metrics *metrics;
	uint64_t started_ns; /* wall clock */
};

int sink_otlp_open(const struct otlp_target *target, struct sink_otlp **ret_sink)
{
	CLEANUP(cleanup_sink_otlp_close) struct sink_otlp *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
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

static int push(struct sink_otlp *sink, const struct run *run)
{
	autofree char *text = metrics_otlp(sink->metrics, run, sink->started_ns, clock_wall_ns());

	return text ? otlp_sender_push(sink->sender, text) : -ENOMEM;
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
	/* Whatever becomes of it, the next one tells all that this one would have told, but when. */
	push(sink, run);
	return 0;
}

void sink_otlp_end(struct sink_otlp *sink, const struct run *run)
{
	push(sink, run);
}
