/* SPDX-License-Identifier: MIT */
/* The parts of a text report, a function each, which text.c puts in order. */
#ifndef LIB_REPORT_PARTS_H
#define LIB_REPORT_PARTS_H

#include "print.h"
#include "sojourn/sweep.h"

/* tree.c: how the driver's round trip divides at @service; both have requests. */
void report_tree(const struct page *page, const struct run *run, const struct run_service *service);

/* service.c: "tcp 127.0.0.1:8080 · nginx 812", and @remark unless NULL. */
void report_identity(const struct page *page, const struct run_service *service,
		     const char *remark);
/* Return the time from first to last request, or else, also for few, the whole period; 0: neither is known. */
uint64_t report_span(const struct run *run, const struct run_service *service);
/* Return the name shared by all processes of @service, like "nginx", or "the server". */
void report_server_name(const struct run_service *service, char ret_name[static SHORT_TEXT]);
uint64_t report_not_timed(const struct run_service *service);
/* Throughput, open requests, TIME_WAIT, descriptors, accept queue, losses. */
void report_state(const struct page *page, const struct run *run,
		  const struct run_service *service);
/* The host's source ports: a line per destination, once for all services. */
void report_host_ports(const struct page *page, const struct run *run);
/* Each stage with its percentiles. */
void report_stages(const struct page *page, const struct run_service *service);
/* Return why @stage, which is @which, has no figures, e.g. no samples; NULL: it has. */
const char *report_missing(const struct run_stage *stage, enum stage which);
/* Return whether the service has the stage: datagrams have only two. */
bool report_has_stage(const struct run_service *service, enum stage which);
/* Return whether a stage is missing only because it was not requested: these share a line. */
bool report_is_unasked(const struct run_stage *stage);
/* Times outside of a round trip: connections waiting for accept(), responses waiting for ack. */
void report_beside(const struct page *page, const struct run_service *service);
/* Connections, bytes, and what was not seen. */
void report_details(const struct page *page, const struct run *run,
		    const struct run_service *service);

/* http.c: connections of HTTP/1 with pipelined requests, if there are any. */
void report_pipelines(const struct page *page, const struct run_service *service);
/* http.c: HTTP/2 streams, if they are exchanges. */
void report_http2(const struct page *page, const struct run_service *service);
/* http.c: responses by status. */
void report_http_statuses(const struct page *page, const struct run_responses *responses);
void report_grpc_statuses(const struct page *page, const struct run_grpc *grpc);
void report_grpc_calls(const struct page *page, const struct run_grpc *grpc);
void report_grpc_unsure(const struct page *page, const struct run_http2 *http2);
void report_pushes(const struct page *page, const struct run_service *service);
/* Write failed responses and pushes in a few words, " \u00b7 4xx 3 (1.2 %) \u00b7 messages in 5, out 7", or nothing. */
#define REPORT_OUTCOME 256
void report_outcome(const struct run_service *service, char ret_text[static REPORT_OUTCOME]);
/* The same as a line. */
void report_outcome_line(const struct page *page, const struct run_service *service);
/* Return the number of messages and events, which are no exchanges. */
uint64_t report_pushed(const struct run_service *service);

/* many.c: "tcp 127.0.0.1:8080 nginx", or with its pod or container in place of the process. */
#define REPORT_NAME 448
const char *report_name(const struct run_service *service, char buffer[static REPORT_NAME]);
/*
 * Print at most @most services in a row each. Sort @services: those that may hang first, then those whose
 * requests took the most time in all.
 */
void report_many(const struct page *page, const struct run *run,
		 const struct run_service **services, size_t count, size_t most);

/* caveats.c: all caveats as rows, or in one line unless verbose. */
void report_caveats(const struct page *page, const struct run_service *service);

/* notes.c: a sentence on requests missing in percentiles. */
struct report_note {
	char text[256];
};

#define REPORT_NOTES 5U
/* Return the number of notes, with those on interrupted runs and lost members. */
size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES]);
/*
 * Return how many requests at @service were never answered, and how long they had waited at least. False:
 * too few to move a shown percentile.
 */
bool report_service_note(const struct run_service *service, struct report_note *ret_note);
void report_print_service_note(const struct page *page, const struct run_service *service);
void report_print_notes(const struct page *page, const struct run_driver *driver);

/* routes.c: a row for each route, the one with most of the time first; rates over @span_ns, 0: none. */
void report_routes(const struct page *page, const struct run_service *service, uint64_t span_ns);

