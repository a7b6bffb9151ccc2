// SPDX-License-Identifier: MIT
/*
 * The table of routes and their answers. Knows the observation as a snapshot_source, and of
 * libmicrohttpd only names of statuses and headers; http.c has the connections.
 */
#include "routes.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

/* The highest age of findings that are sent again. */
#define JUDGED_NS (10 * NSEC_PER_SEC)

/* Time after which a phase ends unless it is renewed, by default. */
#define LEASE_S	    3600
#define LEASE_MAX_S 86400

#define HEALTH "/healthz"
#define LIVE   "/livez"

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

struct request {
	struct http_routes *routes;
	uint64_t phase;		   /* of routes with {id} */
	struct snapshot_past past; /* of the route of the past */
	const struct http_query *query;
};

void http_reply_error(struct http_reply *reply, unsigned int status, const char *error)
{
	reply->status = status;
	reply->type = JSON;
	reply->body = text_format("{\"error\": \"%s\"}\n", error);
}

/* The meaning of a source's errors to a client; any other is ours: 500. */
static void reply_errno(struct http_reply *reply, int r)
{
	switch (r) {
	case -ENOENT:
		http_reply_error(reply, MHD_HTTP_NOT_FOUND,
				 "no such phase is open: it has ended, or was not renewed in time");
		break;
	case -ENODATA:
		http_reply_error(reply, MHD_HTTP_NOT_FOUND, "no past is kept");
		break;
	case -ENOSPC:
	case -EDQUOT:
		http_reply_error(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
				 r == -ENOSPC
					 ? "too many phases are open"
					 : "the open phases take all the memory that phases may");
		reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
		snprintf(reply->value, sizeof(reply->value), "1");
		break;
	default:
		http_reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-r));
	}
}

/* Return the document, which the caller frees; NULL: no memory. */
static char *print_run(struct http_routes *routes, const struct run *run)
{
	char *text = NULL;
	size_t length;
	struct run_printing printing = {.run = run, .file = open_memstream(&text, &length)};
	int r;

	if (!printing.file)
		return NULL;
	do {
		r = run_print_part(&printing, 1);
		meanwhile_run(&routes->meanwhile);
	} while (r > 0);
	if (!fclose(printing.file) && !r)
		return text;
	free(text);
	return NULL;
}

static void reply_run(struct http_routes *routes, struct http_reply *reply, int r,
		      const struct run *run)
{
	if (r) {
		reply_errno(reply, r);
		return;
	}
	reply->status = MHD_HTTP_OK;
	reply->type = JSON;
	reply->body = print_run(routes, run);
}

static int read_total(struct http_routes *routes, struct http_making *making)
{
	return routes->source.total(routes->source.context, &making->run);
}

/* Add the calls to upstreams, with --calls. */
static int add_calls(struct http_routes *routes, struct http_making *making)
{
	return routes->source.calls ? routes->source.calls(routes->source.context, making->run) : 0;
}

static int read_services(struct http_routes *routes, struct http_making *making)
{
	int r = routes->source.brief(routes->source.context, &making->run);

	if (!r)
		r = add_calls(routes, making);
	if (!r)
		run_doubt(making->run);
	return r;
}

/* ---- the past ---- */

#define PAST_S	   600
#define PAST_MAX_S 86400

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	return !text || !units_parse_u64(text, min, max, ret_number);
}

static void parse_past(struct request *request, struct http_reply *reply)
{
	const struct http_query *query = request->query;
	uint64_t last = PAST_S, step = 1, port = 0;

	if (!parse_number(query->last, 1, PAST_MAX_S, &last)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "last: 1 to 86400 seconds");
	} else if (!parse_number(query->step, 1, PAST_MAX_S, &step)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "step: 1 to 86400 seconds");
	} else if (!parse_number(query->port, 1, UINT16_MAX, &port)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "port: 1 to 65535");
	} else {
		request->past = (struct snapshot_past){
			.last_s = (uint32_t)last, .step_s = (uint32_t)step, .port = (uint16_t)port};
	}
}

static int read_past(struct http_routes *routes, struct http_making *making)
{
	int r = routes->source.past(routes->source.context, &making->as.past, &making->run);

	if (!r)
		r = add_calls(routes, making);
	if (!r)
		run_doubt(making->run);
	return r;
}

/* ---- findings ---- */

static bool has(const struct run *run, const char *severity)
{
	for (size_t i = 0; i < run->finding_count; i++) {
		if (!strcmp(run->findings[i].severity, severity))
			return true;
	}
	return false;
}

