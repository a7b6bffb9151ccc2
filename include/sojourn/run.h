/* SPDX-License-Identifier: MIT */
/*
 * The run document in memory: measurements, their origin, cost and losses. Observer and driver fill
 * it, lib/json/write.c and lib/json/read.c write and read it as JSON (docs/run-document.md), and
 * reports need nothing else.
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
#include "sojourn/run_calls.h"
#include "sojourn/run_driver.h"
#include "sojourn/run_kinds.h"
#include "sojourn/run_place.h"
#include "sojourn/run_pushes.h"
#include "sojourn/run_upstreams.h"
#include "sojourn/run_values.h"
#include "wire/flow.h"
#include "wire/stage.h"

#define RUN_SCHEMA "sojourn.run/1"

/* Classes of statuses: [1] … [5] are 1xx … 5xx; [0] has unknown statuses and those in no class. */
#define RUN_STATUS_CLASSES 6
#define RUN_STATUS_LEAST   100
#define RUN_STATUS_COUNT   500

struct run_process {
	uint32_t pid;
	char comm[16];
	struct run_number open_fds;
	struct run_number fd_limit; /* soft RLIMIT_NOFILE */
	char tls[80]; /* with --tls: RUN_TLS_PROBED, or why its TLS is not looked into */
};

#define RUN_TLS_PROBED "probed"

/* HTTP/2 with --http: streams as exchanges. Unknown numbers were not requested, or not possible. */
struct run_http2 {
	char *reason;		       /* why there are none; NULL: there are */
	struct run_number connections; /* whose streams were followed */
	struct run_number given_up;    /* of these: bytes not seen or not understood */
	struct run_number streams;     /* opened by clients */
	struct run_number reset_by_client;
	struct run_number reset_by_server;
	struct run_number refused;   /* not processed, according to the server */
	struct run_number lost;	     /* end not known: no room, or connection given up */
	struct run_number goaways;   /* connections whose end the server announced */
	struct run_number older;     /* connections that are older than the observation */
	struct run_number picked_up; /* of these: whose streams were followed from some frame on */
	struct run_number earlier;   /* streams on these that began before, and have ended since */
	/* Streams by error code, with `reset_by_client` and `reset_by_server` as sums. */
	uint64_t client_resets[RUN_RESET_COUNT], server_resets[RUN_RESET_COUNT];
	struct run_number ended;	   /* of `connections`, without `older` and `given_up` */
	struct run_number ended_streams;   /* opened on these */
	struct run_number streams_highest; /* on one of these, since the observation began */
	struct run_number open_highest;	   /* at once on a connection, likewise */
	struct run_number perhaps_grpc;	   /* responses: a field that may say so is not known */
	struct run_number two_way; /* responses, no gRPC: data of their requests still came */
	/* Of responses: the window of the stream, or else that of the connection, was closed. */
	struct histogram stream_stalls, connection_stalls;
	struct histogram pings; /* the server's PING written → its ACK read */
};

/* Responses of gRPC with --http, counted when they end. */
struct run_grpc {
	uint64_t count; /* all, those of unknown status included */
	uint64_t status[RUN_GRPC_COUNT];
	uint64_t kinds[RUN_GRPC_KIND_COUNT];
	/* Whole messages so far of all responses that have begun. */
	uint64_t messages_in, messages_out;
	struct histogram
		service_failed; /* `service` of the timed ones with another status than 0 */
};

/* Responses of HTTP with --http, by their status. */
struct run_responses {
	uint64_t count; /* all, those of unknown status included */
	uint64_t status[RUN_STATUS_CLASSES];
	uint64_t statuses[RUN_STATUS_COUNT]; /* from RUN_STATUS_LEAST on */
	struct histogram service_4xx;	     /* `service` of the timed 4xx responses */
	struct histogram service_5xx;
};

/*
 * Requests by route, with --route, or by command, with --protocol; they count when their response begins. A command
 * has no statuses, and its errors are known.
 */
struct run_route {
	char *route; /* as given; RUN_ROUTE_OTHER: those that match none */
	uint64_t count;
	uint64_t status[RUN_STATUS_CLASSES];
	struct run_number errors;
	struct histogram socket_queue;
	struct histogram receive;
	struct histogram service;
	struct histogram respond;
};

#define RUN_ROUTE_OTHER "other"
/* Maximum of routes, with that of others. */
#define RUN_ROUTES_MOST 33U

