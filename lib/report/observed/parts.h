/* SPDX-License-Identifier: MIT */
/* The parts of a text report that say what was observed, a function each. */
#ifndef LIB_REPORT_OBSERVED_PARTS_H
#define LIB_REPORT_OBSERVED_PARTS_H

#include "report/page/print.h"
#include "sojourn/run.h"

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

/* caveats.c: all caveats as rows, or in one line unless verbose. */
void report_caveats(const struct page *page, const struct run_service *service);

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

/* cost.c: the cost of observing, and overall losses. */
void report_cost(const struct page *page, const struct run *run);
/* Services without a slot, and those that lost theirs to others. */
void report_slots(const struct page *page, const struct run *run);

#endif
