/* SPDX-License-Identifier: MIT */
/* What one worker counts, alone; the parts are added when it has come to rest. */
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
	uint64_t status[6]; /* by hundreds; [0] anything else */
	uint64_t grpc[RUN_GRPC_STATUS_COUNT];
	uint32_t streams; /* the least that a server allows; 0: not known */
	uint64_t errors[RUN_ERROR_COUNT];
	uint64_t datagrams[RUN_DATAGRAM_COUNT];
	uint64_t first_error_ns[RUN_ERROR_COUNT]; /* valid where errors[] is not 0 */
	uint64_t last_error_ns[RUN_ERROR_COUNT];
	char error_detail[RUN_ERROR_COUNT][STATS_DETAIL_SIZE]; /* of the first; empty: none */
	uint64_t last_ns;      /* latest complete response or failure; 0 if none */
	struct histogram late; /* responses after the phase had ended: by how much */
	struct histogram round_trip;
	struct histogram connect;
	struct histogram tls;	     /* connection established → TLS is, too */
	struct histogram first_byte; /* request handed to the kernel → first byte of the response */
	/* Where a schedule says when requests are due (else empty): */
	uint64_t scheduled;		 /* due in the phase */
	uint64_t unsent;		 /* of these: still waiting for a connection at its end */
	struct histogram response_time;	 /* intended start → complete response */
	struct histogram schedule_delay; /* could be sent → was sent */
};

void stats_record(struct stats *stats, const struct engine_result *result);
/* What stats_record() has recorded already, if it is complete, was meant to leave at @intended_ns. */
void stats_record_response(struct stats *stats, const struct engine_result *result,
			   uint64_t intended_ns);
/* A scheduled request left, @delay_ns after it could have. */
void stats_record_delay(struct stats *stats, uint64_t delay_ns);
void stats_record_connect(struct stats *stats, uint64_t connect_ns);
void stats_record_tls(struct stats *stats, uint64_t tls_ns);
void stats_add(struct stats *stats, const struct stats *other);

uint64_t stats_errors(const struct stats *stats);

/* A complete response came so long after the phase had ended. */
void stats_record_late(struct stats *stats, uint64_t late_ns);

/*
 * What of the responses is in no rate, of a phase of @duration_ns: 0 … those that came after it. Responses per
 * second of the phase, or until that late one with which there are most: more than the server can do is never
 * told, as it began with nothing under way, and one that takes for ever makes no rate lower.
 */
uint64_t stats_drained(const struct stats *stats, uint64_t duration_ns);

#endif