/*
 * Compare pointers to routes of one list, for qsort(): those with most time in service come first, then the
 * most frequent. Others keep their order.
 */
int run_route_compare(const void *a, const void *b);

struct run_routes {
	struct run_route *list;
	size_t count;
	uint64_t not_known[RUN_ROUTELESS_COUNT];
	char *protocol; /* of commands; NULL: these are routes of HTTP */
};

/* Routes proposed for requests that have none, with --propose-routes, by a sample of their paths. */
struct run_proposal {
	char *route;
	uint64_t paths; /* of the sample, that it would count */
};

/* Of the whole observation: a sample has no difference. */
struct run_proposed {
	uint64_t most;	    /* paths that a sample may have; 0: none was taken */
	uint64_t requests;  /* of which the sample is */
	uint64_t not_known; /* requests of HTTP/2 without a known path: not in the sample */
	uint64_t paths;	    /* in the sample */
	struct run_proposal *list;
	size_t count;
};

/* Maximum of proposals for a service. */
#define RUN_PROPOSALS_MOST 8U

/* Return the histogram of @stage, STAGE_SOCKET_QUEUE to STAGE_RESPOND. */
static inline struct histogram *run_route_stage(struct run_route *route, enum stage stage)
{
	return &(&route->socket_queue)[stage - STAGE_SOCKET_QUEUE];
}

_Static_assert(offsetof(struct run_route, respond) ==
		       offsetof(struct run_route, socket_queue) +
			       (STAGE_RESPOND - STAGE_SOCKET_QUEUE) * sizeof(struct histogram),
	       "the histograms are in the stages' order");

struct run_accept_queue {
	struct run_number listeners; /* now; each has its own queue */
	struct run_number depth;     /* now, all listeners of the service */
	struct run_number depth_max; /* high-water mark of any one listener */
	struct run_number limit; /* sk_max_ack_backlog: listen()'s backlog capped by somaxconn */
	struct run_number overflows; /* connections that found the queue full */
	struct run_number drops;     /* segments that the listeners dropped, for any reason */
};

/* One of several listeners of a service, since first seen. */
struct run_listener {
	uint64_t inode;	       /* of the socket, see `ss -e` */
	char address[48];      /* like the service's */
	struct run_number pid; /* the process that holds it; not known if several do */
	char comm[16];
	struct run_number holders; /* number of processes that hold it */
	struct run_number depth;   /* now */
	struct run_number depth_max;
	struct run_number limit;
	struct run_number overflows; /* connections that found the queue full, at most */
	struct run_number drops;
};

/* Requests in flight at the period's end, and closing connections. */
struct run_open {
	struct run_number read;		 /* read by the server, not answered */
	struct run_number unread;	 /* still in the socket */
	struct run_number unaccepted;	 /* of these: in the accept queue */
	struct run_number oldest_ns;	 /* 0: none, or none of known age */
	struct run_number waiting_ns;	 /* 0: none, or none of known age */
	uint64_t ages[RUN_AGE_COUNT];	 /* of requests of known age */
	struct run_number unread_bytes;	 /* of all connections */
	struct run_number closing;	 /* closed by the server, not yet over */
	struct run_number closing_bytes; /* still to be sent on them */
};

/* Return how long a request has waited for an answer. Of older documents only its age is known. */
static inline uint64_t run_open_waits(const struct run_open *open)
{
	return open->waiting_ns.known ? open->waiting_ns.value : open->oldest_ns.value;
}

/* Known members of a sample, as bits of run_sample.known. The bits below are the stages'. */
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
 * One exchange, as seen by the observer or the driver. Both sides' samples of an exchange have the
 * same flow and index (docs/measurement.md, consistent sampling).
 */
struct run_sample {
	struct flow flow;
	uint32_t index;	    /* on its connection, from 0 */
	uint32_t known;	    /* valid members: enum run_sample_value and RUN_SAMPLE_STAGE() */
	uint32_t pid;	    /* server process that began the response */
	uint64_t bytes_in;  /* of the request */
	uint64_t bytes_out; /* of the response */

	/* From the observer. Times are by its CLOCK_MONOTONIC. */
	uint64_t arrival_ns; /* the request became readable */
	/*
	 * Stages up to STAGE_RESPOND sum to the residence exactly. STAGE_ACCEPT_QUEUE is only the
	 * part of the connection's wait after this request had arrived, mostly 0.
	 */
	uint64_t stage_ns[STAGE_COUNT];
	uint64_t running_ns;  /* of STAGE_SERVICE: the thread ran */
	uint64_t runnable_ns; /* of STAGE_SERVICE: the thread waited for a CPU */