static bool has_process(const struct run *run, uint32_t pid)
{
	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		for (size_t j = 0; j < service->process_count; j++)
			if (service->processes[j].pid == pid)
				return true;
	}
	return false;
}

static bool has_listener(const struct run *run, const struct run_finding *finding)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (finding->port == run->services[i].port &&
		    (!finding->netns || finding->netns == run->services[i].netns))
			return true;
	return false;
}

/*
 * Return whether the finding concerns an observed service: its queues and requests, or the limits
 * of one of its processes. Other findings' ports are destinations, and do not show which service
 * connects there.
 */
static bool is_of_service(const struct run *run, const struct run_finding *finding)
{
	static const char *const of_listeners[] = {"accept_queue", "syn_queue", "open_requests"};

	for (size_t i = 0; i < ARRAY_SIZE(of_listeners); i++)
		if (!strcmp(finding->resource, of_listeners[i]))
			return has_listener(run, finding);
	for (size_t i = 0; i < finding->owner_count; i++)
		if (has_process(run, finding->owners[i].pid))
			return true;
	return false;
}

static bool is_critical(const struct run *run)
{
	for (size_t i = 0; i < run->finding_count; i++)
		if (!strcmp(run->findings[i].severity, "critical") &&
		    is_of_service(run, &run->findings[i]))
			return true;
	return false;
}

/*
 * Keep the findings of @run, and whether they make its services unhealthy. Its services would take much memory.
 */
static int keep_findings(struct http_routes *routes, struct run *run)
{
	struct run *judged = run_new("sojourn", NULL);

	if (!judged)
		return -ENOMEM;
	judged->findings = TAKE_PTR(run->findings);
	judged->finding_count = run->finding_count;
	judged->not_seen = TAKE_PTR(run->not_seen);
	run->finding_count = 0;
	if (routes->judged)
		run_free(routes->judged);
	routes->judged = judged;
	return 0;
}

/*
 * Find resources that are running out, at most JUDGED_NS ago. While they are printed they stay as
 * they are. Return 0 or -errno.
 */
static int judge(struct http_routes *routes)
{
	const struct snapshot_source *source = &routes->source;
	autorun struct run *run = NULL;
	uint64_t now = clock_now_ns();
	int r;

	if (routes->judged &&
	    (now - routes->judged_ns < JUDGED_NS || routes->documents.making.judged))
		return 0;
	r = source->brief(source->context, &run);
	if (!r)
		r = source->judge(source->context, run);
	if (r)
		return r;
	routes->critical = is_critical(run);
	routes->judged_ns = now;
	return keep_findings(routes, run);
}

/*
 * A look takes as long as all documents' readings. Health checks that come often get the last one's result, and have the
 * next one made after them. Others wait for theirs. -EAGAIN: they must, and @now is false.
 */
static int judge_for_health(struct http_routes *routes, bool now)
{
	uint64_t age = clock_now_ns() - routes->judged_ns;

	if (!routes->judged || age >= 2 * JUDGED_NS)
		return now ? judge(routes) : -EAGAIN;
	routes->judge_due = age >= JUDGED_NS;
	return 0;
}

void http_routes_judge(struct http_routes *routes)
{
	routes->judge_due = false;
	(void)judge(routes);
}

/* Read the services, and lend them the findings until the document is made. */
static int read_findings(struct http_routes *routes, struct http_making *making)
{
	struct run *run = NULL;
	int r = judge(routes);

	if (!r)
		r = routes->source.brief(routes->source.context, &run);
	if (r)
		return r;
	run->findings = routes->judged->findings;
	run->finding_count = routes->judged->finding_count;
	run->not_seen = routes->judged->not_seen;
	making->judged = routes->judged;
	making->run = run;
	return 0;
}

static int read_judged(struct http_routes *routes, struct http_making *making)
{
	int r = read_findings(routes, making);

	if (!r)
		run_doubt(making->run);
	return r;
}

/*
 * Exhausted resources, or resources about to be, are not healthy; warnings and notices are.
 * Findings of the host that concern no observed service are only warnings here: any user can cause
 * some.
 */
