/* SPDX-License-Identifier: MIT */
/* Gives a reading to an OpenTelemetry collector at each interval: the metrics of /metrics (docs/metrics.md). */
#ifndef OBSERVER_SINK_OTLP_H
#define OBSERVER_SINK_OTLP_H

#include "otlp_sender.h"
#include "snapshot.h"
#include "sojourn/cleanup.h"

struct sink_otlp;

/*
 * Starts what sends. As otlp_sender_start(). @say is told once why readings can be given to nobody any more:
 * -errno.
 */
int sink_otlp_open(const struct otlp_target *target, void (*say)(int error),
		   struct sink_otlp **ret_sink);
void sink_otlp_close(struct sink_otlp *sink);
DEFINE_CLEANUP(struct sink_otlp *, sink_otlp_close)

/* The observation begins: what is counted, is since now. */
void sink_otlp_begin(struct sink_otlp *sink, const struct snapshot_source *source);

/* A reading that the sender has no room for is left out. 0 or -errno of the reading itself. */
int sink_otlp_interval(struct sink_otlp *sink);

/* The last one. */
void sink_otlp_end(struct sink_otlp *sink, const struct run *run);

#endif
