// SPDX-License-Identifier: MIT
/*
 * Upstreams on other hosts. A front's document has the addresses that its processes call. A service of another host
 * that has one of these addresses is the upstream.
 *
 * Where addresses are translated between both, none is the same, and nothing is paired.
 */
#include "match.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/run.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

bool join_has_address(const struct run_service *service, const char *towards)
{
	char own[sizeof(((struct run_call *)NULL)->towards)];
	bool v6 = strchr(service->address, ':');

	snprintf(own, sizeof(own), "%s%.45s%s:%u", v6 ? "[" : "", service->address, v6 ? "]" : "",
		 service->port);
	if (!strcmp(own, towards))
		return true;
	for (size_t i = 0; service->samples && i < service->samples->count; i++) {
		const struct flow *flow = &service->samples->samples[i].flow;

		units_format_endpoint(flow->server, flow->server_port, own, sizeof(own));
		if (!strcmp(own, towards))
			return true;
	}
	return false;
}

/* Find the services of other hosts at the address. Return how many there are, and the last one. */
static size_t find_at(const struct run *run, const struct run_service *front, const char *towards,
		      const struct run_service **ret_service)
{
	uint16_t port = run_towards_port(towards);
	size_t found = 0;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct run_service *service = &run->services[i];

		if (service->port != port || !service->host ||
		    text_same(service->host, front->host) ||
		    strcmp(service->protocol, "tcp") != 0 || !join_has_address(service, towards))
			continue;
		*ret_service = service;
		found++;
	}
	return found;
}

static struct run_upstream *row_of(struct run_service *front, const struct run_service *upstream)
{
	struct run_upstream *row;

	for (size_t i = 0; i < front->upstream_count; i++) {
		row = &front->upstreams[i];
		if (row->port == upstream->port && row->netns == upstream->netns &&
		    text_same(row->host, upstream->host))
			return row;
	}
	row = ARRAY_APPEND(front->upstreams, front->upstream_count);
	if (!row)
		return NULL;
	row->host = strdup(upstream->host);
	row->netns = upstream->netns;
	row->port = upstream->port;
	return row->host ? row : NULL;
}

static int add_reason(struct run_upstream *row, const char *reason)
{
	if (!row->reason)
		row->reason = strdup(reason);
	return row->reason ? 0 : -ENOMEM;
}

/* Add a call to the row of its upstream. The upstream's other connections are those that are no front's. */
static int add_call(struct run_service *front, const struct run_service *upstream,
		    const struct run_call *call, size_t at_address)
{
	struct run_upstream *row = row_of(front, upstream);
	uint64_t all = upstream->accepted + upstream->older_connections.value;

	if (!row)
		return -ENOMEM;
	row->connections += call->connections;
	row->others = all > row->connections ? all - row->connections : 0;
	row->serves_too = call->serves_too;
	if (at_address > 1)
		return add_reason(row, "several hosts have its address");
	if (!upstream->older_connections.known)
		return add_reason(row,
				  "which connections it had when the period began is not known");
	return 0;
}

/* Remove the place from the list "a:1, b:2" of those that are not observed. */
static void remove_name(struct run_service *front, const char *towards)
{
	size_t length = strlen(towards);
	char *at = front->calls ? strstr(front->calls, towards) : NULL;

	if (!at || (at > front->calls && at[-1] != ' ') || (at[length] && at[length] != ','))
		return;
	if (at[length])
		memmove(at, at + length + 2, strlen(at + length + 2) + 1);
	else if (at > front->calls)
		at[-2] = '\0';
	else
		*at = '\0';
	if (*front->calls)
		return;
	free(front->calls);
	front->calls = NULL;
}

static int pair(const struct run *run, struct run_service *front)
{
	size_t kept = 0, i = 0;
	int err = 0;

	for (; i < front->called_count && !err; i++) {
		const struct run_service *upstream = NULL;
		struct run_call call = front->called[i];
		size_t found = find_at(run, front, call.towards, &upstream);

		if (!found) {
			front->called[kept++] = call;
			continue;
		}
		err = add_call(front, upstream, &call, found);
		remove_name(front, call.towards);
	}
	front->called_count = kept;
	if (!kept) {
		free(front->called);
		front->called = NULL;
	}
	return err;
}

int join_pair_hosts(struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < run->service_count && !err; i++)
		if (run->services[i].host)
			err = pair(run, &run->services[i]);
	return err;
}
