/* SPDX-License-Identifier: MIT */
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
#include <time.h>

#include "clients.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/units.h"

/* The highest age of findings that are sent again. */
#define JUDGED_NS (10 * NSEC_PER_SEC)

/* Time after which a phase ends unless it is renewed, by default. */
#define LEASE_S	    3600
#define LEASE_MAX_S 86400

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

/*
 * Making documents takes at most this part of a processor, with some credit after quiet times.
 * Beyond it, and if a document is dear, readers get the latest one if it is not too old.
 */
#define CREDIT_PART   5
#define CREDIT_MAX_NS ((int64_t)NSEC_PER_SEC)
#define SHARED_NS     NSEC_PER_SEC
#define DEAR_NS	      (100 * NSEC_PER_MSEC)

struct request {
	struct http_routes *routes;
	uint64_t phase; /* of routes with {id} */
	const struct http_query *query;
};

void http_reply_error(struct http_reply *reply, unsigned int status, const char *error)
{
	reply->status = status;
	reply->type = JSON;
	if (asprintf(&reply->body, "{\"error\": \"%s\"}\n", error) < 0)
		reply->body = NULL;
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

static void reply_run(struct http_reply *reply, int r, const struct run *run)
{
	if (r) {
		reply_errno(reply, r);
		return;
	}
	reply->status = MHD_HTTP_OK;
	reply->type = JSON;
	reply->body = run_to_json(run);
}

static void get_run(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	autorun struct run *run = NULL;
	int r = source->total(source->context, &run);

	reply_run(reply, r, run);
}

static void get_services(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	autorun struct run *run = NULL;
	int r = source->brief(source->context, &run);

	if (!r)
		run_doubt(run);
	reply_run(reply, r, run);
}

/* ---- the past ---- */

#define PAST_S	   600
#define PAST_MAX_S 86400

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret_number)
{
	return !text || !units_parse_u64(text, min, max, ret_number);
}

static void get_past(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	const struct http_query *query = request->query;
	uint64_t last = PAST_S, step = 1, port = 0;
	autorun struct run *run = NULL;
	int r;

	if (!parse_number(query->last, 1, PAST_MAX_S, &last)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "last: 1 to 86400 seconds");
	} else if (!parse_number(query->step, 1, PAST_MAX_S, &step)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "step: 1 to 86400 seconds");
	} else if (!parse_number(query->port, 1, UINT16_MAX, &port)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "port: 1 to 65535");
	} else {
		r = source->past(source->context,
				 &(struct snapshot_past){.last_s = (uint32_t)last,
							 .step_s = (uint32_t)step,
							 .port = (uint16_t)port},
				 &run);
		if (!r)
			run_doubt(run);
		reply_run(reply, r, run);
	}
}

/* ---- findings ---- */

/* Find resources that are running out, at most JUDGED_NS ago. Return 0 or -errno. */
static int judge(struct http_routes *routes, const struct run **ret_run)
{
	const struct snapshot_source *source = &routes->source;
	autorun struct run *run = NULL;
	uint64_t now = clock_now_ns();
	int r;

	*ret_run = routes->judged;
	if (routes->judged && now - routes->judged_ns < JUDGED_NS)
		return 0;
	r = source->brief(source->context, &run);
	if (!r)
		r = source->judge(source->context, run);
	if (r)
		return r;
	run_doubt(run);
	if (routes->judged)
		run_free(routes->judged);
	routes->judged_ns = now;
	*ret_run = routes->judged = TAKE_PTR(run);
	return 0;
}

static void get_findings(const struct request *request, struct http_reply *reply)
{
	const struct run *run;
	int r = judge(request->routes, &run);

	reply_run(reply, r, run);
}

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
 * Exhausted resources, or resources about to be, are not healthy; warnings and notices are.
 * Findings of the host that concern no observed service are only warnings here: any user can cause
 * some.
 */
static void get_health(const struct request *request, struct http_reply *reply)
{
	const struct run *run;
	const char *status;
	bool critical;
	int r = judge(request->routes, &run);

	if (r) {
		reply_errno(reply, r);
		return;
	}
	critical = is_critical(run);
	status = critical				       ? "critical"
		 : has(run, "critical") || has(run, "warning") ? "warning"
							       : "ok";
	reply->status = critical ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
	reply->type = JSON;
	if (asprintf(&reply->body, "{\"status\": \"%s\", \"findings\": %zu, \"looked\": %s}\n",
		     status, run->finding_count, run->not_seen ? "true" : "false") < 0)
		reply->body = NULL;
}