/* proposed.c: proposed routes, and the share of each. */
void report_proposed(const struct page *page, const struct run_service *service);

/* listeners.c: a line for each of several listeners, the fullest first. */
void report_listeners(const struct page *page, const struct run_service *service);

/* upstreams.c: what the service waits for, of services that are observed, too. */
#define REPORT_UPSTREAMS 8U

struct report_upstream {
	const struct run_upstream *row;
	const struct run_service *service;
	char name[SHORT_TEXT];
	char on[72];	/* " on web-2"; "": on the front's host */
	double calls;	/* per request of the front */
	double call_ns; /* the mean of a call, until its response begins */
	double wait_ns; /* per request of the front */
	double between_ns; /* of the front's time, per request: the network between both; negative: not known */
	double share;	   /* of the front's service; above 1 if calls overlap */
	bool at_most;	   /* the calls may overlap: the share is at most this */
	char unknown[128]; /* why the share is not known; "": it is */
};

/* Find the upstream that took at least half of the service, or one that may have: its share is not known. */
bool report_main_upstream(const struct run *run, const struct run_service *front,
			  struct report_upstream *ret_upstream);
/* Write a sentence on all upstreams. False: there is none. */
bool report_upstreams_text(const struct run *run, const struct run_service *front, size_t size,
			   char *ret_text);

/* calls.c: a row for each place that the service's processes call, with --calls. */
void report_calls(const struct page *page, const struct run_service *service);
/*
 * Return the mean wait for an answer of @upstream, as its front has timed it. Negative: it has not, or its calls are not
 * the exchanges of @upstream.
 */
double report_call_wait(const struct run_service *front, const struct run_service *upstream);
/* Return the place that the service waited for in at least half of its time, and the share; NULL: there is none. */
const struct run_timed_call *report_main_call(const struct run_service *service, double *ret_share);
/* Return the only place that the service calls, if it waited there in less than half of its time; NULL: not known. */
const struct run_timed_call *report_sole_call(const struct run_service *service, double *ret_share);
/* Return "at least ", if the true share may be greater, or "". */
const char *report_least_share(const struct run_service *service,
			       const struct run_timed_call *call);

/* hints.c: a line for each hint on @service. */
void report_print_hints(const struct page *page, const struct run *run,
			const struct run_service *service);

/* driven.c: return the port of the driver's URL, or its scheme's; 0: not known. */
uint16_t report_target_port(const struct run_driver *driver);
/*
 * driven.c: return whether no service saw all requests: several targets, or one port on several
 * hosts.
 */
bool report_is_split(const struct run *run);

/* A self-contained sentence. */
struct report_verdict {
	char text[768];
	/* The part with most of the mean time at a service, and its share; NULL: not known. */
	const char *part;
	char upstream[SHORT_TEXT + 96]; /* that takes most of this part; "": none */
	double percent;
	double total_ns;
};

/*
 * verdict.c: where most time of the driver's requests at @service went, or why that is not known;
 * @service is NULL if not known. False: nothing to say.
 */
bool report_verdict(const struct run *run, const struct run_service *service,
		    struct report_verdict *ret_verdict);
/* findings.c: that @service answered nothing at the end, although requests waited; false: it did. */
bool report_hangs(const struct run *run, const struct run_service *service,
		  struct report_verdict *ret_verdict);
/*
 * hosts.c: which host of several, or pod or container, is the slow one, or why that is not known. False: their
 * services cannot be compared, or one saw all requests of the driver.
 */
bool report_hosts_verdict(const struct run *run, struct report_verdict *ret_verdict);
/* hosts.c: a row for each of these, at most @most, and their total. */
void report_hosts(const struct page *page, const struct run *run, size_t most);

struct report_ports {
	uint16_t list[RUN_ROWS_MAX];
	size_t count;
};

/* compared.c: the services in these rows; no ports if there are no such rows. */
struct report_compared {
	struct report_ports ports;
	bool joined; /* only those of which exchanges were joined */
	bool of_workload;
	char workload[RUN_PLACE_NAME]; /* run_place_workload(), then of all */
};

/* Of a document without a driver: those in several places that have most exchanges. */
struct report_compared report_common_services(const struct run *run);
/* Those that the driver's requests went to. */
struct report_compared report_target_services(const struct run *run);
/* driven.c: one of both, or none if one service saw all of the driver's requests. */
struct report_compared report_compared(const struct run *run);
bool report_is_compared(const struct report_compared *compared, const struct run *run,
			const struct run_service *service);
