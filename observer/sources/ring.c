// SPDX-License-Identifier: MIT
/*
 * Sampled exchanges, and with --calls sampled calls: takes them out of the ring and keeps a bounded number for each open
 * period. A full period halves its threshold and drops the exchanges above it. The kernel then sends no more than the
 * most demanding period wants. So all exchanges are kept at low rates, and at high ones a fair choice that the driver
 * can make as well (wire/flow.h).
 */
#include "ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <bpf/libbpf.h>

#include "sojourn/clock.h"
#include "source.h"
#include "wire/buckets.h"
#include "wire/event.h"

/* Maximum of open periods with samples; further ones get none. */
#define PERIODS 8

struct source_samples {
	uint64_t begun_ns; /* only exchanges that arrived since then count */
	uint64_t threshold;
	struct run_samples **by_service; /* NULL: none yet */
	struct run_samples **calls;	 /* by caller, likewise */
	uint64_t *lost;			 /* by service: the loss before the period */
	uint64_t kept;			 /* of all services */
};

struct source_ring {
	struct loader *loader;
	uint32_t limit; /* samples per service and period */
	uint32_t most;	/* samples of a period; all periods together may have twice as many */
	uint64_t kept;
	uint32_t services;
	struct ring_buffer *buffer;
	int epoll_fd;
	size_t budget; /* events that this drain may still take */
	int error;     /* of the last drain: no memory */
	struct source_samples *periods[PERIODS];
	struct run_newest **newest; /* by service: RUN_NEWEST of it; NULL: none yet */
};

/* ---- an event becomes a sample ---- */

static void set_value(struct run_sample *sample, uint32_t value, uint64_t *field, uint64_t content)
{
	*field = content;
	sample->known |= value;
}

static void set_stage(struct run_sample *sample, enum stage stage, uint64_t begin, uint64_t end)
{
	set_value(sample, RUN_SAMPLE_STAGE(stage), &sample->stage_ns[stage], end - begin);
}

static void set_stages(const struct exchange_event *e, struct run_sample *sample)
{
	uint64_t start = e->accepted_ns ? e->accepted_ns : e->arrival_ns;

	set_stage(sample, STAGE_ACCEPT_QUEUE, e->arrival_ns, start);
	set_stage(sample, STAGE_SOCKET_QUEUE, start, e->first_read_ns);
	set_stage(sample, STAGE_RECEIVE, e->first_read_ns, e->last_read_ns);
	set_stage(sample, STAGE_SERVICE, e->last_read_ns, e->first_write_ns);
	set_stage(sample, STAGE_RESPOND, e->first_write_ns, e->last_write_ns);
	if (e->on_wire_ns)
		set_stage(sample, STAGE_TRANSMIT_QUEUE, e->last_write_ns, e->on_wire_ns);
	if (e->acked_ns)
		set_stage(sample, STAGE_ACK, e->on_wire_ns, e->acked_ns);
}

/* The kernel side counts bytes in 32 bits. UINT32_MAX means at least that many: not known. */
static void set_bytes(struct run_sample *sample, uint32_t value, uint64_t *field, uint32_t bytes)
{
	if (bytes != UINT32_MAX)
		set_value(sample, value, field, bytes);
}

static void sample_from(const struct exchange_event *e, struct run_sample *ret_sample)
{
	*ret_sample = (struct run_sample){.flow = e->flow, .index = e->index, .pid = e->pid};
	ret_sample->known = e->pid ? RUN_SAMPLE_PID : 0;
	set_bytes(ret_sample, RUN_SAMPLE_BYTES_IN, &ret_sample->bytes_in, e->bytes_in);
	set_bytes(ret_sample, RUN_SAMPLE_BYTES_OUT, &ret_sample->bytes_out, e->bytes_out);
	set_value(ret_sample, RUN_SAMPLE_ARRIVAL, &ret_sample->arrival_ns, e->arrival_ns);
	set_stages(e, ret_sample);
	if (!e->running_ns)
		return;
	set_value(ret_sample, RUN_SAMPLE_RUNNING, &ret_sample->running_ns, e->running_ns);
	set_value(ret_sample, RUN_SAMPLE_RUNNABLE, &ret_sample->runnable_ns, e->runnable_ns);
}

