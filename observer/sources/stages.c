// SPDX-License-Identifier: MIT
/* A service's stages as the plan has them: which are not measured and why, and which hooks measure the others. */
#include "source.h"

#include <netinet/in.h>
#include <string.h>

#include "sojourn/text.h"

static const char *hook(const struct plan *plan, enum question question)
{
	const struct plan_row *row = plan_chosen(plan, question);

	return row ? row->candidate->hook : "?";
}

/* Return the hooks that report the stage's begin and its end. */
static char *stage_source(const struct loader *loader, const struct plan *plan, enum stage stage)
{
	static const enum question ends[STAGE_COUNT][2] = {
		[STAGE_SOCKET_QUEUE] = {QUESTION_ARRIVAL, QUESTION_READ},
		[STAGE_RECEIVE] = {QUESTION_READ, QUESTION_READ},
		[STAGE_SERVICE] = {QUESTION_READ, QUESTION_WRITE},
		[STAGE_RESPOND] = {QUESTION_WRITE, QUESTION_WRITE},
		[STAGE_TRANSMIT_QUEUE] = {QUESTION_TRANSMIT, QUESTION_TRANSMIT},
		[STAGE_ACK] = {QUESTION_TRANSMIT, QUESTION_TRANSMIT},
	};
	static const char *const accept_sources[] = {
		[ACCEPT_RETURNED] = "accept",
		[ACCEPT_SYSCALL] = "syscall",
		[ACCEPT_INFERRED] = "inferred",
	};
	enum question begin = ends[stage][0], end = ends[stage][1];

	if (stage == STAGE_ACCEPT_QUEUE)
		return strdup(accept_sources[loader_config(loader)->accept_source]);
	if (begin == end)
		return strdup(hook(plan, begin));
	return text_format("%s, %s", hook(plan, begin), hook(plan, end));
}

static void mark_split(const struct plan *plan, bool udp, struct run_stage *parts)
{
	const char *missing = plan_missing_cpu(plan, udp);

	for (enum run_cpu part = 0; part < RUN_CPU_COUNT; part++) {
		parts[part].measured = !missing;
		parts[part].reason = missing ? strdup(missing) : NULL;
		parts[part].source = missing ? NULL : strdup(hook(plan, QUESTION_CPU));
	}
}

static void mark_http2(const struct plan *plan, bool udp, struct run_http2 *http2)
{
	const char *missing = udp ? "not for datagrams" : plan_missing_streams(plan);

	if (missing)
		*http2 = (struct run_http2){.reason = strdup(missing)};
}

void source_stages_mark(const struct loader *loader, const struct plan *plan,
			const struct service_key *key, struct run_service *service)
{
	bool udp = key->protocol == IPPROTO_UDP;

	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		const char *missing =
			udp ? plan_missing_udp(plan, stage) : plan_missing(plan, stage);

		service->stages[stage].measured = !missing;
		service->stages[stage].reason = missing ? strdup(missing) : NULL;
		service->stages[stage].source =
			missing || udp ? NULL : stage_source(loader, plan, stage);
	}
	mark_split(plan, udp, service->cpu);
	mark_http2(plan, udp, &service->http2);
	if (!udp)
		service->quiet_ns = (struct run_number){.known = true,
							.value = loader_config(loader)->quiet_ns};
	if (plan_depth(plan) == PLAN_DEPTH_UNSEEN)
		service->accept_queue.depth_max = (struct run_number){};
}
