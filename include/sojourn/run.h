/* SPDX-License-Identifier: MIT */
/*
 * The run document in memory: what was measured, by whom, at what cost and with what losses. The
 * observer and the driver fill it, lib/json/write.c and lib/json/read.c write and read it as JSON
 * (docs/run-document.md), reports are made from it alone.
 *
 * Every structure owns what it points to; a zeroed one is valid and empty.
 */
#ifndef SOJOURN_RUN_H
#define SOJOURN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sojourn/cleanup.h"
#include "sojourn/histogram.h"
#include "sojourn/run_kinds.h"
#include "sojourn/run_values.h"
#include "wire/flow.h"
#include "wire/stage.h"

#define RUN_SCHEMA "sojourn.run/1"

/* Classes of statuses: [0] are those that are not known, or in none; from there on 1xx … 5xx. */
#define RUN_STATUS_CLASSES 6
#define RUN_STATUS_LEAST   100
#define RUN_STATUS_COUNT   500

struct run_process {
	uint32_t pid;
	char comm[16];
	struct run_number open_fds;
	struct run_number fd_limit; /* soft RLIMIT_NOFILE */
};

/* HTTP/2 with --http: streams as exchanges. What is not known was not asked for, or not possible. */
struct run_http2 {
	char *reason;		       /* why not; NULL: it was */
	struct run_number connections; /* whose streams were followed */
	struct run_number given_up;    /* of these: bytes were not seen, or not understood */
	struct run_number streams;     /* opened by clients */
	struct run_number reset_by_client;
	struct run_number reset_by_server;
	struct run_number refused; /* the server said that it did nothing for them */
	struct run_number lost;	   /* found no room, or their connection was given up */
	struct run_number goaways; /* connections that the server told it ends */
};

/* Responses of HTTP with --http, by their status. */
struct run_responses {
	uint64_t count; /* of which the status is known, or could not be */
	uint64_t status[RUN_STATUS_CLASSES];
	uint64_t statuses[RUN_STATUS_COUNT]; /* from RUN_STATUS_LEAST on */
	struct histogram service_4xx;	     /* of those that were timed */
	struct histogram service_5xx;
};

struct run_accept_queue {
	struct run_number listeners; /* now; each has a queue of its own */
	struct run_number depth;     /* now, all listeners of the service */
	struct run_number depth_max; /* high-water mark, of any one listener */
	struct run_number limit; /* sk_max_ack_backlog: listen()'s backlog capped by somaxconn */
	struct run_number overflows; /* connections that found it full */
	struct run_number drops;     /* segments that its listeners dropped, for whatever reason */
};

/* One of several listeners of a service, since it was seen first. */
struct run_listener {
	uint64_t inode;	       /* of its socket, as `ss -e` shows it */
	char address[48];      /* as that of the service */
	struct run_number pid; /* the process that holds it; not known if there are several */
	char comm[16];
	struct run_number holders; /* processes that hold it */
	struct run_number depth;   /* now */
	struct run_number depth_max;
	struct run_number limit;
	struct run_number overflows; /* connections that found it full: at most so many */
	struct run_number drops;
};

/* Requests under way at the period's end, and connections that are being closed. */
struct run_open {
	struct run_number read;	      /* by the server, and not answered */
	struct run_number unread;     /* in the socket */
	struct run_number unaccepted; /* of these: in the accept queue */
	struct run_number oldest_ns; /* age of the oldest; 0: there is none, or none of known age */
	struct run_number oldest_unread_ns;
	uint64_t ages[RUN_AGE_COUNT];	 /* of those whose age is known */
	struct run_number unread_bytes;	 /* of all connections */
	struct run_number closing;	 /* closed by the server, and not yet over */
	struct run_number closing_bytes; /* which they still have to send */
};

/* What of a sample is known, as bits of run_sample.known; below them stands one for each stage. */
enum run_sample_value {
	RUN_SAMPLE_PID = 1 << 16,
	RUN_SAMPLE_BYTES_IN = 1 << 17,
	RUN_SAMPLE_BYTES_OUT = 1 << 18,
	RUN_SAMPLE_ARRIVAL = 1 << 19,
	RUN_SAMPLE_RUNNING = 1 << 20,
	RUN_SAMPLE_RUNNABLE = 1 << 21,
	RUN_SAMPLE_START = 1 << 22,
	RUN_SAMPLE_ROUND_TRIP = 1 << 23,
	RUN_SAMPLE_RESPONSE = 1 << 24,
	RUN_SAMPLE_STEP = 1 << 25,
};