/* The promise of every sample: its stages are its residence, to the nanosecond. */
static bool adds_up(const struct exchange_event *e, const struct run_sample *sample)
{
	uint64_t start = e->accepted_ns ? e->accepted_ns : e->arrival_ns, sum = 0;
	bool in_order = e->arrival_ns && e->arrival_ns <= start && start <= e->first_read_ns &&
			e->first_read_ns <= e->last_read_ns &&
			e->last_read_ns <= e->first_write_ns &&
			e->first_write_ns <= e->last_write_ns;

	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++)
		sum += sample->stage_ns[stage];
	return in_order && e->running_ns + e->runnable_ns <= sample->stage_ns[STAGE_SERVICE] &&
	       sum == e->last_write_ns - e->arrival_ns;
}

/* ---- periods ---- */

static void samples_free(struct source_samples *samples, uint32_t services)
{
	if (!samples)
		return;
	for (uint32_t i = 0; samples->by_service && i < services; i++)
		run_samples_free(samples->by_service[i]);
	for (uint32_t i = 0; samples->calls && i < services; i++)
		run_samples_free(samples->calls[i]);
	free(samples->by_service);
	free(samples->calls);
	free(samples->lost);
	free(samples);
}

/* Set the kernel's threshold to that of the most demanding period. */
static void tell_kernel(struct source_ring *ring)
{
	uint64_t threshold = 0;

	for (size_t i = 0; i < PERIODS; i++) {
		if (ring->periods[i] && ring->periods[i]->threshold > threshold)
			threshold = ring->periods[i]->threshold;
	}
	loader_set_sample_threshold(ring->loader, threshold);
}

static size_t count_of(const struct run_samples *samples)
{
	return samples ? samples->count : 0;
}

static void count_kept(struct source_ring *ring)
{
	ring->kept = 0;
	for (size_t i = 0; i < PERIODS; i++) {
		struct source_samples *samples = ring->periods[i];

		if (!samples)
			continue;
		samples->kept = 0;
		for (uint32_t j = 0; j < ring->services; j++)
			samples->kept +=
				count_of(samples->by_service[j]) + count_of(samples->calls[j]);
		ring->kept += samples->kept;
	}
}

static bool is_full(const struct source_ring *ring, const struct source_samples *samples,
		    const struct run_samples *of_service)
{
	return of_service->count >= ring->limit || samples->kept >= ring->most ||
	       ring->kept >= 2ULL * ring->most;
}

/* Halve the period's threshold, and drop the samples above it. */
static void halve(struct source_ring *ring, struct source_samples *samples)
{
	samples->threshold /= 2;
	for (uint32_t i = 0; i < ring->services; i++) {
		if (samples->by_service[i])
			run_samples_lower(samples->by_service[i], samples->threshold);
		if (samples->calls[i])
			run_samples_lower(samples->calls[i], samples->threshold);
	}
	count_kept(ring);
	tell_kernel(ring);
}

/* A sampled exchange or call, and what it becomes. */
struct offered {
	bool call;
	uint64_t begin_ns;
	uint32_t index; /* of its service, or of its caller */
	uint32_t hash;
	bool adds_up;
	struct run_sample sample;
};

static int offer(struct source_ring *ring, struct source_samples *samples,
		 const struct offered *offered)
{
	struct run_samples **place =
		&(offered->call ? samples->calls : samples->by_service)[offered->index];
	struct run_samples *of_service;
	struct run_sample *kept;

	if (offered->begin_ns < samples->begun_ns)
		return 0;
	if (!*place)
		*place = run_samples_new();
	of_service = *place;
	if (!of_service)
		return -ENOMEM;
	while (offered->hash < samples->threshold && is_full(ring, samples, of_service))
		halve(ring, samples);
	if (offered->hash >= samples->threshold)
		return 0;
	if (!offered->adds_up) {
		of_service->inconsistent++;
		return 0;
	}
	kept = run_add_sample(of_service);
	if (!kept)
		return -ENOMEM;
	*kept = offered->sample;
	samples->kept++;
	ring->kept++;
	return 0;
}

/* The second octave begins at 2^11 ns. */
static size_t octave_of(uint64_t residence_ns)
{
	size_t octave = bucket_log2(residence_ns | 1024) - 10;

	return octave < RUN_NEWEST ? octave : RUN_NEWEST - 1;
}

static int keep_newest(struct source_ring *ring, const struct exchange_event *e,
		       const struct offered *offered)
{
	struct run_newest **newest = &ring->newest[offered->index];

	if (!offered->adds_up)
		return 0;
	if (!*newest)
		*newest = calloc(RUN_NEWEST, sizeof(**newest));
	if (!*newest)
		return -ENOMEM;
	(*newest)[octave_of(e->last_write_ns - e->arrival_ns)] =
		(struct run_newest){offered->sample, e->last_write_ns};
	return 0;
}

