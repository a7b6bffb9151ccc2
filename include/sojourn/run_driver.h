/* SPDX-License-Identifier: MIT */
/* The load and what the driver saw of it, as part of a run (run.h). */
#ifndef SOJOURN_RUN_DRIVER_H
#define SOJOURN_RUN_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/histogram.h"
#include "sojourn/run_kinds.h"
#include "sojourn/run_values.h"

/* Why the driver itself could not make the requested load. */
struct run_limited {
	char *by;  /* "cpu", "schedule", "ports", "files" */
	char *why; /* a sentence with the numbers */
};

/* The planned extent of a run that a signal ended; not known after merging. */
struct run_interrupted {
	struct run_number duration_ns;
	struct run_number requests;
};

/* One kind of failure; times count from the start of the measured phase. */
struct run_failure {
	char kind[24]; /* one of run_error_names[] */
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
	char *explanation; /* with numbers from the driver's host; NULL: none */
};

/* One part of the measured phase; a response counts where it ended. */
struct run_interval {
	uint64_t begin_ns; /* from the start of the measured phase; a multiple of interval_ns */
	uint64_t duration_ns;
	uint64_t requests; /* complete responses */
	uint64_t errors;
	uint64_t connects;
	uint64_t bytes_in;
	uint64_t bytes_out;
	struct run_number ports;  /* at the interval's end: run_driver.ports.used */
	struct histogram latency; /* response time under a rate, otherwise round trip */
};

#define RUN_ROWS_MAX 256U

/* The requests of one step, target or status; members as in struct run_driver. */
struct run_row {
	char *name;   /* of the step; the target's URL; or the status: "404" */
	char *target; /* of steps */
	char *method; /* of steps; NULL: the protocol has none */
	uint64_t requests;
	uint64_t drained; /* as in run_driver */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t status[6];
	uint64_t errors[RUN_ERROR_COUNT];
	struct histogram round_trip;
	struct histogram response_time; /* under a rate */
};

struct run_row_list {
	struct run_row *list;
	size_t count;
};

/* One driver of a merged document. */
struct run_part {
	char *host;
	char *target;
	uint32_t connections;
	uint64_t begin_ns; /* as in run_driver */
	uint64_t duration_ns;
	uint64_t requests;
	uint64_t drained;
	uint64_t errors;
	struct histogram latency;
};

/* One driver of a fleet that a coordinator ran: its share and its result. */
struct run_fleet_member {
	char *host;	      /* as given to the coordinator */
	uint32_t connections; /* its share */
	uint64_t rate;	      /* its share of the rate; 0: closed loop */
	uint64_t requests;    /* complete responses that it has reported */
	char **sources;	      /* see run_driver; NULL: not known */
	char *limited;	      /* why it did not keep up; NULL: it did, or it is not known */
	/* How far its wall clock is ahead of the coordinator's, and how wrong that may be. */
	struct run_signed clock_offset_ns;
	struct run_number clock_uncertainty_ns;
	struct run_number start_skew_ns; /* how long after the first member it began to measure */
	bool lost;
	char *reason; /* why it was lost; NULL: it was not */
};

struct run_driver {
	char *host;   /* set by run_merge(); NULL: the document's */
	char *target; /* URL */
	char *method; /* NULL: the protocol has none */
	/*
	 * Addresses that it connects from, ranges as "10.0.0.1-10.0.0.9". NULL: not known, or of several
	 * drivers.
	 */
	char **sources;
	uint32_t connections;
	uint32_t processes;   /* 0: not known */
	uint32_t threads;     /* of all processes */
	bool new_connections; /* one connection per request */
	uint64_t begin_ns;    /* of the measured phase: wall clock, ns since 1970; 0: not known */
	uint64_t duration_ns; /* of the measured phase; of several drivers, the union */
	uint64_t warmup_ns;
	uint64_t cooldown_ns;
	char *arrival;	    /* "closed", "constant", "poisson"; NULL: not known */
	uint64_t rate;	    /* requests per second, as requested; 0: closed loop */
	uint64_t think_ns;  /* closed loop: mean think time */
	uint64_t scheduled; /* requests due in the measured phase, with a schedule */
	uint64_t unsent;    /* of these: without a connection by the end */
	uint64_t requests;  /* complete responses to requests of the measured phase */
	uint64_t drained;   /* of these: came after the phase, excluded from rates */
	uint64_t connects;  /* established in the measured phase */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t grpc[RUN_GRPC_STATUS_COUNT]; /* complete responses by gRPC status */
	uint32_t streams;		      /* at a time per connection; 0: not known */
	uint64_t messages_sent;		      /* of gRPC, by all calls, failed ones too */
	uint64_t messages_received;
	struct run_number streams_allowed; /* by the server; the minimum of all connections */
	uint64_t status[6];		   /* by hundreds, [1] = 1xx … [5] = 5xx; [0] others */
	uint64_t errors[RUN_ERROR_COUNT];
	uint64_t datagrams[RUN_DATAGRAM_COUNT]; /* of udp: targets */
	struct run_failure *failures;		/* only kinds that occurred */
	size_t failure_count;
	uint64_t cpu_user_ns;
	uint64_t cpu_system_ns;
	struct run_ports ports;	       /* of all source addresses, at the end */
	struct run_number cpu_wait_ns; /* threads were ready to run, others had the CPU */
	struct histogram round_trip;   /* request handed to the kernel → last response byte read */
	struct histogram connect;      /* connect() → established */
	struct histogram tls;	       /* established → TLS established */
	struct histogram first_byte;   /* request handed to the kernel → first response byte read */
	struct histogram response_time;	 /* under a rate: intended start → last response byte */
	struct histogram schedule_delay; /* possible start → start: the driver's own error */
	uint64_t interval_ns;		 /* of all intervals except the last */
	struct run_interval *intervals;	 /* in order of time, without gaps */
	size_t interval_count;
	struct run_ratio drift; /* correlation of the intervals' rate with time, -1 … 1 */
	char *scenario;		/* name or file; NULL: all requests were equal */
	/* Steps in the scenario's order, targets as given, statuses ascending. */
	struct run_row_list rows[RUN_ROWS_COUNT];
	struct run_part *parts; /* every driver of a merged document */
	size_t part_count;
	struct run_fleet_member *members; /* of a run of several drivers as one */
	size_t member_count;
	struct run_limited *limited;	     /* NULL: the driver kept up */
	struct run_interrupted *interrupted; /* NULL: not interrupted */
	char *expected;			     /* expected statuses; NULL: any below 400 */
	struct run_samples *samples;	     /* NULL: none taken */
	char *unsampled; /* why there are no samples although requested; NULL: there are */
	/* why the observer's part is missing; NULL: not requested, or present */
	char *observer_error;
};

#endif