	/* From the driver, and of calls. Times are by the sender's CLOCK_MONOTONIC. */
	uint64_t start_ns; /* request handed to the kernel */
	/* From start_ns to the last byte of the response read; of a call to its first byte. */
	uint64_t round_trip_ns;
	uint64_t response_ns; /* under a rate: from the intended start */
	uint32_t step;	      /* of a scenario: index of the driver's row */
};

/*
 * The exchanges of a period whose exchange_hash() is below the threshold, in any order. @lost ones
 * are missing; some of them may have been lost under an earlier, higher threshold. The observer
 * samples no untimed exchange, and none on multiplexed connections or those older than itself.
 */
struct run_samples {
	uint64_t threshold; /* 0 … RUN_SAMPLE_ALL */
	uint64_t lost;
	uint64_t inconsistent; /* left out, as their times were out of order; should be 0 */
	struct run_sample *samples;
	size_t count;
	size_t capacity;
};

/* Octaves of residence: the first is below 2 µs, the last from 8.6 s on. */
#define RUN_NEWEST 24

struct run_newest {
	struct run_sample sample;
	uint64_t
		ended_ns; /* when its last byte was handed to the kernel, by the wall clock; 0: there is none */
};

/* A threshold above every hash. */
#define RUN_SAMPLE_ALL (1ULL << 32)

struct run_series; /* series.h */

/* The network namespaces of an observation of all of them, by its last reading. */
struct run_namespaces {
	uint64_t observed; /* entered; 0: not an observation of all */
	uint64_t ended;	   /* since the observation began */
	uint64_t not_entered;
	uint64_t left_out;	   /* beyond the maximum that is followed */
	uint64_t unseen_processes; /* whose namespace the observer may not see */
	uint64_t visited;	   /* those with services, whose sockets the last reading visited */
	uint64_t visit_ns;	   /* time of these visits in all */
	char reason[64];	   /* why one was not entered; "": all were */
};

/* The sum of services that lost their slots to others, when ended or unused. */
struct run_reclaimed {
	uint64_t services;
	uint64_t accepted;
	uint64_t exchanges;
	uint64_t bytes_in;
	uint64_t bytes_out;
};

struct run_service {
	char *host;	  /* in a document of several observers; otherwise NULL */
	char protocol[8]; /* "tcp" */
	char address[48]; /* as bound: "0.0.0.0", "::", "127.0.0.1"; "*": several */
	uint16_t port;	  /* host order */
	uint32_t netns;	  /* inode number, see /proc/PID/ns/net */
	struct run_place place;
	/*
	 * Greater for a later service of the same port. It got a slot again after losing one to another service, or
	 * its namespace has an ended one's number.
	 */
	uint64_t turn;

