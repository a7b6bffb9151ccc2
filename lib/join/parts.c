// SPDX-License-Identifier: MIT
/* The parts of a joined exchange, which sum to its round trip exactly. */
#include "parts.h"

#include "sojourn/units.h"

static struct run_number number_of(const struct run_sample *sample, uint32_t bit, uint64_t value)
{
	return sample->known & bit ? (struct run_number){true, value} : (struct run_number){0};
}

/* A thread neither on a CPU nor waiting for one counts as blocked. */
static void divide_service(const struct run_sample *seen, struct run_parts *parts)
{
	uint64_t on_cpu_ns = seen->running_ns + seen->runnable_ns;
	uint64_t service_ns = seen->stage_ns[STAGE_SERVICE];

	parts->running_ns = number_of(seen, RUN_SAMPLE_RUNNING, seen->running_ns);
	parts->runnable_ns = number_of(seen, RUN_SAMPLE_RUNNABLE, seen->runnable_ns);
	if (!parts->running_ns.known || !parts->runnable_ns.known) {
		parts->running_ns = parts->runnable_ns = (struct run_number){0};
		return;
	}
	parts->blocked_ns = (struct run_number){
		.known = true, .value = service_ns > on_cpu_ns ? service_ns - on_cpu_ns : 0};
}

static uint64_t wait_ns(const struct run_sample *sent)
{
	if (!(sent->known & RUN_SAMPLE_RESPONSE) || sent->response_ns < sent->round_trip_ns)
		return 0;
	return sent->response_ns - sent->round_trip_ns;
}

void join_parts(const struct join_pair *pair, struct run_parts *ret_parts)
{
	const struct run_sample *sent = pair->sent, *seen = pair->seen;
	struct run_parts parts = {.wait_ns = wait_ns(sent), .round_trip_ns = sent->round_trip_ns};
	uint64_t server_ns = 0;

	for (unsigned int i = 0; i < STAGE_COUNT; i++) {
		parts.stages[i] = number_of(seen, RUN_SAMPLE_STAGE(i), seen->stage_ns[i]);
		if (i != STAGE_ACK)
			server_ns += parts.stages[i].value;
	}
	if (sent->round_trip_ns >= server_ns)
		parts.network_ns = sent->round_trip_ns - server_ns;
	else
		parts.overhang_ns = server_ns - sent->round_trip_ns;
	divide_service(seen, &parts);
	*ret_parts = parts;
}

uint64_t join_pair_total(const struct join_pair *pair)
{
	return wait_ns(pair->sent) + pair->sent->round_trip_ns;
}

void join_exchange(const struct join_pair *pair, struct run_exchange *exchange)
{
	const struct run_sample *seen = pair->seen;
	const struct flow *flow = &seen->flow;

	units_format_endpoint(flow->client, flow->client_port, exchange->client,
			      sizeof(exchange->client));
	units_format_endpoint(flow->server, flow->server_port, exchange->server,
			      sizeof(exchange->server));
	exchange->index = seen->index;
	exchange->pid = number_of(seen, RUN_SAMPLE_PID, seen->pid);
	exchange->bytes_in = number_of(seen, RUN_SAMPLE_BYTES_IN, seen->bytes_in);
	exchange->bytes_out = number_of(seen, RUN_SAMPLE_BYTES_OUT, seen->bytes_out);
	exchange->start_ns = pair->sent->start_ns;
	exchange->arrival_ns = seen->arrival_ns;
	join_parts(pair, &exchange->parts);
}