static void get_health(const struct request *request, struct http_reply *reply)
{
	const struct run *run;
	const char *status;
	int r = judge_for_health(request->routes, request->query->now);
	bool critical = request->routes->critical;

	if (r == -EAGAIN) {
		reply->later = true;
		return;
	}
	if (r) {
		reply_errno(reply, r);
		return;
	}
	run = request->routes->judged;
	status = critical				       ? "critical"
		 : has(run, "critical") || has(run, "warning") ? "warning"
							       : "ok";
	reply->status = critical ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
	reply->type = JSON;
	reply->body = text_format("{\"status\": \"%s\", \"findings\": %zu, \"looked\": %s}\n",
				  status, run->finding_count, run->not_seen ? "true" : "false");
}

/* The thread that answers also observes. */
static void get_life(const struct request *request, struct http_reply *reply)
{
	(void)request;
	reply->status = MHD_HTTP_OK;
	reply->type = JSON;
	reply->body = strdup("{\"status\": \"ok\"}\n");
}

/* ---- metrics and the page ---- */

static int read_metrics_as(enum metrics_format format, struct http_routes *routes,
			   struct http_making *making)
{
	int r;

	if (!routes->metrics)
		routes->metrics = metrics_new(routes->buckets);
	if (!routes->metrics)
		return -ENOMEM;
	making->metrics.metrics = routes->metrics;
	making->metrics.format = format;
	making->type = metrics_types[format];
	r = read_findings(routes, making);
	return r ? r : add_calls(routes, making);
}

static int read_metrics(struct http_routes *routes, struct http_making *making)
{
	return read_metrics_as(METRICS_PROMETHEUS, routes, making);
}

static void get_page(struct http_reply *reply)
{
	size_t size;
	FILE *file = open_memstream(&reply->body, &size);

	reply->status = MHD_HTTP_OK;
	reply->type = HTML;
	if (!file)
		return;
	if (report_live_page(file, reply->nonce) | fclose(file)) {
		free(reply->body);
		reply->body = NULL;
	}
}

/* ---- phases ---- */

static void end_phase(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	autorun struct run *run = NULL;
	int r = source->phase_end(source->context, request->phase, &run);

	reply_run(request->routes, reply, r, run);
}

static void reply_phase(struct http_reply *reply, uint64_t id, uint32_t lease_s)
{
	reply->type = JSON;
	reply->body = text_format("{\"phase\": %ju, \"lease_s\": %u}\n", (uintmax_t)id, lease_s);
}

static void begin_phase(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	uint64_t lease_s = LEASE_S, id;
	int r;

	if (request->query->lease &&
	    units_parse_u64(request->query->lease, 1, LEASE_MAX_S, &lease_s)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "lease: 1 to 86400 seconds");
		return;
	}
	r = source->phase_begin(source->context, (uint32_t)lease_s, &id);
	if (r) {
		reply_errno(reply, r);
		return;
	}
	reply->status = MHD_HTTP_CREATED;
	reply->header = MHD_HTTP_HEADER_LOCATION;
	snprintf(reply->value, sizeof(reply->value), "/v1/phases/%ju", (uintmax_t)id);
	reply_phase(reply, id, (uint32_t)lease_s);
}

static void renew_phase(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	uint32_t lease_s;
	int r = source->phase_renew(source->context, request->phase, &lease_s);

	if (r) {
		reply_errno(reply, r);
		return;
	}
	reply->status = MHD_HTTP_OK;
	reply_phase(reply, request->phase, lease_s);
}

/* ---- documents that are shared ---- */

void http_reply_done(struct http_reply *reply)
{
	if (reply->document)
		http_document_release(reply->document);
	else
		free(reply->body);
	*reply = (struct http_reply){0};
}

static void lend(struct http_document *document, struct http_reply *reply)
{
	reply->status = MHD_HTTP_OK;
	reply->type = document->type;
	reply->body = document->body;
	reply->document = document;
}

/* The fifth of a processor is used up (documents.c), and there is no recent document to share. */
static void reply_busy(struct http_reply *reply)
{
	http_reply_error(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
			 "too many documents were requested in the last seconds");
	reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
	snprintf(reply->value, sizeof(reply->value), "1");
}

/* ---- clients ---- */

static void reply_clients_errno(struct http_reply *reply, int r)
{
	if (r == -ESRCH)
		http_reply_error(reply, MHD_HTTP_NOT_FOUND, "no TCP service has this port");
	else if (r == -ENODATA)
		http_reply_error(reply, MHD_HTTP_NOT_FOUND,
				 "not known: the service is in another network namespace");
	else if (r)
		reply_errno(reply, r);
}

