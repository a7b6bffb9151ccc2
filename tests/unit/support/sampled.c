// SPDX-License-Identifier: MIT
/* Run documents of both sides with the same sampled exchanges; see runs.h. */
#include <arpa/inet.h>
#include <string.h>

#include "runs.h"

#include "unit.h"

static void *need(void *pointer)
{
	assert_non_null(pointer);
	return pointer;
}

void support_split(struct run_service *service, unsigned int unknown)
{
	const struct histogram *h = &service->stages[STAGE_SERVICE].histogram;
	uint64_t mean_ns = h->sum / h->count;

	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		service->cpu[i] = (struct run_stage){.measured = true};
	for (uint64_t i = unknown; i < h->count; i++) {
		histogram_record(&service->cpu[RUN_CPU_RUNNING].histogram, mean_ns / 2);
		histogram_record(&service->cpu[RUN_CPU_RUNNABLE].histogram, mean_ns / 3);
		histogram_record(&service->cpu[RUN_CPU_BLOCKED].histogram,
				 mean_ns - mean_ns / 2 - mean_ns / 3);
	}
}

#define AHEAD_NS 7000000000000ULL

static struct flow flow_from_port(uint16_t port)
{
	struct flow flow = {.client_port = port, .server_port = 8080};

	flow.client[2] = flow.server[2] = htonl(0xffff);
	flow.client[3] = flow.server[3] = htonl(0x7f000001);
	return flow;
}

static struct run_sample *add_sample(struct run_samples *samples, uint16_t port, uint32_t index,
				     uint32_t known)
{
	struct run_sample *sample = need(run_add_sample(samples));

	sample->flow = flow_from_port(port);
	sample->index = index;
	sample->known = known;
	return sample;
}

void support_add_exchange(struct run *run, uint16_t port, uint32_t index, uint64_t start_ns)
{
	uint64_t service_ns = index == SUPPORT_SAMPLED_EACH / 2 ? 20000000 : 100000 + index;
	struct run_sample *sent, *seen;

	sent = add_sample(run->driver->samples, port, index,
			  RUN_SAMPLE_START | RUN_SAMPLE_ROUND_TRIP);
	sent->start_ns = start_ns;
	sent->round_trip_ns = 45000 + service_ns;
	seen = add_sample(run->services[0].samples, port, index,
			  RUN_SAMPLE_ARRIVAL | (RUN_SAMPLE_STAGE(STAGE_RESIDENCE_END) - 1));
	seen->arrival_ns = start_ns + AHEAD_NS + 10000;
	seen->stage_ns[STAGE_SOCKET_QUEUE] = 20000;
	seen->stage_ns[STAGE_SERVICE] = service_ns;
	histogram_record(&run->driver->round_trip, sent->round_trip_ns);
}

struct run *support_sampled_run(void)
{
	struct run *run = support_observer_run();
	autorun struct run *driver = support_driver_run();
	autofree char *error = NULL;

	assert_int_equal(run_merge(run, driver, &error), 0);
	memset(&run->driver->round_trip, 0, sizeof(run->driver->round_trip));
	run->driver->samples = need(run_samples_new());
	run->services[0].samples = need(run_samples_new());
	for (uint32_t index = 0; index < SUPPORT_SAMPLED_EACH; index++)
		for (uint16_t i = 0; i < SUPPORT_SAMPLED / SUPPORT_SAMPLED_EACH; i++)
			support_add_exchange(run, (uint16_t)(40000 + i), index,
					     1000000000ULL + index * 21000000ULL + i * 1000ULL);
	return run;
}
