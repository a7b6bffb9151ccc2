/* SPDX-License-Identifier: MIT */
/*
 * The table of routes and what each answers. Knows the observation as a snapshot_source and of
 * libmicrohttpd only the names of statuses and headers; connections are http.c's.
 */
#include "routes.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/units.h"

/* So old may findings be that are told again. */
#define JUDGED_NS (10 * NSEC_PER_SEC)

/* How long a phase may go on without being renewed, where the query does not say. */
#define LEASE_S	    3600
#define LEASE_MAX_S 86400

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

struct request {
	struct http_routes *routes;
	uint64_t phase;	    /* of routes with {id} */
	const char *lease;  /* the query's "lease"; may be NULL */
	const char *accept; /* may be NULL */
};

void http_reply_error(struct http_reply *reply, unsigned int status, const char *error)
{
	reply->status = status;
	reply->type = JSON;
	if (asprintf(&reply->body, "{\"error\": \"%s\"}\n", error) < 0)
		reply->body = NULL;
}

/* What a source's errors mean to a client; any other is ours: 500. */
static void reply_errno(struct http_reply *reply, int r)
{
	switch (r) {
	case -ENOENT:
		http_reply_error(reply, MHD_HTTP_NOT_FOUND,
				 "no such phase is open: it has ended, or was not renewed in time");
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

/* ---- findings ---- */

/* What is running out, at most JUDGED_NS ago. 0 or -errno. */
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
 * Whether it is about an observed service: its own queues and requests, or what one of its processes runs out of.
 * A port is otherwise that of a destination, and whose connections take ports says nothing of who listens there.
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
 * What is exhausted, or about to be, is not healthy; a warning is, and a notice is nothing. Of the host's findings
 * those that are not about an observed service are no more than warnings here: any user can make some.
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
	enum metrics_format format = metrics_choose(request->accept);
	struct http_routes *routes = request->routes;
	const struct run *judged = NULL;
	autorun struct run *run = NULL;
	int r = judge(routes, &judged);

	if (!r)
		r = routes->source.brief(routes->source.context, &run);
	if (!r && !routes->metrics)
		routes->metrics = metrics_new();
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

	if (request->lease && units_parse_u64(request->lease, 1, LEASE_MAX_S, &lease_s)) {
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

/* ---- routes ---- */

static void get_routes(const struct request *request, struct http_reply *reply);

struct route {
	const char *method;
	const char *path; /* {id}: one segment, a phase's number */
	void (*handle)(const struct request *request, struct http_reply *reply);
	const char *help;
};

/* clang-format off */
static const struct route table[] = {
	{"GET",  "/",                    get_routes,  "this list; for browsers a page"},
	{"GET",  "/healthz",             get_health,  "503 if something on this host is exhausted"},
	{"GET",  "/metrics",             get_metrics, "for Prometheus, or OpenMetrics if asked for"},
	{"GET",  "/v1/run",              get_run,     "run document since the observation began"},
	{"GET",  "/v1/services",         get_services, "the same without single exchanges"},
	{"GET",  "/v1/findings",         get_findings, "the same with what is running out now"},
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase; ?lease=SECONDS, else an hour"},
	{"POST", "/v1/phases/{id}/renew", renew_phase, "it goes on; without, it ends with its lease"},
	{"POST", "/v1/phases/{id}/end",  end_phase,   "end it; run document of the phase"},
};
/* clang-format on */

static void get_routes(const struct request *request, struct http_reply *reply)
{
	size_t size;
	FILE *file;

	if (request->accept && strstr(request->accept, "text/html")) {
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

void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const char *accept, const char *lease, struct http_reply *reply)
{
	struct request request = {.routes = routes, .accept = accept, .lease = lease};
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
			table[i].handle(&request, reply);
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
}