/* This walks over every connection of the host, of which there may be many. */
static void get_clients(const struct request *request, struct http_reply *reply)
{
	uint64_t begin_ns = clock_thread_cpu_ns(), port = 0;

	if (!request->query->port || !parse_number(request->query->port, 1, UINT16_MAX, &port)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "port: 1 to 65535");
	} else if (!http_documents_have_credit(&request->routes->documents)) {
		reply_busy(reply);
	} else {
		reply->status = MHD_HTTP_OK;
		reply->type = JSON;
		reply_clients_errno(reply, http_clients(&request->routes->source, (uint16_t)port,
							&reply->body));
		http_documents_charge(&request->routes->documents,
				      clock_thread_cpu_ns() - begin_ns);
	}
}

/* ---- routes ---- */

static void get_routes(const struct request *request, struct http_reply *reply);

struct route {
	const char *method;
	const char *path; /* {id}: one segment, a phase's number */
	/* Make the answer; NULL: it is a document that many may share, which @read begins. */
	void (*handle)(const struct request *request, struct http_reply *reply);
	const char *help;
	int (*read)(struct http_routes *routes, struct http_making *making);
	/* NULL: it takes no arguments. With arguments there are many documents: beyond their share of time they are refused. */
	void (*parse)(struct request *request, struct http_reply *reply);
	unsigned int takes; /* enum http_argument, as bits */
};

/* clang-format off */
static const struct route table[] = {
	{"GET",  "/",                    get_routes,  "this list; for browsers a page", NULL, NULL, HTTP_ANY},
	{"GET",  HEALTH,                 get_health,  "503 if something on this host is exhausted", NULL, NULL, HTTP_ANY},
	{"GET",  LIVE,                   get_life,    "200 as long as the observer answers; needs no token", NULL, NULL, HTTP_ANY},
	{"GET",  "/metrics",             NULL,        "for Prometheus, or OpenMetrics if asked for", read_metrics, NULL, HTTP_ANY},
	{"GET",  "/v1/run",              NULL,        "run document since the observation began", read_total, NULL, 0},
	{"GET",  "/v1/services",         NULL,        "the same without single exchanges", read_services, NULL, 0},
	{"GET",  "/v1/past",             NULL,        "the same with each service's last minutes; ?last=SECONDS&step=SECONDS&port=PORT", read_past, parse_past, HTTP_LAST | HTTP_STEP | HTTP_PORT},
	{"GET",  "/v1/clients",          get_clients, "who is connected to a service now; ?port=PORT", NULL, NULL, HTTP_PORT},
	{"GET",  "/v1/findings",         NULL,        "the same with what is running out now", read_judged, NULL, 0},
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase; ?lease=SECONDS, else an hour", NULL, NULL, HTTP_LEASE},
	{"POST", "/v1/phases/{id}/renew", renew_phase, "renew its lease; otherwise it ends with that", NULL, NULL, 0},
	{"POST", "/v1/phases/{id}/end",  end_phase,   "end it; run document of the phase", NULL, NULL, 0},
};
/* clang-format on */

/* The metrics in the other format are the document after the table's. */
#define OPENMETRICS (ARRAY_SIZE(table) + 1)
_Static_assert(OPENMETRICS <= HTTP_DOCUMENTS, "a document for each row, and one more");

static void get_routes(const struct request *request, struct http_reply *reply)
{
	size_t size;
	FILE *file;

	if (request->query->accept && strstr(request->query->accept, "text/html")) {
		get_page(reply);
		return;
	}
	file = open_memstream(&reply->body, &size);
	reply->status = MHD_HTTP_OK;
	reply->type = TEXT;
	if (!file)
		return;
	fputs("sojourn " SOJOURN_VERSION "\n\n", file);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		fprintf(file, "%-4s  %-22s  %s\n", table[i].method, table[i].path, table[i].help);
	fputs("\nHEAD is answered as GET. POST wants the observer's token, unless it was started "
	      "with\n"
	      "--open.\n",
	      file);
	if (fclose(file)) {
		free(reply->body);
		reply->body = NULL;
	}
}

enum http_probe http_routes_probe(const char *path)
{
	return !strcmp(path, HEALTH) ? HTTP_PROBE_HEALTH
	       : !strcmp(path, LIVE) ? HTTP_PROBE_LIVE
				     : HTTP_PROBE_NONE;
}

/* @ret_id: where {id} begins in @path; NULL if the route has none. */
static bool match_path(const struct route *route, const char *path, const char **ret_id)
{
	const char *hole = strstr(route->path, "{id}");
	size_t prefix, length;

	*ret_id = NULL;
	if (!hole)
		return !strcmp(route->path, path);
	prefix = (size_t)(hole - route->path);
	if (strncmp(route->path, path, prefix))
		return false;
	*ret_id = path + prefix;
	length = strcspn(*ret_id, "/");
	return length && !strcmp(*ret_id + length, hole + strlen("{id}"));
}