#define RUN_SAMPLE_STAGE(stage) (1U << (stage))

_Static_assert(STAGE_COUNT <= 16, "the stages' bits of run_sample.known");

/*
 * One exchange, as the observer or the driver saw it; the two sides' samples of the same exchange
 * have the same flow and index (docs/measurement.md, consistent sampling).
 */
struct run_sample {
	struct flow flow;
	uint32_t index; /* on its connection, from 0 */
	uint32_t
		known; /* enum run_sample_value and RUN_SAMPLE_STAGE(): what of the rest is valid */
	uint32_t pid;  /* of the server's process that began the response */
	uint64_t bytes_in;  /* of the request */
	uint64_t bytes_out; /* of the response */

	/* The observer's. Times are its CLOCK_MONOTONIC. */
	uint64_t arrival_ns; /* the request became readable */
	/*
	 * Those up to STAGE_RESPOND sum to the residence exactly: here STAGE_ACCEPT_QUEUE is only the
	 * part of the connection's wait in which this request was already there, mostly 0.
	 */
	uint64_t stage_ns[STAGE_COUNT];
	uint64_t running_ns;  /* of STAGE_SERVICE: the thread was on a CPU */
	uint64_t runnable_ns; /* of STAGE_SERVICE: it could have run and waited for a CPU */

	/* The driver's. Times are its CLOCK_MONOTONIC. */
	uint64_t start_ns;	/* request handed to the kernel */
	uint64_t round_trip_ns; /* from there to the last byte of the response read */
	uint64_t response_ns;	/* under a rate: from the intended start */
	uint32_t step;		/* of a scenario: which of the driver's rows it was */
};

/*
 * The exchanges of a period whose exchange_hash() is below the threshold, in no particular order. All
 * of them, but for @lost (which counts while a higher threshold was in use, too) and what the
 * observer never samples: connections older than itself, multiplexed ones, untimed exchanges.
 */
struct run_samples {
	uint64_t threshold; /* 0 … RUN_SAMPLE_ALL */
	uint64_t lost;
	uint64_t inconsistent; /* told with times out of order: left out; there should be none */
	struct run_sample *samples;
	size_t count;
	size_t capacity;
};

/* The threshold that is above every hash. */
#define RUN_SAMPLE_ALL (1ULL << 32)

struct run_series; /* series.h */

/* Services that gave their slots to others, when they had ended or nobody used them any more: one sum of them. */
struct run_reclaimed {
	uint64_t services;
	uint64_t accepted;
	uint64_t exchanges;
	uint64_t bytes_in;
	uint64_t bytes_out;
};

struct run_service {
	char *host;	  /* in a document of several observers; NULL: that of the document */
	char protocol[8]; /* "tcp" */
	char address[48]; /* as bound: "0.0.0.0", "::", "127.0.0.1"; "*" for several */
	uint16_t port;	  /* host order */
	uint32_t netns;	  /* inode number, as in /proc/PID/ns/net */
	/* Another one than before: the service has given its slot to others since, and got one again. */
	uint64_t turn;

	uint64_t accepted;
	uint64_t exchanges;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t closes[RUN_CLOSE_COUNT];
	uint64_t losses[RUN_LOSS_COUNT];
	/*
	 * CLOCK_MONOTONIC ns of the first arrival and the last write in this period; 0 if none, or
	 * if not known (the first arrival after run_subtract(), unless the observer restarted it).
	 */
	uint64_t first_message_ns;
	uint64_t last_message_ns;
	struct run_stage stages[STAGE_COUNT];
	/* Exchanges whose request was readable before accept() returned, and their sum of that wait. */
	uint64_t accept_delayed;
	uint64_t accept_delay_ns;
	/* Of the same exchanges; for each they add up to its service. */
	struct run_stage cpu[RUN_CPU_COUNT];
	uint64_t transmit_followed; /* exchanges whose transmit_queue and ack were looked for */
	uint64_t tls;		    /* connections that speak TLS */
	struct histogram
		tls_handshake; /* ClientHello's first byte was readable → the last flight */
	/* Of a sample of the reads with which an exchange begins: how many requests began in them. */
	uint64_t looked;
	uint64_t looked_requests;
	/* Responses whose end Nagle's algorithm held back; known at the next request or FIN. */
	uint64_t nagle_held;
	struct run_http2 http2;
	struct run_responses responses;

