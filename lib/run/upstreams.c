// SPDX-License-Identifier: MIT
/* A service and its upstreams, for lib/join and lib/report. */
#include <stdlib.h>
#include <string.h>

#include "members.h"
#include "sojourn/run.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

static bool is_of(const struct run_service *service, const struct run_service *front,
		  const struct run_upstream *row)
{
	return service != front && service->port == row->port &&
	       text_same(service->host, row->host ? row->host : front->host) &&
	       service->netns == (row->host ? row->netns : front->netns) &&
	       !strcmp(service->protocol, front->protocol);
}

const struct run_service *run_upstream_service(const struct run *run,
					       const struct run_service *front,
					       const struct run_upstream *row)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (is_of(&run->services[i], front, row))
			return &run->services[i];
	return NULL;
}

static uint64_t without_answer(const struct run_service *service)
{
	return service->losses[RUN_LOSS_UNANSWERED] + service->open.read.value +
	       service->open.unread.value;
}

uint64_t run_upstream_given_up(const struct run_service *front, const struct run_service *upstream)
{
	uint64_t calls = without_answer(upstream), requests = without_answer(front);

	return calls > requests ? calls - requests : 0;
}

uint64_t run_hidden_connections(const struct run_service *service)
{
	return service->losses[RUN_LOSS_MULTIPLEXED] + service->losses[RUN_LOSS_TLS_UNKNOWN] +
	       service->losses[RUN_LOSS_MPTCP];
}

uint64_t run_call_uncut(const struct run_timed_call *call)
{
	return run_counts_sum(call->uncut, RUN_UNCUT_COUNT);
}

/* Connections without calls may make this part of all, and no more. */
#define UNCUT_NEGLIGIBLE 0.01

bool run_call_is_timed(const struct run_timed_call *call)
{
	return (double)run_call_uncut(call) <=
	       UNCUT_NEGLIGIBLE * (double)(call->connects + call->older);
}

uint16_t run_towards_port(const char *towards)
{
	const char *colon = strrchr(towards, ':');

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

const struct run_timed_call *run_find_call(const struct run_service *service, const char *towards)
{
	for (size_t i = 0; i < service->timed_call_count; i++)
		if (!strcmp(service->timed_calls[i].towards, towards))
			return &service->timed_calls[i];
	return NULL;
}

void run_calls_subtract(struct run_service *service, const struct run_service *earlier)
{
	for (size_t i = 0; i < service->timed_call_count; i++) {
		struct run_timed_call *call = &service->timed_calls[i];
		const struct run_timed_call *before = run_find_call(earlier, call->towards);

		if (before)
			members_subtract(&run_timed_call_members, call, before);
	}
}
