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

#include "sojourn/units.h"

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

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

static void get_run(const struct snapshot_source *source, uint64_t phase, struct http_reply *reply)
{
	autorun struct run *run = NULL;
	int err = source->total(source->context, &run);

	(void)phase;
	reply_run(reply, err, run);
}

static void end_phase(const struct snapshot_source *source, uint64_t phase,
		      struct http_reply *reply)
{
	autorun struct run *run = NULL;
	int err = source->phase_end(source->context, phase, &run);

	reply_run(reply, err, run);
}

static void begin_phase(const struct snapshot_source *source, uint64_t phase,
			struct http_reply *reply)
{
	uint64_t id;
	int err = source->phase_begin(source->context, &id);

	(void)phase;
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

static void get_health(const struct snapshot_source *source, uint64_t phase,
		       struct http_reply *reply)
{
	(void)source;
	(void)phase;
	reply->status = MHD_HTTP_OK;
	reply->type = JSON;
	reply->body = strdup("{\"status\": \"ok\"}\n");
}

static void get_routes(const struct snapshot_source *source, uint64_t phase,
		       struct http_reply *reply);

struct route {
	const char *method;
	const char *path; /* {id}: one segment, a phase's number */
	void (*handle)(const struct snapshot_source *source, uint64_t phase,
		       struct http_reply *reply);
	const char *help;
};

/* clang-format off */
static const struct route routes[] = {
	{"GET",  "/",                    get_routes,  "this list"},
	{"GET",  "/healthz",             get_health,  "whether the observer answers"},
	{"GET",  "/v1/run",              get_run,     "run document since the observation began"},
	{"POST", "/v1/phases",           begin_phase, "begin a measured phase"},
	{"POST", "/v1/phases/{id}/end",  end_phase,   "end it; run document of the phase"},
};
/* clang-format on */

static void get_routes(const struct snapshot_source *source, uint64_t phase,
		       struct http_reply *reply)
{
	size_t size;
	FILE *file = open_memstream(&reply->body, &size);

	(void)source;
	(void)phase;
	reply->status = MHD_HTTP_OK;
	reply->type = TEXT;
	if (!file)
		return;
	fputs("sojourn " SOJOURN_VERSION "\n\n", file);
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		fprintf(file, "%-4s  %-20s  %s\n", routes[i].method, routes[i].path,
			routes[i].help);
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

static void call_route(const struct route *route, const struct snapshot_source *source,
		       const char *id, struct http_reply *reply)
{
	uint64_t phase = 0;

	if (id && parse_phase(id, &phase))
		http_reply_error(reply, MHD_HTTP_BAD_REQUEST, "the phase is not a number");
	else
		route->handle(source, phase, reply);
}

void http_routes_answer(const struct snapshot_source *source, const char *method, const char *path,
			struct http_reply *reply)
{
	const char *allowed = NULL, *id;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (!match_path(&routes[i], path, &id))
			continue;
		if (match_method(&routes[i], method)) {
			call_route(&routes[i], source, id, reply);
			return;
		}
		allowed = routes[i].method;
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