	struct run_number quiet_ns;    /* a pause that ended a response (TCP), as it was set */
	struct run_number connections; /* established now */
	struct run_number srtt_ns;    /* mean of their smoothed round-trip times, as TCP measures */
	struct run_number min_rtt_ns; /* the lowest of them */
	uint64_t retransmits;	      /* segments sent again */
	struct run_number time_wait;  /* TIME_WAIT sockets on the service's port now */
	uint64_t time_wait_created;
	struct run_open open;
	struct histogram abandoned; /* age of the unanswered requests when their connection ended */
	struct run_ports ports;	    /* of the service's network namespace, whoever opened them */
	struct run_accept_queue accept_queue;
	struct run_listener *listeners; /* if there are two or more */
	size_t listener_count;
	struct run_process *processes;
	size_t process_count;
	struct run_samples *samples; /* NULL: none were taken */
	struct run_series *series;   /* series.h; NULL: none was kept */
};

struct run_program {
	char name[32];
	struct run_number runs;	   /* only with BPF run statistics on */
	struct run_number run_ns;  /* likewise, sum over all runs */
	uint64_t recursion_misses; /* events that this program did not see */
};

/* What observing cost, and what it lost as a whole. */
struct run_cost {
	uint64_t cpu_ns;	 /* the observer's user-space CPU time in this period */
	uint64_t resident_bytes; /* its peak resident set */
	uint64_t map_bytes;	 /* memory of its BPF maps */
	struct run_program *programs;
	size_t program_count;
	struct run_machine machine;
};

/* What of the driver itself kept it from making the load that was asked for. */
struct run_limited {
	char *by;  /* "cpu", "schedule", "ports", "files" */
	char *why; /* a sentence with the numbers */
};

/* A run that a signal ended: how much of it was asked for. Of a merged one nothing is known. */
struct run_interrupted {
	struct run_number duration_ns;
	struct run_number requests;
};

/* One kind of failure; times count from the begin of the measured phase. */
struct run_failure {
	char kind[24]; /* one of run_error_names[] */
	uint64_t count;
	uint64_t first_ns;
	uint64_t last_ns;
	char *explanation; /* with numbers from the driver's host; NULL: none */
};

/* One stretch of the measured phase; a response counts where it ended. */
struct run_interval {
	uint64_t begin_ns; /* from the begin of the measured phase; a multiple of interval_ns */
	uint64_t duration_ns;
	uint64_t requests; /* complete responses */
	uint64_t errors;
	uint64_t connects;
	uint64_t bytes_in;
	uint64_t bytes_out;
	struct run_number ports;  /* at its end: run_driver.ports.used */
	struct histogram latency; /* response time under a rate, else round trip */
};

#define RUN_ROWS_MAX 256U

/*
 * Those of the requests that are of one step, for one target or answered with one status; members mean
 * what they mean in struct run_driver.
 */
