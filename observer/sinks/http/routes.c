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

static int read_total(const struct snapshot_source *source, struct run **ret_run)
{
	return source->total(source->context, ret_run);
}

static int read_services(const struct snapshot_source *source, struct run **ret_run)
{
	int r = source->brief(source->context, ret_run);

	if (!r)
		run_doubt(*ret_run);
	return r;
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

/* Make the reply's body document @number, and lend it. */
static void share_reply(struct http_documents *documents, size_t number, uint64_t cost_ns,
			struct http_reply *reply)
{
	http_documents_charge(documents, cost_ns);
	if (reply->status != MHD_HTTP_OK)
		return;
	if (!http_documents_keep(documents, number, reply->type, TAKE_PTR(reply->body), cost_ns))
		lend(http_documents_lend(documents, number), reply);
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
		http_reply_error(reply, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "too many documents were requested in the last seconds");
		reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
		snprintf(reply->value, sizeof(reply->value), "1");
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
	/* Make the answer; NULL: it is the run document that @read returns. */
	void (*handle)(const struct request *request, struct http_reply *reply);
	const char *help;
	bool shared; /* it is the same for all callers at a time */
	int (*read)(const struct snapshot_source *source, struct run **ret_run);
};

/* clang-format off */
static const struct route table[] = {
	{"GET",  "/",                    get_routes,  "this list; for browsers a page", false, NULL},
	{"GET",  "/healthz",             get_health,  "503 if something on this host is exhausted", false, NULL},
	{"GET",  "/metrics",             get_metrics, "for Prometheus, or OpenMetrics if asked for", true, NULL},
	{"GET",  "/v1/run",              NULL,        "run document since the observation began", true, read_total},
	{"GET",  "/v1/services",         NULL,        "the same without single exchanges", true, read_services},
	{"GET",  "/v1/past",             get_past,    "the same with each service's last minutes; ?last=SECONDS&step=SECONDS&port=PORT", false, NULL},
	{"GET",  "/v1/clients",          get_clients, "who is connected to a service now; ?port=PORT", false, NULL},
	{"GET",  "/v1/findings",         get_findings, "the same with what is running out now", true, NULL},
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase; ?lease=SECONDS, else an hour", false, NULL},
	{"POST", "/v1/phases/{id}/renew", renew_phase, "renew its lease; otherwise it ends with that", false, NULL},
	{"POST", "/v1/phases/{id}/end",  end_phase,   "end it; run document of the phase", false, NULL},
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

/* Return the number of the route's document. Metrics in the other format come after the table's. */
static size_t number_of(const struct route *route, const struct request *request)
{
	_Static_assert(ARRAY_SIZE(table) < HTTP_DOCUMENTS, "a document for each row, and one more");
	if (route->handle == get_metrics &&
	    metrics_choose(request->query->accept) == METRICS_OPENMETRICS)
		return ARRAY_SIZE(table);
	return (size_t)(route - table);
}

static void handle(const struct route *route, const struct request *request,
		   struct http_reply *reply)
{
	struct http_documents *documents = &request->routes->documents;
	size_t number = number_of(route, request);
	struct http_document *shared;
	uint64_t begin_ns;

	if (!route->shared) {
		route->handle(request, reply);
		return;
	}
	shared = http_documents_share(documents, number);
	if (shared) {
		lend(shared, reply);
	} else if (!route->handle) {
		reply->awaited = number + 1;
	} else {
		begin_ns = clock_thread_cpu_ns();
		route->handle(request, reply);
		share_reply(documents, number, clock_thread_cpu_ns() - begin_ns, reply);
	}
}

int http_routes_begin(struct http_routes *routes, size_t awaited)
{
	uint64_t begin_ns = clock_thread_cpu_ns();
	struct run *run = NULL;
	int r = table[awaited - 1].read(&routes->source, &run);

	return r ? r
		 : http_documents_begin(&routes->documents, awaited - 1, run,
					clock_thread_cpu_ns() - begin_ns);
}

void http_routes_made(struct http_routes *routes, size_t awaited, int r, struct http_reply *reply)
{
	if (r)
		reply_errno(reply, r);
	else
		lend(http_documents_lend(&routes->documents, awaited - 1), reply);
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
	http_documents_done(&routes->documents);
}