	uint64_t accepted;
	uint64_t exchanges;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t closes[RUN_CLOSE_COUNT];
	uint64_t losses[RUN_LOSS_COUNT];
	/*
	 * CLOCK_MONOTONIC ns of the first arrival and last write in this period. 0: none, or not
	 * known (the first arrival after run_subtract(), unless the observer restarted it).
	 */
	uint64_t first_message_ns;
	uint64_t last_message_ns;
	struct run_stage stages[STAGE_COUNT];
	/*
	 * Exchanges whose request was readable before accept() returned, and the sum of that wait.
	 */
	uint64_t accept_delayed;
	uint64_t accept_delay_ns;
	/* The parts of service, all of the same exchanges: they sum to each one's service. */
	struct run_stage cpu[RUN_CPU_COUNT];
	uint64_t transmit_followed;	/* exchanges followed for transmit_queue and ack */
	uint64_t tls;			/* connections with TLS */
	struct histogram tls_handshake; /* ClientHello's first byte readable → last flight */
	/* A sample of reads that begin exchanges, and the number of requests that began in them. */
	uint64_t looked;
	uint64_t looked_requests;
	/* Responses whose end Nagle's algorithm delayed; known at the next request or FIN. */
	uint64_t nagle_held;
	/* With --http: connections of HTTP/1 whose clients pipeline, and those whose bytes were not seen or understood. */
	struct run_number pipelined;
	struct run_number pipelines_given_up;
	struct run_http2 http2;
	struct run_responses responses;
	struct run_grpc grpc;
	struct run_websocket websocket;
	struct run_events events;
	struct run_routes routes; /* none without --route or --protocol */
	struct run_proposed proposed;
	struct run_number quiet_ns;    /* pause that ended a response (TCP), as configured */
	struct run_number connections; /* now established */
	struct run_number srtt_ns;     /* mean of their smoothed round-trip times, by TCP */
	struct run_number min_rtt_ns;  /* the lowest of their round-trip times */
	uint64_t retransmits;	       /* segments sent again */
	struct run_number time_wait;   /* now, with the service's port */
	uint64_t time_wait_created;
	struct run_open open;
	struct histogram abandoned; /* age of unanswered requests at the end of their connection */
	struct run_ports ports;	    /* of the service's network namespace, for all users */
	struct run_accept_queue accept_queue;
	struct run_listener *listeners; /* only if there are several */
	size_t listener_count;
	struct run_process *processes;
	size_t process_count;
	struct run_upstream *upstreams;
	size_t upstream_count;
	struct run_call *called; /* on other hosts; lib/join/pair.c makes upstreams of them */
	size_t called_count;
	/* Calls of these processes, with --calls. */
	struct run_timed_call *timed_calls;
	size_t timed_call_count;
	struct run_number calls_lost; /* connections to other places without room */
	/* Connections that were open when the period began. */
	struct run_number older_connections;
	char *calls; /* destinations that are not observed; NULL: none, or not looked for */
	struct run_samples *samples;	  /* NULL: none taken */
	struct run_samples *call_samples; /* of calls of these processes; NULL: none taken */
	struct run_series *series;	  /* series.h; NULL: none kept */
	/* In no document: the newest sample of each octave of residence, for exemplars of metrics. */
	struct run_newest newest[RUN_NEWEST];
};

/*
 * Return whether most messages to the service got no answer before the next one, as those to a server of logs. Whether
 * a client that has sent another one waits for its answer is not known then.
 */
static inline bool run_is_told(const struct run_service *service)
{
	return service->losses[RUN_LOSS_ONEWAY] > service->exchanges;
}

struct run_program {
	char name[32];
	struct run_number runs;	   /* only with BPF run statistics on */
	struct run_number run_ns;  /* likewise; sum of all runs */
	uint64_t recursion_misses; /* events that this program missed */
};

/* The cost of observing, and losses as a whole. */
struct run_cost {
	uint64_t cpu_ns;	 /* the observer's CPU time in the period, system calls included */
	uint64_t resident_bytes; /* the observer's peak resident set */
	uint64_t map_bytes;	 /* of the observer's BPF maps */
	struct run_number sharing_cpus; /* how many share a copy of the services' counts */
	struct run_program *programs;
	size_t program_count;
	struct run_machine machine;
};

/*
 * The parts of a joined exchange, or their sums, in ns:
 *
 *     round_trip = network + the stages of the residence + transmit_queue − overhang
 *
 * to the nanosecond. An unknown stage (transmit_queue if not followed) is included in network. ack
 * is no part of the sum.
 */
struct run_parts {
	uint64_t wait_ns; /* under a rate: due → handed to the kernel */
	uint64_t round_trip_ns;
	uint64_t network_ns;
	/* How long before the end of the server's write the client had the whole response. */
	uint64_t overhang_ns;
	struct run_number stages[STAGE_COUNT];
	/* service, divided: all are known or none */
	struct run_number running_ns;
	struct run_number runnable_ns;
	struct run_number blocked_ns;
};

/* The joined exchanges above a percentile of all the driver's measurements. */
struct run_tail {
	uint32_t per_mille; /* 990: p99 */
	uint64_t above_ns;  /* of response time or round trip, as in intervals */
	uint64_t count;
	struct run_parts sum;
};

/* The joined exchanges of a step of a scenario, or of a host's pod, container or else processes. */
struct run_joined_step {
	char *name;
	char *place; /* of a host: run_place_name(); NULL: neither pod nor container, or a step */
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
	char *reason;	    /* why exchanges could not be joined; NULL: all were */
	uint64_t threshold; /* the lower one of both sides; RUN_SAMPLE_ALL: all exchanges */
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
	uint64_t begin_ns; /* earliest start of a joined exchange, by the driver's clock */
	struct run_parts sum;
	struct histogram round_trip;
	struct histogram network;
	struct run_stage stages[STAGE_COUNT];
	struct run_tail *tail; /* ascending percentiles */
	size_t tail_count;
	struct run_joined_step *steps; /* of a scenario: one per row of the driver */
	size_t step_count;
	/* Of several observers, pods or containers: one for each host and place with samples. */
	struct run_joined_step *hosts;
	size_t host_count;
	struct run_exchange *slowest; /* slowest first */
	size_t slowest_count;
};