struct run_row {
	char *name;   /* of the step; the target's URL; the status: "404" */
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

/* One driver of several whose documents were merged. */
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

/* One driver of a fleet, which a coordinator ran: what it was to do, and how it fared. */
struct run_fleet_member {
	char *host;	      /* as the coordinator was given it */
	uint32_t connections; /* its share */
	uint64_t rate;	      /* its share of the rate; 0: closed loop */
	uint64_t requests;    /* complete responses that it told of */
	char *limited;	      /* why it did not keep up; NULL: it did, or that is not known */
	/* Its wall clock is ahead of the coordinator's by so much, and by how much that may be wrong. */
	struct run_signed clock_offset_ns;
	struct run_number clock_uncertainty_ns;
	struct run_number start_skew_ns; /* it began to measure so long after the first one */
	bool lost;
	char *reason; /* why it was lost; NULL: it was not */
};

struct run_driver {
	char *host;   /* the driver's host, set by run_merge(); NULL: that of the document */
	char *target; /* URL */
	char *method; /* NULL: the protocol has none */
	uint32_t connections;
	uint32_t processes;   /* 0: not known */
	uint32_t threads;     /* of all processes */
	bool new_connections; /* one connection per request */
	uint64_t begin_ns;    /* of the measured phase: wall clock, ns since 1970; 0: not known */
	uint64_t duration_ns; /* the measured phase; of several drivers, the union of theirs */
	uint64_t warmup_ns;
	uint64_t cooldown_ns;
	char *arrival;	    /* "closed", "constant", "poisson"; NULL: not known */
	uint64_t rate;	    /* requests per second asked for; 0: closed loop */
	uint64_t think_ns;  /* closed loop: mean think time */
	uint64_t scheduled; /* requests due in the measured phase, where a schedule says so */
	uint64_t unsent;    /* of these: still waiting for a connection at its end */
	uint64_t requests;  /* complete responses to what was sent in the measured phase */
	uint64_t drained;   /* of these: came after its end, and are in no rate */
	uint64_t connects;  /* connections established in the measured phase */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t grpc[RUN_GRPC_STATUS_COUNT]; /* complete responses by gRPC status */
	uint32_t streams;		      /* at a time on a connection; 0: not known */
	struct run_number streams_allowed;    /* by the server, the least of all connections */
	uint64_t status[6]; /* by hundreds, [1] = 1xx … [5] = 5xx; [0] anything else */
	uint64_t errors[RUN_ERROR_COUNT];
	uint64_t datagrams[RUN_DATAGRAM_COUNT]; /* udp: */
	struct run_failure *failures;		/* those that occurred */
	size_t failure_count;
	uint64_t cpu_user_ns;
	uint64_t cpu_system_ns;
	struct run_ports ports;	       /* of all its source addresses, at the end */
	struct run_number cpu_wait_ns; /* its threads were ready to run, others had the CPU */
	struct histogram round_trip;   /* request handed to the kernel → last response byte read */
	struct histogram connect;      /* connect() → established */
	struct histogram tls;	       /* from there to the end of TLS' handshake */
	struct histogram first_byte;   /* request handed to the kernel → first response byte read */
	struct histogram response_time;	 /* under a rate: intended start → last response byte */
	struct histogram schedule_delay; /* could be sent → was sent: the driver's own error */
	uint64_t interval_ns;		 /* length of the intervals but for the last one */
	struct run_interval *intervals;	 /* in order of time, without gaps */
	size_t interval_count;
	struct run_ratio drift; /* correlation of the intervals' rate with time, -1 … 1 */
	char *scenario;		/* name or file; NULL: every request was the same */
	/* Steps in the scenario's order, targets as given, statuses from the lowest up. */
	struct run_row_list rows[RUN_ROWS_COUNT];
	struct run_part *parts; /* of a merged document: every driver */
	size_t part_count;
	struct run_fleet_member *members; /* of a run of several drivers as one */
	size_t member_count;
	struct run_limited *limited;	     /* NULL: the driver kept up */
	struct run_interrupted *interrupted; /* NULL: it ended by itself */
	char *expected;			     /* statuses that were asked for; NULL: any below 400 */
	struct run_samples *samples;	     /* NULL: none were taken */
	char *unsampled; /* why there are no samples although they were asked for; NULL: there are */
	char *observer_error; /* why the observer's part is missing; NULL if not asked or there */
};

/*
 * What a joined exchange consists of, or the sums of several, in ns:
 *
 *     round_trip = network + the stages of the residence + transmit_queue − overhang
 *
 * to the nanosecond. A stage that is not known (transmit_queue where it was not followed) is in
 * network. ack is no part of the sum.
 */
struct run_parts {
	uint64_t wait_ns; /* under a rate: when the request was due → handed to the kernel */
	uint64_t round_trip_ns;
	uint64_t network_ns;
	/* The client had the whole response before the server's write returned, by this much. */
	uint64_t overhang_ns;
	struct run_number stages[STAGE_COUNT];
	/* service, divided: all known or none */
	struct run_number running_ns;
	struct run_number runnable_ns;
	struct run_number blocked_ns;
};

/* The joined exchanges that were slower than a percentile of all that the driver measured. */
struct run_tail {
	uint32_t per_mille; /* 990: p99 */
	uint64_t
		above_ns; /* the percentile: of the response time under a rate, else the round trip */
	uint64_t count;
	struct run_parts sum;
};

/* The joined exchanges that were a step of a scenario. */
struct run_joined_step {
	char *name;
	uint64_t count;
	struct run_parts sum;
};

/* One joined exchange. */
struct run_exchange {
	char client[56]; /* "192.0.2.1:40000", "[2001:db8::1]:40000" */
	char server[56];
	uint32_t index; /* on its connection, from 0 */
	struct run_number pid;
	struct run_number bytes_in;
	struct run_number bytes_out;
	uint64_t start_ns;   /* by the driver's CLOCK_MONOTONIC */
	uint64_t arrival_ns; /* by the observer's */
	struct run_parts parts;
};

/* The driver's and the observer's views of the same exchanges (docs/measurement.md, joining). */
struct run_joined {
	char *reason;	    /* why some or all could not be joined; NULL: all were */
	uint64_t threshold; /* the lower one of both sides; RUN_SAMPLE_ALL: every exchange */
	uint64_t joined;
	uint64_t early; /* of these: with an overhang */
	uint64_t repeated;
	uint64_t driver_only;
	uint64_t unknown_flow;
	uint64_t observer_only;
	uint64_t unmeasured;
	uint64_t other_clients;
	uint64_t ambiguous;
	uint64_t implausible;
	uint64_t begin_ns; /* the earliest start of a joined exchange, by the driver's clock */
	struct run_parts sum;
	struct histogram round_trip;
	struct histogram network;
	struct run_stage stages[STAGE_COUNT];
	struct run_tail *tail; /* from the lowest percentile up */
	size_t tail_count;
	struct run_joined_step *steps; /* of a scenario: one for each of the driver's rows */
	size_t step_count;
	struct run_exchange *slowest; /* the slowest first */
	size_t slowest_count;
};

struct run_finding; /* finding.h, as is struct run_look */
struct run_look;
struct run_sweep; /* sweep.h */

struct run {
	char *host;
	char *kernel;
	char *tool;	  /* "sojourn 0.1.0" */
	char *started_at; /* RFC 3339, UTC, of the period's begin */
	uint64_t duration_ns;
	char **command; /* NULL-terminated argv, may be NULL */
	struct run_service *services;
	size_t service_count;
	struct run_cost *cost;		/* NULL in a document of the driver alone */
	uint64_t services_dropped;	/* services that found no slot when they had traffic */
	uint64_t connections_dropped;	/* of these: they are in no count */
	uint64_t listeners_idle;	/* now: they get a slot with their first connection */
	struct run_reclaimed reclaimed; /* services that are no longer in `services` */
	char dropped_ports[96];	   /* some of those without a slot, for a finding; in no document */
	char *connections_in;	   /* where the observer kept connections; NULL: no observer's */
	struct run_driver *driver; /* NULL in a document of the observer alone */
	struct run_joined *joined; /* NULL unless both sides' samples were there; see join.h */
	struct run_sweep *sweep; /* NULL unless loads were gone through; then there is no driver */
	struct run_finding *findings; /* worst first */
	size_t finding_count;
	char **not_seen;	       /* what the doctor could not see; NULL: it did not look */
	struct run_finding *resources; /* of `sojourn doctor`: all that it looked at */
	size_t resource_count;
	struct run_look *looked_at; /* likewise; NULL: another's document */
};

/* NULL without memory. Fills host, kernel, tool and started_at from this machine. */
struct run *run_new(const char *program, char **command);
void run_free(struct run *run);
DEFINE_CLEANUP(struct run *, run_free)
#define autorun CLEANUP(cleanup_run_free)

/* Appends one zeroed service; NULL without memory. Pointers to other services become invalid. */
struct run_service *run_add_service(struct run *run);
/* Appends one zeroed process to @service; NULL without memory. */
struct run_process *run_add_process(struct run_service *service);
struct run_listener *run_add_listener(struct run_service *service);

/* No samples yet, threshold RUN_SAMPLE_ALL; NULL without memory. */
struct run_samples *run_samples_new(void);
void run_samples_free(struct run_samples *samples);
DEFINE_CLEANUP(struct run_samples *, run_samples_free)
#define autosamples CLEANUP(cleanup_run_samples_free)

/* Appends one zeroed sample; NULL without memory. Pointers to other samples become invalid. */
struct run_sample *run_add_sample(struct run_samples *samples);
/* Makes room for @capacity samples in all. -ENOMEM. */
int run_samples_reserve(struct run_samples *samples, size_t capacity);
/* Lowers the threshold to @threshold, if it is above, and drops the samples that it no longer holds. */
void run_samples_lower(struct run_samples *samples, uint64_t threshold);
/* By flow, then index: an order for qsort() and bsearch(). */
int run_sample_compare(const void *a, const void *b);

/*
 * Makes @run, the later reading, cover only the time since @earlier, a reading of the same
 * observation: counts, sums and histograms are subtracted, gauges (depth, TIME_WAIT, fds), the
 * high-water mark and findings stay, samples that @earlier has too are removed.
 * Services are matched by (netns, protocol, port); one that is not in @earlier stays whole.
 */
void run_subtract(struct run *run, const struct run *earlier);
/* Takes out of @run, which will be subtracted, the services of which nothing was counted: that changes nothing. */
void run_drop_idle(struct run *run);

/*
 * Adds @other to @run: what one document of both would hold. A driver's and an observer's part become
 * one document with host, kernel, started_at and duration_ns of the observer; counts and histograms of
 * several drivers add, their period is the union of theirs; likewise those of several observers.
 * @other is used up and stays to be freed by the caller. -EINVAL with the member that cannot be merged
 * in @ret_error (freed by the caller), -ENOMEM; then @run is not to be used either.
 */
int run_merge(struct run *run, struct run *other, char **ret_error);
/*
 * Whether the documents of a driver and of an observer, given by their files, can be of the same requests: -EINVAL,
 * with the reason as above, if their times do not overlap. Clocks of two hosts may differ by a minute.
 */
int run_check_times(const struct run *run, const struct run *other, char **ret_error);

void run_joined_free(struct run_joined *joined);
DEFINE_CLEANUP(struct run_joined *, run_joined_free)

/* Adds the parts of another exchange to @sum; a stage is known if it is in any of them. */
void run_parts_add(struct run_parts *sum, const struct run_parts *parts);

/* What the user waited: under a rate from when the request was due. */
static inline uint64_t run_parts_total(const struct run_parts *parts)
{
	return parts->wait_ns + parts->round_trip_ns;
}

/* Frees what it holds; it is empty then. */
void run_row_list_clear(struct run_row_list *rows);
/* Responses as far as they lay within the measured phase: what rates are of. */
static inline uint64_t run_timely(uint64_t requests, uint64_t drained)
{
	return requests > drained ? requests - drained : 0;
}

static inline uint64_t run_driver_timely(const struct run_driver *driver)
{
	return run_timely(driver->requests, driver->drained);
}

static inline uint64_t run_row_timely(const struct run_row *row)
{
	return run_timely(row->requests, row->drained);
}

/* Sum of a row's errors. */
uint64_t run_row_errors(const struct run_row *row);

/* Sum of the driver's errors. */
uint64_t run_driver_errors(const struct run_driver *driver);

/* Latency as its intervals have it: the response time under a rate, else the round trip. */
const struct histogram *run_driver_latency(const struct run_driver *driver);

/* More intervals than these are joined by two, see run_join_intervals(). */
#define RUN_INTERVALS_MAX 600U

/* Makes the intervals twice as long, each of two of the former ones. */
void run_join_intervals(struct run_driver *driver);

/*
 * Pearson's correlation of rate and time over the intervals of full length: near 1 or -1 the rate rose
 * or fell all the time. Not known below three of them, or if the rate never changed.
 */
struct run_ratio run_drift(const struct run_driver *driver);

/* RFC 3339 text of document times, to and from ns since 1970. -EINVAL; NULL without memory. */
int run_parse_time(const char *text, uint64_t *ret_wall_ns);
char *run_format_time(uint64_t wall_ns);

/*
 * The JSON text of the document, ending in a newline; NULL without memory. The caller frees it.
 */
char *run_to_json(const struct run *run);

/* The same text into @file. 0; -ENOMEM, or what a write met with: then a part of it may be there. */
int run_print_json(const struct run *run, FILE *file);

/* The JSON Schema (draft 2020-12) of every such text; likewise. */
char *run_schema_to_json(void);

/*
 * Parses a document. -EINVAL if it is not one of RUN_SCHEMA; then @ret_error (to be freed by the
 * caller) says which line or member is wrong and what is allowed.
 */
int run_from_json(const char *text, size_t length, struct run **ret_run, char **ret_error);

/* The same from and to a file; "-" is standard input or output. Writing replaces atomically. */
int run_read(const char *path, struct run **ret_run, char **ret_error);
int run_write(const struct run *run, const char *path);

/* The text alone, of whatever is there: one byte more than a document may have at most. */
int run_read_text(const char *path, char **ret_text, size_t *ret_length);
/* Writes any text in that way. */
int run_write_text(const char *text, const char *path);
/* Whether that will go, as far as it can be told before; leaves @path as it is. 0 or -errno. */
int run_try_write(const char *path);

#endif
