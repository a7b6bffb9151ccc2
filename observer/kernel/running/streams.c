// SPDX-License-Identifier: MIT
/* Reads streams out of the kernel side's map; see streams.h. */
#include "streams.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wire/stream.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

/* Streams that are read at once; each takes about 100 bytes. */
#define STREAMS_BATCH 4096

static void add_stream(const struct services *services, struct service_open *opens,
		       const struct stream *stream, uint64_t now_ns)
{
	uint32_t index = service_index(stream->service);
	struct service_open *open = &opens[index];
	uint64_t since_ns = stream->start_ns ? stream->start_ns - stream->accept_delay_ns
					     : stream->first_read_ns;
	uint64_t age_ns = now_ns > since_ns ? now_ns - since_ns : 0;
	uint64_t limit_ns = NSEC_PER_MSEC;
	unsigned int age = 0;

	if (services_number(services, index) != stream->service)
		return; /* another service has its slot now */
	while (age < OPEN_AGES - 1 && age_ns >= limit_ns) {
		limit_ns *= 10;
		age++;
	}
	open->read++;
	open->ages[age]++;
	if (age_ns > open->oldest_ns)
		open->oldest_ns = age_ns;
	if (now_ns > stream->last_read_ns + open->waiting_ns)
		open->waiting_ns = now_ns - stream->last_read_ns;
}

int streams_add(const struct services *services, struct service_open *opens)
{
	int fd = bpf_map__fd(services->skel->maps.streams);
	autofree struct stream_entry *values = calloc(STREAMS_BATCH, sizeof(*values));
	autofree uint64_t *keys = calloc(STREAMS_BATCH, sizeof(*keys));
	uint64_t now_ns = clock_now_ns();
	uint32_t place, count;
	bool first = true;
	int r = 0;

	if (!values || !keys)
		return -ENOMEM;
	while (!r) {
		count = STREAMS_BATCH;
		r = bpf_map_lookup_batch(fd, first ? NULL : &place, &place, keys, values, &count,
					 NULL);
		for (uint32_t i = 0; (!r || r == -ENOENT) && i < count; i++) {
			if (!(values[i].stream.flags & STREAM_RESPONDING))
				add_stream(services, opens, &values[i].stream, now_ns);
		}
		first = false;
	}
	return r == -ENOENT ? 0 : r;
}