struct run_finding; /* finding.h, also for struct run_look */
struct run_look;
struct run_sweep; /* sweep.h */

struct run {
	char *host;
	char *kernel;
	char *tool;	  /* "sojourn 0.1.0" */
	char *started_at; /* RFC 3339, UTC, start of the period */
	uint64_t duration_ns;
	char **command; /* NULL-terminated argv; may be NULL */
	struct run_service *services;
	size_t service_count;
	struct run_cost *cost;		/* NULL: no observer */
	uint64_t services_dropped;	/* services with traffic but without a slot */
	uint64_t connections_dropped;	/* of these: in no count */
	uint64_t listeners_idle;	/* now; they get a slot with their first connection */
	struct run_reclaimed reclaimed; /* services that are no longer in @services */
	struct run_namespaces namespaces;
	/* ports of services without a slot, for a finding; in no document */
	char dropped_ports[96];
	struct run_driver *driver;    /* NULL: no driver */
	struct run_joined *joined;    /* NULL: not both sides' samples; see join.h */
	struct run_sweep *sweep;      /* NULL: no sweep; otherwise there is no driver */
	struct run_finding *findings; /* worst first */
	size_t finding_count;
	char **not_seen;	       /* by the doctor; NULL: it did not look */
	struct run_finding *resources; /* everything that `sojourn doctor` looked at */
	size_t resource_count;
	struct run_look *looked_at; /* by the doctor; NULL: not known */
};

/* Make a run with host, kernel, tool and started_at from this machine; NULL without memory. */
struct run *run_new(const char *program, char **command);
void run_free(struct run *run);
DEFINE_CLEANUP(struct run *, run_free)
#define autorun CLEANUP(cleanup_run_free)

/*
 * Give @run, which has none, @count zeroed services at once. A service takes 252 KiB, nearly all of it for
 * histograms. Pages of these that nobody writes take no memory, and no time. 0 or -ENOMEM.
 */
int run_make_services(struct run *run, size_t count);

/* Return the host of @service; NULL: not known. */
const char *run_host_of(const struct run *run, const struct run_service *service);
/* Return whether both are on one host, and there in one pod or container, or in none. */
bool run_same_instance(const struct run_service *a, const struct run_service *b);

/* Return the upstream of @front that @row is of; NULL: it is not observed. */
const struct run_service *run_upstream_service(const struct run *run,
					       const struct run_service *front,
					       const struct run_upstream *row);
/*
 * Return how many calls got no answer, although the front's requests got one. After a timeout the wait for the call is
 * in the front's service, but in no exchange of the upstream. Requests that wait on both sides are in neither.
 */
uint64_t run_upstream_given_up(const struct run_service *front, const struct run_service *upstream);
/* Return the number of connections whose requests are no exchanges: what they call, or are called for, is not known. */
uint64_t run_hidden_connections(const struct run_service *service);

/* Return the port of a place, "10.0.0.1:80"; 0: it has none. */
uint16_t run_towards_port(const char *towards);
/* Return the calls of @service to this place; NULL: it has none. */
const struct run_timed_call *run_find_call(const struct run_service *service, const char *towards);

/* Return how many events the programs did not see, because they were running already. @cost may be NULL. */
uint64_t run_cost_misses(const struct run_cost *cost);
/* Return the process that is nearest to its limit of descriptors; NULL: none is known. */
const struct run_process *run_fullest(const struct run_service *service);

/* Make an empty list with threshold RUN_SAMPLE_ALL; NULL without memory. */
struct run_samples *run_samples_new(void);
void run_samples_free(struct run_samples *samples);
DEFINE_CLEANUP(struct run_samples *, run_samples_free)
#define autosamples CLEANUP(cleanup_run_samples_free)

/* Append one zeroed sample; NULL without memory. Pointers to other samples become invalid. */
struct run_sample *run_add_sample(struct run_samples *samples);
/* Make room for @capacity samples in all. -ENOMEM. */
int run_samples_reserve(struct run_samples *samples, size_t capacity);
/* Lower the threshold to @threshold if that is lower, and drop the samples above it. */
void run_samples_lower(struct run_samples *samples, uint64_t threshold);
/* Order by flow, then index, for qsort() and bsearch(). */
int run_sample_compare(const void *a, const void *b);