/* ---- metrics and the page ---- */

static void get_metrics(const struct request *request, struct http_reply *reply)
{
	enum metrics_format format = metrics_choose(request->query->accept);
	struct http_routes *routes = request->routes;
	const struct run *judged = NULL;
	autorun struct run *run = NULL;
	int r = judge(routes, &judged);

	if (!r)
		r = routes->source.brief(routes->source.context, &run);
	if (!r && !routes->metrics)
		routes->metrics = metrics_new(routes->buckets);
	if (r || !routes->metrics) {
		reply_errno(reply, r ? r : -ENOMEM);
		return;
	}
	/* Lent, and taken back below. */
	run->findings = judged->findings;
	run->finding_count = judged->finding_count;
	run->not_seen = judged->not_seen;
	reply->status = MHD_HTTP_OK;
	reply->type = metrics_types[format];
	reply->body = metrics_text(routes->metrics, run, format);
	run->findings = NULL;
	run->finding_count = 0;
	run->not_seen = NULL;
}

static void get_page(struct http_reply *reply)
{
	size_t size;
	FILE *file = open_memstream(&reply->body, &size);

	reply->status = MHD_HTTP_OK;
	reply->type = HTML;
	if (!file)
		return;
	if (report_live_page(file) | fclose(file)) {
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

	reply_run(reply, r, run);
}

static void reply_phase(struct http_reply *reply, uint64_t id, uint32_t lease_s)
{
	reply->type = JSON;
	if (asprintf(&reply->body, "{\"phase\": %ju, \"lease_s\": %u}\n", (uintmax_t)id, lease_s) <
	    0)
		reply->body = NULL;
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

void http_document_release(void *context)
{
	struct http_document *document = context;

	if (!document || --document->users)
		return;
	free(document->body);
	free(document);
}

void http_reply_done(struct http_reply *reply)
{
	if (reply->document)
		http_document_release(reply->document);
	else
		free(reply->body);
	*reply = (struct http_reply){0};
}

static uint64_t cpu_time_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return clock_timespec_ns(&now);
}

static bool has_credit(struct http_routes *routes)
{
	uint64_t now = clock_now_ns();
	int64_t grown = routes->credited_ns ? (int64_t)((now - routes->credited_ns) / CREDIT_PART)
					    : CREDIT_MAX_NS;

	routes->credited_ns = now;
	routes->credit_ns += grown < CREDIT_MAX_NS ? grown : CREDIT_MAX_NS;
	if (routes->credit_ns > CREDIT_MAX_NS)
		routes->credit_ns = CREDIT_MAX_NS;
	return routes->credit_ns > 0;
}

static void charge(struct http_routes *routes, uint64_t cost_ns)
{
	routes->credit_ns -= cost_ns < (uint64_t)CREDIT_MAX_NS ? (int64_t)cost_ns : CREDIT_MAX_NS;
	if (routes->credit_ns < -CREDIT_MAX_NS)
		routes->credit_ns = -CREDIT_MAX_NS;
}

/* Make the reply's body a document's. Without memory it stays the reply's. */
static struct http_document *keep(struct http_reply *reply, uint64_t cost_ns)
{
	struct http_document *document = reply->body ? malloc(sizeof(*document)) : NULL;

	if (!document)
		return NULL;
	*document = (struct http_document){.users = 1,
					   .type = reply->type,
					   .body = reply->body,
					   .length = strlen(reply->body),
					   .made_ns = clock_now_ns(),
					   .cost_ns = cost_ns};
	reply->body = NULL;
	return document;
}

static void lend(struct http_document *document, struct http_reply *reply)
{
	document->users++;
	reply->status = MHD_HTTP_OK;
	reply->type = document->type;
	reply->body = document->body;
	reply->document = document;
}

static bool is_to_share(struct http_routes *routes, const struct http_document *document)
{
	bool dear = document && document->cost_ns >= DEAR_NS;

	return (!has_credit(routes) || dear) && document &&
	       clock_now_ns() - document->made_ns < SHARED_NS;
}

static void share(struct http_document **slot, const struct request *request,
		  void (*make)(const struct request *request, struct http_reply *reply),
		  struct http_reply *reply)
{
	uint64_t begin_ns = cpu_time_ns(), cost_ns;

	if (is_to_share(request->routes, *slot)) {
		lend(*slot, reply);
		return;
	}
	make(request, reply);
	cost_ns = cpu_time_ns() - begin_ns;
	charge(request->routes, cost_ns);
	if (reply->status != MHD_HTTP_OK)
		return;
	http_document_release(*slot);
	*slot = keep(reply, cost_ns);
	if (*slot)
		lend(*slot, reply);
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
	uint64_t begin_ns = cpu_time_ns(), port = 0;

	if (!request->query->port || !parse_number(request->query->port, 1, UINT16_MAX, &port)) {
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "port: 1 to 65535");
	} else if (!has_credit(request->routes)) {
		http_reply_error(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "too many documents were requested in the last seconds");
		reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
		snprintf(reply->value, sizeof(reply->value), "1");
	} else {
		reply->status = MHD_HTTP_OK;
		reply->type = JSON;
		reply_clients_errno(reply, http_clients(&request->routes->source, (uint16_t)port,
							&reply->body));
		charge(request->routes, cpu_time_ns() - begin_ns);
	}
}

