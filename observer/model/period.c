// SPDX-License-Identifier: MIT
/* The state of a period of the model: its base, look and series; see period.h. */
#include "period.h"

#include <stdlib.h>

#include "sojourn/run_sum.h"

void period_done(struct period *period, struct source_ring *ring)
{
	source_ring_end(ring, period->samples);
	if (period->packed)
		packed_free(period->packed);
	else
		run_free(period->base);
	free(period->first_ns);
	look_free(period->look);
	model_series_free(period->series);
	upstreams_free(period->upstreams);
	*period = (struct period){};
}

void period_pack(struct period *period)
{
	run_drop_idle(period->base);
	period->packed = packed_new(period->base);
}

int period_open(const struct period *period)
{
	return period->packed ? packed_open(period->packed) : 0;
}

void period_close(const struct period *period)
{
	if (period->packed)
		packed_close(period->packed);
}

size_t period_bytes(const struct period *period, size_t services)
{
	size_t bytes = services * sizeof(*period->first_ns);

	if (!period->id)
		return 0;
	if (period->packed)
		bytes += packed_bytes(period->packed);
	else
		bytes += period->base->service_count * sizeof(struct run_service);
	if (period->look)
		bytes += look_bytes(period->look);
	return bytes;
}

const struct run *period_last_point(const struct period *period, const struct run *tick)
{
	return period->pointed ? tick : period->base;
}

void period_point(struct period *period, const struct run *tick, const struct run *now,
		  uint64_t interval_ns)
{
	int r;

	if (period->look)
		look_point(period->look, interval_ns);
	if (!now || !period->series)
		return;
	r = period->pointed ? 0 : period_open(period);
	if (!r)
		r = model_series_point(period->series, period->base,
				       period_last_point(period, tick), now);
	if (!period->pointed)
		period_close(period);
	if (r)
		model_series_free(TAKE_PTR(period->series));
	period->pointed = true;
}

void period_set_messages(const struct period *period, const uint32_t *used, struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];

		service->first_message_ns = period->first_ns[used[i]];
		if (!service->first_message_ns)
			service->last_message_ns = 0;
	}
}

void period_settle_connections(const uint64_t *came, const uint32_t *used, struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];
		uint64_t seen = run_counts_sum(service->closes, RUN_CLOSE_COUNT) +
				service->open.closing.value + service->connections.value;
		uint64_t missing = service->accepted > seen ? service->accepted - seen : 0;

		if (service->connections.known && service->open.closing.known)
			service->connections.value +=
				missing < came[used[i]] ? missing : came[used[i]];
	}
}

void period_forget(struct period *period, uint32_t index, const struct run_service *like)
{
	if (!period->id)
		return;
	period->first_ns[index] = 0;
	if (period->series)
		model_series_forget(period->series, like);
}