static int parse_phase(const char *id, uint64_t *ret_phase)
{
	size_t length = strcspn(id, "/");
	char text[32];

	if (length >= sizeof(text))
		return -EINVAL;
	memcpy(text, id, length);
	text[length] = '\0';
	return units_parse_u64(text, 0, UINT64_MAX, ret_phase);
}

static size_t number_of(const struct route *route, const struct request *request)
{
	if (route->read == read_metrics &&
	    metrics_choose(request->query->accept) == METRICS_OPENMETRICS)
		return OPENMETRICS;
	return (size_t)(route - table) + 1;
}

/* Clients are those of a service that is read first. Phases begin and end with readings. */
static bool takes_readings(const struct route *route)
{
	return route->handle == get_clients || !strcmp(route->method, "POST");
}

static void handle(const struct route *route, struct request *request, struct http_reply *reply)
{
	struct http_documents *documents = &request->routes->documents;
	struct http_wanted wanted = {.number = number_of(route, request)};
	struct http_document *shared;

	if (!route->read) {
		reply->later = !request->query->now && takes_readings(route);
		if (!reply->later)
			route->handle(request, reply);
		return;
	}
	if (route->parse)
		route->parse(request, reply);
	if (reply->status)
		return;
	wanted.past = request->past;
	shared = http_documents_share(documents, &wanted);
	if (shared)
		lend(shared, reply);
	else if (route->parse && !http_documents_have_credit(documents))
		reply_busy(reply);
	else
		reply->awaited = wanted;
}

int http_routes_begin(struct http_routes *routes, const struct http_wanted *awaited)
{
	uint64_t begin_ns = clock_thread_cpu_ns();
	struct http_making making = {.as = *awaited, .type = JSON};
	int r = awaited->number == OPENMETRICS
			? read_metrics_as(METRICS_OPENMETRICS, routes, &making)
			: table[awaited->number - 1].read(routes, &making);

	making.cost_ns = clock_thread_cpu_ns() - begin_ns;
	return r ? r : http_documents_begin(&routes->documents, &making);
}

void http_routes_made(struct http_routes *routes, const struct http_wanted *awaited, int r,
		      struct http_reply *reply)
{
	struct http_document *document =
		r ? NULL : http_documents_lend(&routes->documents, awaited);

	if (r)
		reply_errno(reply, r);
	else if (document)
		lend(document, reply);
	else
		reply->awaited = *awaited;
}

/* Return whether the request has an argument that its route does not take. */
static bool refuse_arguments(const struct route *route, const struct request *request,
			     struct http_reply *reply)
{
	const char *name, *wrong = http_query_refusal(request->query, route->takes, &name);
	char error[128];

	if (!wrong)
		return false;
	snprintf(error, sizeof(error), "%s %s", name, wrong);
	http_reply_error(reply, MHD_HTTP_BAD_REQUEST, error);
	return true;
}

void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const struct http_query *query, struct http_reply *reply)
{
	struct request request = {.routes = routes, .query = query};
	const char *allowed = NULL, *id;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!match_path(&table[i], path, &id))
			continue;
		allowed = table[i].method;
		/* HEAD is answered as GET; libmicrohttpd leaves the body out. */
		if (strcmp(allowed, method) && (strcmp(allowed, "GET") || strcmp(method, "HEAD")))
			continue;
		if (id && parse_phase(id, &request.phase))
			http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "the phase is not a number");
		else if (!refuse_arguments(&table[i], &request, reply))
			handle(&table[i], &request, reply);
		return;
	}
	if (!allowed) {
		http_reply_error(reply, MHD_HTTP_NOT_FOUND, "no such route; GET / lists them");
		return;
	}
	http_reply_error(reply, MHD_HTTP_METHOD_NOT_ALLOWED, "the route has another method");
	reply->header = MHD_HTTP_HEADER_ALLOW;
	snprintf(reply->value, sizeof(reply->value), "%s",
		 !strcmp(allowed, "GET") ? "GET, HEAD" : allowed);
}

/* A document in the making refers to the rest. */
void http_routes_done(struct http_routes *routes)
{
	http_documents_done(&routes->documents);
	if (routes->metrics)
		metrics_free(routes->metrics);
	if (routes->judged)
		run_free(routes->judged);
}
