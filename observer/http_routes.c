/* SPDX-License-Identifier: MIT */
/*
 * The table of routes and what each answers. Knows the observation as a snapshot_source and of
 * libmicrohttpd only the names of statuses and headers; connections are sink_http.c's.
 */
#include "http_routes.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

/* So old may findings be that are told again. */
#define JUDGED_NS (10 * NSEC_PER_SEC)

#define HTML "text/html; charset=utf-8"
#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

struct request {
	struct http_routes *routes;
	uint64_t phase;	    /* of routes with {id} */
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
static void reply_errno(struct http_reply *reply, int err)
{
	switch (err) {
	case -ENOENT:
		http_reply_error(reply, MHD_HTTP_NOT_FOUND, "no such phase");
		break;
	case -ENOSPC:
		http_reply_error(reply, MHD_HTTP_SERVICE_UNAVAILABLE, "too many phases are open");
		reply->header = MHD_HTTP_HEADER_RETRY_AFTER;
		snprintf(reply->value, sizeof(reply->value), "1");
		break;
	default:
		http_reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-err));
	}
}

static void reply_run(struct http_reply *reply, int err, const struct run *run)
{
	if (err) {
		reply_errno(reply, err);
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
	int err = source->total(source->context, &run);

	reply_run(reply, err, run);
}

static void get_services(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	autorun struct run *run = NULL;
	int err = source->brief(source->context, &run);

	reply_run(reply, err, run);
}

/* ---- findings ---- */

/* What is running out, at most JUDGED_NS ago. 0 or -errno. */
static int judge(struct http_routes *routes, const struct run **ret_run)
{
	const struct snapshot_source *source = &routes->source;
	autorun struct run *run = NULL;
	uint64_t now = clock_now_ns();
	int err;

	*ret_run = routes->judged;
	if (routes->judged && now - routes->judged_ns < JUDGED_NS)
		return 0;
	err = source->brief(source->context, &run);
	if (!err)
		err = source->judge(source->context, run);
	if (err)
		return err;
	if (routes->judged)
		run_free(routes->judged);
	routes->judged_ns = now;
	*ret_run = routes->judged = TAKE_PTR(run);
	return 0;
}

static void get_findings(const struct request *request, struct http_reply *reply)
{
	const struct run *run;
	int err = judge(request->routes, &run);

	reply_run(reply, err, run);
}

static bool is_critical(const struct run *run)
{
	for (size_t i = 0; i < run->finding_count; i++)
		if (!strcmp(run->findings[i].severity, "critical"))
			return true;
	return false;
}

/* Follows the doctor: what is exhausted, or about to be, is not healthy; a warning is. */
static void get_health(const struct request *request, struct http_reply *reply)
{
	const struct run *run;
	const char *status;
	int err = judge(request->routes, &run);

	if (err) {
		reply_errno(reply, err);
		return;
	}
	status = is_critical(run) ? "critical" : run->finding_count ? "warning" : "ok";
	reply->status = is_critical(run) ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
	reply->type = JSON;
	if (asprintf(&reply->body, "{\"status\": \"%s\", \"findings\": %zu, \"looked\": %s}\n",
		     status, run->finding_count, run->not_seen ? "true" : "false") < 0)
		reply->body = NULL;
}

/* ---- metrics and the page ---- */

static void lend_findings(const struct run *judged, struct run *run)
{
	run->findings = judged->findings;
	run->finding_count = judged->finding_count;
	run->not_seen = judged->not_seen;
}

static void take_findings_back(struct run *run)
{
	run->findings = NULL;
	run->finding_count = 0;
	run->not_seen = NULL;
}

static void get_metrics(const struct request *request, struct http_reply *reply)
{
	enum metrics_format format = metrics_choose(request->accept);
	struct http_routes *routes = request->routes;
	const struct run *judged = NULL;
	autorun struct run *run = NULL;
	int err = judge(routes, &judged);

	if (!err)
		err = routes->source.brief(routes->source.context, &run);
	if (!err && !routes->metrics)
		routes->metrics = metrics_new();
	if (err || !routes->metrics) {
		reply_errno(reply, err ? err : -ENOMEM);
		return;
	}
	lend_findings(judged, run);
	reply->status = MHD_HTTP_OK;
	reply->type = metrics_types[format];
	reply->body = metrics_text(routes->metrics, run, format);
	take_findings_back(run);
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
	int err = source->phase_end(source->context, request->phase, &run);

	reply_run(reply, err, run);
}

static void begin_phase(const struct request *request, struct http_reply *reply)
{
	const struct snapshot_source *source = &request->routes->source;
	uint64_t id;
	int err = source->phase_begin(source->context, &id);

	if (err) {
		reply_errno(reply, err);
		return;
	}
	reply->status = MHD_HTTP_CREATED;
	reply->type = JSON;
	reply->header = MHD_HTTP_HEADER_LOCATION;
	snprintf(reply->value, sizeof(reply->value), "/v1/phases/%ju", (uintmax_t)id);
	if (asprintf(&reply->body, "{\"phase\": %ju}\n", (uintmax_t)id) < 0)
		reply->body = NULL;
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
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase"},
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
		fprintf(file, "%-4s  %-20s  %s\n", table[i].method, table[i].path, table[i].help);
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

/* HEAD is answered as GET; libmicrohttpd leaves the body out. */
static bool match_method(const struct route *route, const char *method)
{
	return !strcmp(route->method, method) ||
	       (!strcmp(route->method, "GET") && !strcmp(method, "HEAD"));
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

static void call_route(const struct route *route, struct request *request, const char *id,
		       struct http_reply *reply)
{
	if (id && parse_phase(id, &request->phase))
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "the phase is not a number");
	else
		route->handle(request, reply);
}

/* /api/v1/… is the same as /v1/… */
static const char *without_api(const char *path)
{
	return strncmp(path, "/api/v1/", 8) ? path : path + 4;
}

void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const char *accept, struct http_reply *reply)
{
	struct request request = {.routes = routes, .accept = accept};
	const char *allowed = NULL, *id;

	path = without_api(path);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!match_path(&table[i], path, &id))
			continue;
		if (match_method(&table[i], method)) {
			call_route(&table[i], &request, id, reply);
			return;
		}
		allowed = table[i].method;
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