/* Return whether the event is still of the service: its slot may be another one's by now. */
static bool is_of(const struct source_ring *ring, uint32_t service)
{
	uint32_t index = service_index(service);

	return index < ring->services && loader_service_number(ring->loader, index) == service;
}

static int offer_all(struct source_ring *ring, const struct offered *offered)
{
	int r = 0;

	for (size_t i = 0; i < PERIODS && !r; i++) {
		if (ring->periods[i])
			r = offer(ring, ring->periods[i], offered);
	}
	return r;
}

static int take_exchange(struct source_ring *ring, const struct exchange_event *e)
{
	struct offered offered = {
		.begin_ns = e->arrival_ns,
		.index = service_index(e->service),
		.hash = exchange_hash(flow_hash(&e->flow), e->index),
	};
	int r;

	if (!is_of(ring, e->service))
		return 0;
	sample_from(e, &offered.sample);
	offered.adds_up = adds_up(e, &offered.sample);
	r = offer_all(ring, &offered);
	return r ? r : keep_newest(ring, e, &offered);
}

/* A call has the form of a driver's sample: it was sent, and answered. */
static int take_call(struct source_ring *ring, const struct call_event *e)
{
	struct offered offered = {
		.call = true,
		.begin_ns = e->begin_ns,
		.index = service_index(e->service),
		.hash = exchange_hash(flow_hash(&e->flow), e->index),
		.adds_up = e->begin_ns && e->begin_ns <= e->answered_ns,
		.sample = {.flow = e->flow, .index = e->index},
	};

	if (!is_of(ring, e->service))
		return 0;
	set_value(&offered.sample, RUN_SAMPLE_START, &offered.sample.start_ns, e->begin_ns);
	set_value(&offered.sample, RUN_SAMPLE_ROUND_TRIP, &offered.sample.round_trip_ns,
		  e->answered_ns - e->begin_ns);
	return offer_all(ring, &offered);
}

/* A negative result ends the drain; the event is taken in any case. */
static int on_event(void *context, void *data, size_t size)
{
	struct source_ring *ring = context;

	if (!ring->error && size == sizeof(struct exchange_event))
		ring->error = take_exchange(ring, data);
	else if (!ring->error && size == sizeof(struct call_event))
		ring->error = take_call(ring, data);
	return ring->error || !--ring->budget ? -ECANCELED : 0;
}

int source_ring_drain(struct source_ring *ring)
{
	struct epoll_event event;
	int r;

	if (!ring)
		return 0;
	/* Edge-triggered: this clears the edge, or poll() would return without end. */
	(void)epoll_wait(ring->epoll_fd, &event, 1, 0);
	ring->error = 0;
	ring->budget = loader_config(ring->loader)->ring_bytes / sizeof(struct call_event);
	r = ring_buffer__consume(ring->buffer);
	return r < 0 && r != -ECANCELED ? r : ring->error;
}

/* ---- begin and end ---- */

static int samples_new(uint32_t services, struct source_samples **ret_samples)
{
	struct source_samples *samples = calloc(1, sizeof(*samples));

	if (!samples)
		return -ENOMEM;
	samples->by_service = calloc(services, sizeof(struct run_samples *));
	samples->calls = calloc(services, sizeof(struct run_samples *));
	samples->lost = calloc(services, sizeof(uint64_t));
	samples->threshold = RUN_SAMPLE_ALL;
	if (!samples->by_service || !samples->calls || !samples->lost) {
		samples_free(samples, services);
		return -ENOMEM;
	}
	*ret_samples = samples;
	return 0;
}

int source_ring_begin(struct source_ring *ring, struct source_samples **ret_samples)
{
	struct source_samples **place = NULL;
	int r;

	*ret_samples = NULL;
	for (size_t i = 0; ring && i < PERIODS && !place; i++) {
		if (!ring->periods[i])
			place = &ring->periods[i];
	}
	if (!place)
		return 0;
	r = samples_new(ring->services, place);
	if (r < 0)
		return r;
	/* In this order: all exchanges that arrive from begun_ns on are sampled under the new threshold. */
	tell_kernel(ring);
	(*place)->begun_ns = clock_now_ns();
	for (uint32_t i = 0; i < ring->services; i++)
		(*place)->lost[i] = source_slots_lost(ring->loader, i);
	*ret_samples = *place;
	return 0;
}

