/* SPDX-License-Identifier: MIT */
/*
 * Gives a reading to an OpenTelemetry collector (OTLP over HTTP, JSON) at each interval: the metrics of /metrics
 * (docs/metrics.md). A separate process sends them. So no collector, name server or certificate ever keeps the
 * observation waiting. The process has no capability, is nobody if the observation is root, and knows no secret of
 * the endpoint.
 */
#ifndef OBSERVER_SINKS_OTLP_SINK_H
#define OBSERVER_SINKS_OTLP_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "sinks/sink.h"
#include "sojourn/metrics.h"

#define OTLP_HEADERS 16
#define OTLP_SECRETS 3

/* Where to. Texts stay the caller's. */
struct otlp_target {
	const char *url; /* of the metrics, such as http://127.0.0.1:4318/v1/metrics */
	const char *ca;	 /* PEM of who signs the collector's certificate; NULL: the system's */
	char *headers[OTLP_HEADERS]; /* "Name: value", besides Content-Type */
	size_t header_count;
	const char *secrets[OTLP_SECRETS]; /* texts that the process must erase; NULL: none */
	uint64_t interval_ns;
	enum metrics_buckets buckets;
};

/*
 * Start the process, before any thread. @say is called once, with -errno, if readings can no longer be sent. Return 0
 * or -errno. -ENOSYS: built without libcurl.
 */
int sink_otlp_open(const struct otlp_target *target, void (*say)(int error),
		   struct sink **ret_sink);

/* Start sending. Counts are since this call. A reading that has no room is skipped. */
void sink_otlp_begin(struct sink *sink, const struct snapshot_source *source);

#endif
