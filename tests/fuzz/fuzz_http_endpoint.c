// SPDX-License-Identifier: MIT
/*
 * Any bytes as a client's request to the observer's endpoint (method, path, Accept header,
 * arguments, Host header), and as the address to listen on. HTTP itself is parsed by libmicrohttpd.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "sinks/http/address.h"
#include "sinks/http/routes.h"
#include "sojourn/cleanup.h"

/* ---- an empty source, and one open phase ---- */

#define PHASE 7

static int give(void *context, struct run **ret_run)
{
	(void)context;
	*ret_run = run_new("fuzz", NULL);
	return *ret_run ? 0 : -ENOMEM;
}

static int judge(void *context, struct run *run)
{
	(void)context;
	run->not_seen = calloc(1, sizeof(*run->not_seen));
	return run->not_seen ? 0 : -ENOMEM;
}

static int past(void *context, const struct snapshot_past *past, struct run **ret_run)
{
	require(past->last_s && past->step_s);
	return give(context, ret_run);
}

static int begin(void *context, uint32_t lease_s, uint64_t *ret_id)
{
	(void)context;
	require(lease_s >= 1);
	*ret_id = PHASE;
	return 0;
}

static int renew(void *context, uint64_t id, uint32_t *ret_lease_s)
{
	(void)context;
	*ret_lease_s = 1;
	return id == PHASE ? 0 : -ENOENT;
}

static int end(void *context, uint64_t id, struct run **ret_run)
{
	return id == PHASE ? give(context, ret_run) : -ENOENT;
}

/* ---- requests ---- */

/* Return the next line of @rest, and advance @rest. */
static const char *next_line(char **rest)
{
	char *line = strsep(rest, "\n");

	return line ? line : "";
}

static void check_reply(const struct http_reply *reply)
{
	require(reply->status >= 200 && reply->status < 600 && reply->type && reply->body);
	if (!strcmp(reply->type, "application/json")) {
		json_t *json = json_loads(reply->body, 0, NULL);

		require(json_is_object(json));
		json_decref(json);
	}
}

/* Make the document that the reply waits for, as the endpoint does between other requests. */
static void make(struct http_routes *routes, struct http_reply *reply)
{
	struct http_wanted awaited = reply->awaited;
	int r = http_routes_begin(routes, &awaited);

	if (!r) {
		do
			r = http_documents_continue(&routes->documents);
		while (r > 0);
	}
	*reply = (struct http_reply){0};
	http_routes_made(routes, &awaited, r, reply);
}

static void ask(char *text)
{
	struct http_routes routes = {.source = {.total = give,
						.brief = give,
						.past = past,
						.judge = judge,
						.phase_begin = begin,
						.phase_renew = renew,
						.phase_end = end}};
	const char *method = next_line(&text), *path = next_line(&text);
	struct http_query query = {.now = true, .accept = text ? next_line(&text) : NULL};
	struct http_reply reply = {0};

	while (text) {
		const char *name = next_line(&text);

		http_query_take(&query, name, text ? next_line(&text) : NULL);
	}
	http_routes_answer(&routes, method, path, &query, &reply);
	if (reply.awaited.number)
		make(&routes, &reply);
	check_reply(&reply);
	http_reply_done(&reply);
	http_routes_done(&routes);
}

/*
 * A foreign name is never admitted: admitted ones consist of an address's characters, or are
 * localhost.
 */
static void check_host(char *text)
{
	struct sockaddr_storage listened, local;
	const char *host = next_line(&text);

	if (http_address_parse("127.0.0.1:9180", &listened) ||
	    http_address_parse("[2001:db8::1]:9180", &local))
		abort();
	if (!http_address_is_host(host, &listened, &local))
		return;
	require(!strncasecmp(host, "localhost", strlen("localhost")) ||
		strspn(host, "0123456789abcdefABCDEF.:[]") == strlen(host));
}

/* Require that an accepted address stays the same when it is formatted and parsed again. */
static void check_address(char *text)
{
	struct sockaddr_storage address, again;
	char url[HTTP_ADDRESS_URL_MAX], shown[HTTP_ADDRESS_URL_MAX];

	if (http_address_parse(text, &address))
		return;
	http_address_url(&address, false, url);
	require(!strncmp(url, "http://", 7));
	require(!http_address_parse(url + 7, &again));
	http_address_url(&again, false, shown);
	require(!strcmp(url, shown));
}

static void (*const checks[])(char *text) = {ask, check_host, check_address};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_text(data, size, checks, ARRAY_SIZE(checks));
}