void source_ring_end(struct source_ring *ring, struct source_samples *samples)
{
	for (size_t i = 0; samples && i < PERIODS; i++) {
		if (ring->periods[i] != samples)
			continue;
		samples_free(samples, ring->services);
		ring->periods[i] = NULL;
		count_kept(ring);
		tell_kernel(ring);
		return;
	}
}

void source_ring_forget(struct source_ring *ring, uint32_t index)
{
	for (size_t i = 0; ring && i < PERIODS; i++) {
		struct source_samples *samples = ring->periods[i];

		if (!samples)
			continue;
		run_samples_free(TAKE_PTR(samples->by_service[index]));
		run_samples_free(TAKE_PTR(samples->calls[index]));
		samples->lost[index] = 0;
	}
	if (!ring)
		return;
	free(TAKE_PTR(ring->newest[index]));
	count_kept(ring);
}

static int copy_samples(const struct run_samples *from, struct run_samples *to)
{
	if (!from)
		return 0;
	to->inconsistent = from->inconsistent;
	if (!from->count)
		return 0;
	to->samples = calloc(from->count, sizeof(*to->samples));
	if (!to->samples)
		return -ENOMEM;
	memcpy(to->samples, from->samples, from->count * sizeof(*to->samples));
	to->count = to->capacity = from->count;
	return 0;
}

/* @from is NULL if there were none. Set *ret_samples to a copy. */
static int read_samples(const struct source_ring *ring, const struct source_samples *samples,
			uint32_t index, const struct run_samples *from,
			struct run_samples **ret_samples)
{
	struct run_samples *copy = *ret_samples = run_samples_new();

	if (!copy)
		return -ENOMEM;
	copy->threshold = samples->threshold;
	copy->lost = source_slots_lost(ring->loader, index) - samples->lost[index];
	return copy_samples(from, copy);
}

int source_ring_read(const struct source_ring *ring, const struct source_samples *samples,
		     uint32_t index, struct run_service *service)
{
	int r;

	if (!samples)
		return 0;
	r = read_samples(ring, samples, index, samples->by_service[index], &service->samples);
	if (!r && loader_config(ring->loader)->calls)
		r = read_samples(ring, samples, index, samples->calls[index],
				 &service->call_samples);
	return r;
}

void source_ring_read_newest(const struct source_ring *ring, uint32_t index,
			     struct run_service *service)
{
	uint64_t wall_ns; /* when the monotonic clock was 0 */

	if (!ring || !ring->newest[index])
		return;
	wall_ns = clock_wall_ahead_ns();
	memcpy(service->newest, ring->newest[index], sizeof(service->newest));
	for (size_t i = 0; i < RUN_NEWEST; i++)
		if (service->newest[i].ended_ns)
			service->newest[i].ended_ns += wall_ns;
}

/*
 * Open an edge-triggered descriptor, which waits for the kernel side's wake-ups. libbpf's own is level-triggered: one
 * event in the ring makes it readable.
 */
static int open_epoll(struct source_ring *ring)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};

	ring->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ring->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(ring->epoll_fd, EPOLL_CTL_ADD, loader_ring_fd(ring->loader), &event) < 0)
		return -errno;
	return 0;
}

int source_ring_new(struct loader *loader, uint32_t limit, uint32_t most,
		    struct source_ring **ret_ring)
{
	CLEANUP(cleanup_source_ring_free) struct source_ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->loader = loader;
	ring->limit = limit;
	ring->most = most;
	ring->services = loader_config(loader)->max_services;
	ring->newest = calloc(ring->services, sizeof(struct run_newest *));
	if (!ring->newest)
		return -ENOMEM;
	r = open_epoll(ring);
	if (r < 0)
		return r;
	ring->buffer = ring_buffer__new(loader_ring_fd(loader), on_event, ring, NULL);
	if (!ring->buffer)
		return -errno;
	*ret_ring = TAKE_PTR(ring);
	return 0;
}

void source_ring_free(struct source_ring *ring)
{
	if (!ring)
		return;
	for (size_t i = 0; i < PERIODS; i++)
		samples_free(ring->periods[i], ring->services);
	for (uint32_t i = 0; ring->newest && i < ring->services; i++)
		free(ring->newest[i]);
	free(ring->newest);
	ring_buffer__free(ring->buffer);
	cleanup_close(&ring->epoll_fd);
	free(ring);
}

int source_ring_fd(const struct source_ring *ring)
{
	return ring ? ring->epoll_fd : -1;
}