/* Return the joined exchanges of the service's host, pod or container; NULL: none. */
const struct run_joined_step *report_joined_of(const struct run *run,
					       const struct run_service *service);
/* Return whether the driver's requests went to several hosts, pods or containers. */
bool report_is_spread(const struct run *run);
/* The ports that the driver was sent to. */
struct report_ports report_target_ports(const struct run_driver *driver);
bool report_has_port(const struct report_ports *ports, uint16_t port);
/* The verdict on all requests observed at @service; false: nothing to say. */
bool report_service_verdict(const struct run *run, const struct run_service *service,
			    struct report_verdict *ret_verdict);
void report_print_verdict(const struct page *page, const struct report_verdict *verdict);

/* failures.c: return whether most requests failed or were redirected: no time matters then. */
bool report_headline(const struct run_driver *driver, struct report_verdict *ret_verdict);
/* Print the sentences on failures and redirects, failed assertions, and each kind of failure. */
void report_failures(const struct page *page, const struct run_driver *driver, char *const *broken);

/* distribution.c: return whether @h has enough different values for a picture. */
#define REPORT_DISTRIBUTION_ROWS 8U
bool report_has_distribution(const struct histogram *h);
/* Draw it in at most @rows, 2 to REPORT_DISTRIBUTION_ROWS. */
void report_distribution(const struct page *page, const struct histogram *h, unsigned int rows);

/* ascii.c: replace each non-ASCII character by one ASCII character. */
void report_to_ascii(char *text);
bool report_locale_is_ascii(void);

/* driver.c: "GET http://… · 64 connections …". */
void report_target(const struct page *page, const struct run *run);
/* The very first line, if the driver limited the result. */
void report_limited(const struct page *page, const struct run_driver *driver);
/* Under a rate: latency from the intended start, printed before the round trip. */
void report_response_time(const struct page *page, const struct run_driver *driver);
/* The round trip's first line, with the rate: the tree's root, if there is one. */
void report_round_trip(const struct page *page, const struct run_driver *driver);
/* Further percentiles, connect, status, CPU. */
void report_driver(const struct page *page, const struct run *run);
/* One line in place of report_driver(): percentiles that the first line lacks. */
void report_beyond(const struct page *page, const struct run_driver *driver);
/* How far apart the members of a fleet began, at most, and how well their clocks were compared. */
struct report_spread {
	size_t members;
	uint64_t skew_ns, doubt_ns;
};

void report_spread_add(struct report_spread *spread, const struct run_fleet_member *members,
		       size_t count);
/* "3 members", "began within 90 us", "clocks compared to within 40 us". */
void report_spread_items(struct items *items, const struct report_spread *spread);

/* The rows that belong to the result: steps, targets, statuses, datagrams, drivers, fleet. */
void report_driver_rows(const struct page *page, const struct run *run);

/*
 * joined.c: part @i of joined exchanges, or of sums of some, for all forms of the report. A name
 * that starts with blanks divides the part above. False: not in this run.
 */
struct report_part {
	char name[SHORT_TEXT];
	uint64_t sum_ns;
	double share; /* of the user's wait, percent */
};

#define REPORT_PARTS 11U
bool report_part(const struct run_joined *joined, const struct run_parts *sums, size_t i,
		 struct report_part *ret_part);
/*
 * joined.c: write "service 91 %, socket queue 8 %": parts of at least 0.5 % of @sums, the largest
 * first, as many as fit @columns and @size bytes.
 */
void report_shares(const struct run_joined *joined, const struct run_parts *sums,
		   unsigned int columns, size_t size, char *ret_text);
/* joined.c: "p99", "p99.9". */
const char *report_percentile_name(uint32_t per_mille, char buffer[static SHORT_TEXT]);
/* joined.c: which parts dominate the slow requests, and the slowest; nothing without samples. */
void report_joined(const struct page *page, const struct run *run);

/* sweep.c: the very first line, if the driver limited a step: the plateau may be its own. */
void report_sweep_limited(const struct page *page, const struct run *run);
/* sweep.c: the conclusion and a table of the steps; nothing without a sweep. */
void report_sweep(const struct page *page, const struct run *run);
/* findings.c: resources running out on the observer's host, if it looked. */
void report_findings(const struct page *page, const struct run *run);
/* The resources that the doctor could not see, and why. */
void report_not_seen(const struct page *page, const struct run *run);

/* cost.c: the cost of observing, and overall losses. */
void report_cost(const struct page *page, const struct run *run);
/* Services without a slot, and those that lost theirs to others. */
void report_slots(const struct page *page, const struct run *run);

#endif