/* ---- routes ---- */

static void get_routes(const struct request *request, struct http_reply *reply);

struct route {
	const char *method;
	const char *path; /* {id}: one segment, a phase's number */
	void (*handle)(const struct request *request, struct http_reply *reply);
	const char *help;
	bool shared; /* it is the same for all callers at a time */
};

/* clang-format off */
static const struct route table[] = {
	{"GET",  "/",                    get_routes,  "this list; for browsers a page", false},
	{"GET",  "/healthz",             get_health,  "503 if something on this host is exhausted", false},
	{"GET",  "/metrics",             get_metrics, "for Prometheus, or OpenMetrics if asked for", true},
	{"GET",  "/v1/run",              get_run,     "run document since the observation began", true},
	{"GET",  "/v1/services",         get_services, "the same without single exchanges", true},
	{"GET",  "/v1/past",             get_past,    "the same with each service's last minutes; ?last=SECONDS&step=SECONDS&port=PORT", false},
	{"GET",  "/v1/clients",          get_clients, "who is connected to a service now; ?port=PORT", false},
	{"GET",  "/v1/findings",         get_findings, "the same with what is running out now", true},
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase; ?lease=SECONDS, else an hour", false},
	{"POST", "/v1/phases/{id}/renew", renew_phase, "renew its lease; otherwise it ends with that", false},
	{"POST", "/v1/phases/{id}/end",  end_phase,   "end it; run document of the phase", false},
};
/* clang-format on */

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
	fputs("\n/api/v1/... is the same as /v1/..., and HEAD is answered as GET. POST wants the\n"
	      "observer's token, unless it was started with --open.\n",
	      file);
	if (fclose(file)) {
		free(reply->body);
		reply->body = NULL;
	}
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

/* Metrics in the other format come after the table's documents. */
static void handle(const struct route *route, const struct request *request,
		   struct http_reply *reply)
{
	size_t slot = (size_t)(route - table);

	_Static_assert(ARRAY_SIZE(table) < HTTP_DOCUMENTS, "a document for each row, and one more");
	if (route->handle == get_metrics &&
	    metrics_choose(request->query->accept) == METRICS_OPENMETRICS)
		slot = ARRAY_SIZE(table);
	if (route->shared)
		share(&request->routes->documents[slot], request, route->handle, reply);
	else
		route->handle(request, reply);
}

void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const struct http_query *query, struct http_reply *reply)
{
	struct request request = {.routes = routes, .query = query};
	const char *allowed = NULL, *id;

	/* /api/v1/… is the same as /v1/… */
	path += strncmp(path, "/api/v1/", 8) ? 0 : 4;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!match_path(&table[i], path, &id))
			continue;
		allowed = table[i].method;
		/* HEAD is answered as GET; libmicrohttpd leaves the body out. */
		if (strcmp(allowed, method) && (strcmp(allowed, "GET") || strcmp(method, "HEAD")))
			continue;
		if (id && parse_phase(id, &request.phase))
			http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "the phase is not a number");
		else
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

void http_routes_done(struct http_routes *routes)
{
	if (routes->metrics)
		metrics_free(routes->metrics);
	if (routes->judged)
		run_free(routes->judged);
	for (size_t i = 0; i < HTTP_DOCUMENTS; i++)
		http_document_release(routes->documents[i]);
}