/*
 * Subtract @earlier, an earlier reading of the same observation, from @run: counts, sums and
 * histograms. Gauges (depth, TIME_WAIT, fds), the high-water mark and findings stay; samples also
 * in @earlier are removed. Services are matched by (netns, protocol, port); new ones stay whole.
 */
void run_subtract(struct run *run, const struct run *earlier);
/*
 * Remove services without counts from @run, a reading to be subtracted from a later one. The
 * difference stays the same.
 */
void run_drop_idle(struct run *run);

/*
 * Add @other to @run, as if one document had both. A driver's and an observer's part become one
 * document with the observer's host, kernel, started_at and duration_ns. Counts and histograms of
 * several drivers or observers add; their period is the union. @other is used up and freed by the
 * caller. -EINVAL with the member that cannot be merged in @ret_error, or -ENOMEM; @run is then
 * invalid too.
 */
int run_merge(struct run *run, struct run *other, char **ret_error);
/*
 * Check that documents of a driver and an observer can be of the same requests. -EINVAL, as above,
 * if their times do not overlap. Clocks may differ by a minute.
 */
int run_check_times(const struct run *run, const struct run *other, char **ret_error);

void run_routes_clear(struct run_routes *routes);
void run_joined_free(struct run_joined *joined);
DEFINE_CLEANUP(struct run_joined *, run_joined_free)

/* Add another exchange's parts to @sum; a stage is known if it is known in any. */
void run_parts_add(struct run_parts *sum, const struct run_parts *parts);

/* Return the user's wait: under a rate from when the request was due. */
static inline uint64_t run_parts_total(const struct run_parts *parts)
{
	return parts->wait_ns + parts->round_trip_ns;
}

/* Free the rows and empty the list. */
void run_row_list_clear(struct run_row_list *rows);
/* Return the responses within the measured phase, from which rates are computed. */
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

uint64_t run_row_errors(const struct run_row *row);

uint64_t run_driver_errors(const struct run_driver *driver);

/* Return the response time under a rate, otherwise the round trip, as in the intervals. */
const struct histogram *run_driver_latency(const struct run_driver *driver);

/* More intervals are joined in pairs. */
#define RUN_INTERVALS_MAX 600U

/*
 * Return Pearson's correlation of rate and time over the full intervals: near 1 or -1 if the rate
 * always rose or fell. Not known below three intervals, or with a constant rate.
 */
struct run_ratio run_drift(const struct run_driver *driver);

/* Convert document times between RFC 3339 and ns since 1970. -EINVAL; NULL without memory. */
int run_parse_time(const char *text, uint64_t *ret_wall_ns);
char *run_format_time(uint64_t wall_ns);

/*
 * Return the document's JSON text, ending in a newline, freed by the caller; NULL without memory.
 */
char *run_to_json(const struct run *run);

/*
 * Print the same text to @file, and flush it. After -ENOMEM or a write's -errno, a part of it may be
 * there.
 */
int run_print_json(const struct run *run, FILE *file);

/* The same text in parts, between which the caller may do other things. Set the first two members, zero the rest. */
struct run_printing {
	const struct run *run; /* which must not change meanwhile */
	FILE *file;
	size_t member;	/* the next one of the document */
	size_t element; /* the next one of that member's list */
	bool begun;
};

/*
 * Print the next part: it ends after @most elements of the document's lists, such as services, or with
 * the document. Return 1 if there is more, or the result of run_print_json().
 */
int run_print_part(struct run_printing *printing, size_t most);

/* Return the JSON Schema (draft 2020-12) of run documents, also freed by the caller. */
char *run_schema_to_json(void);

/*
 * Parse a document. -EINVAL if it is not one of RUN_SCHEMA, with the wrong line or member and what
 * is allowed in @ret_error.
 */
int run_from_json(const char *text, size_t length, struct run **ret_run, char **ret_error);

/* Read or write a file likewise; "-" is standard input or output. Writing replaces atomically. */
int run_read(const char *path, struct run **ret_run, char **ret_error);
int run_write(const struct run *run, const char *path);

/* Read any text, up to one byte more than a document's maximum. */
int run_read_text(const char *path, char **ret_text, size_t *ret_length);
/* Write any text likewise. */
int run_write_text(const char *text, const char *path);
/* Write the content of the open file @fd likewise. */
int run_write_file(int fd, const char *path);
/* Check as far as possible that writing will work; @path stays as it is. 0 or -errno. */
int run_try_write(const char *path);

#endif
