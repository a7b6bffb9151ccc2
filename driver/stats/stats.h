/* SPDX-License-Identifier: MIT */
/* The counts of one worker, added up when it rests. */
#ifndef DRIVER_STATS_STATS_H
#define DRIVER_STATS_STATS_H

#include <stdint.h>

#include "engine/engine.h"
#include "sojourn/histogram.h"
#include "sojourn/run.h"

#define STATS_DETAIL_SIZE 192

struct stats {
	uint64_t requests; /* complete responses */
	uint64_t connects;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t status[6]; /* by hundreds; [0]: others */
	uint64_t grpc[RUN_GRPC_STATUS_COUNT];
	uint64_t messages_sent, messages_received; /* of gRPC */
	uint32_t streams;			   /* the lowest limit of a server; 0: not known */
	uint64_t errors[RUN_ERROR_COUNT];
	uint64_t datagrams[RUN_DATAGRAM_COUNT];
	uint64_t first_error_ns[RUN_ERROR_COUNT]; /* valid if errors[] is not 0 */
	uint64_t last_error_ns[RUN_ERROR_COUNT];
	char error_detail[RUN_ERROR_COUNT][STATS_DETAIL_SIZE]; /* of the first error; empty: none */
	uint64_t last_ns;      /* latest complete response or failure; 0: none */
	struct histogram late; /* delays of responses after the end of the phase */
	struct histogram round_trip;
	struct histogram connect;
	struct histogram tls;	     /* connection established → TLS established */
	struct histogram first_byte; /* request handed to the kernel → first byte of the response */
	/* With a schedule (otherwise empty): */
	uint64_t scheduled;		 /* due in the phase */
	uint64_t unsent;		 /* of these, without a connection by the end */
	struct histogram response_time;	 /* intended start → complete response */
	struct histogram schedule_delay; /* possible start → start */
};

void stats_record(struct stats *stats, const struct engine_result *result);
/* Record the response time of a complete result, after stats_record(). */
void stats_record_response(struct stats *stats, const struct engine_result *result,
			   uint64_t intended_ns);
void stats_record_connect(struct stats *stats, uint64_t connect_ns);
void stats_add(struct stats *stats, const struct stats *other);

uint64_t stats_errors(const struct stats *stats);

/* Record a response @late_ns after the end of the phase. */
void stats_record_late(struct stats *stats, uint64_t late_ns);

/*
 * Return how many of the late responses to exclude from throughput, in a phase of @duration_ns. The
 * rate is that of the phase alone, or of the phase up to the late response that maximises it.
 * Draining requests thus cannot inflate it, and one straggler cannot lower it.
 */
uint64_t stats_drained(const struct stats *stats, uint64_t duration_ns);

#endif
