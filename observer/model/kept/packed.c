// SPDX-License-Identifier: MIT
/*
 * Numbers as bytes, with seven bits in each, and rows of zeros as one count. Of a service's 41,000 numbers, nearly all
 * are empty buckets of histograms.
 *
 * A packed run is only subtracted from later readings. It keeps no texts, lists and states: of a list only that of routes
 * counts (lib/run/members.c).
 */
#include "packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct packed_run {
	struct run *head;
	size_t count; /* of services */
	uint8_t *bytes;
	size_t length;
};

#define SERVICE_WORDS (sizeof(struct run_service) / sizeof(uint64_t))
#define ROUTE_WORDS   (sizeof(struct run_route) / sizeof(uint64_t))

_Static_assert(sizeof(struct run_service) % sizeof(uint64_t) == 0 &&
		       sizeof(struct run_route) % sizeof(uint64_t) == 0,
	       "services and routes consist of whole numbers");

/* ---- numbers ---- */

static uint8_t *put_number(uint8_t *at, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		*at++ = (uint8_t)(number | 0x80);
	*at++ = (uint8_t)number;
	return at;
}

static const uint8_t *get_number(const uint8_t *at, uint64_t *ret_number)
{
	unsigned int shift = 0;

	*ret_number = 0;
	for (; *at & 0x80; shift += 7)
		*ret_number |= (uint64_t)(*at++ & 0x7f) << shift;
	*ret_number |= (uint64_t)*at++ << shift;
	return at;
}

/* After a zero comes the count of zeros in a row. */
size_t packed_encode(const uint64_t *words, size_t count, uint8_t *ret_bytes)
{
	uint8_t *at = ret_bytes;

	for (size_t i = 0; i < count;) {
		size_t run = i;

		while (run < count && !words[run])
			run++;
		at = put_number(at, words[i]);
		if (run > i)
			at = put_number(at, run - i);
		i = run > i ? run : i + 1;
	}
	return (size_t)(at - ret_bytes);
}

const uint8_t *packed_decode(const uint8_t *bytes, uint64_t *ret_words, size_t count)
{
	uint64_t zeros;

	memset(ret_words, 0, count * sizeof(*ret_words));
	for (size_t i = 0; i < count; i += zeros) {
		bytes = get_number(bytes, &ret_words[i]);
		zeros = 1;
		if (!ret_words[i])
			bytes = get_number(bytes, &zeros);
	}
	return bytes;
}

/* ---- services ---- */

/* Room for the numbers of a service or a route, and for their bytes. */
struct room {
	union {
		struct run_service service;
		struct run_route route;
		uint64_t words[SERVICE_WORDS];
	};
	uint8_t bytes[PACKED_MOST(SERVICE_WORDS)];
};

_Static_assert(sizeof(struct run_route) <= sizeof(struct run_service), "there is room for a route");

static void drop_pointers(struct run_service *service)
{
	service->host = service->calls = service->http2.reason = service->routes.protocol = NULL;
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		service->stages[i].source = service->stages[i].reason = NULL;
	for (unsigned int i = 0; i < RUN_CPU_COUNT; i++)
		service->cpu[i].source = service->cpu[i].reason = NULL;
	service->routes.list = NULL;
	service->proposed = (struct run_proposed){};
	service->listeners = NULL;
	service->processes = NULL;
	service->upstreams = NULL;
	service->listener_count = service->process_count = service->upstream_count = 0;
	service->called = NULL;
	service->called_count = 0;
	service->timed_calls = NULL;
	service->timed_call_count = 0;
	service->samples = service->call_samples = NULL;
	service->series = NULL;
	service->place = (struct run_place){};
}

/* Append the @count numbers in @room. */
static int pack_words(struct packed_run *packed, struct room *room, size_t count)
{
	size_t length = packed_encode(room->words, count, room->bytes);
	uint8_t *bytes = realloc(packed->bytes, packed->length + length);

	if (!bytes)
		return -ENOMEM;
	memcpy(bytes + packed->length, room->bytes, length);
	packed->bytes = bytes;
	packed->length += length;
	return 0;
}

static int pack_service(struct packed_run *packed, struct room *room,
			const struct run_service *service)
{
	int r;

	room->service = *service;
	drop_pointers(&room->service);
	r = pack_words(packed, room, SERVICE_WORDS);
	for (size_t i = 0; !r && i < service->routes.count; i++) {
		room->route = service->routes.list[i];
		room->route.route = NULL;
		r = pack_words(packed, room, ROUTE_WORDS);
	}
	return r;
}

/* Free the services of @run, but not @run itself. */
static int drop_services(struct run *run)
{
	struct run *rest = calloc(1, sizeof(*rest));

	if (!rest)
		return -ENOMEM;
	rest->services = TAKE_PTR(run->services);
	rest->service_count = run->service_count;
	run->service_count = 0;
	run_free(rest);
	return 0;
}

struct packed_run *packed_new(struct run *run)
{
	CLEANUP(cleanup_packed_free) struct packed_run *packed = calloc(1, sizeof(*packed));
	autofree struct room *room = malloc(sizeof(*room));

	if (!packed || !room)
		return NULL;
	packed->count = run->service_count;
	for (size_t i = 0; i < run->service_count; i++)
		if (pack_service(packed, room, &run->services[i]))
			return NULL;
	if (drop_services(run))
		return NULL;
	packed->head = run;
	return TAKE_PTR(packed);
}

void packed_free(struct packed_run *packed)
{
	if (!packed)
		return;
	if (packed->head)
		run_free(packed->head);
	free(packed->bytes);
	free(packed);
}

size_t packed_bytes(const struct packed_run *packed)
{
	return sizeof(*packed) + sizeof(*packed->head) + packed->length;
}

static const uint8_t *read_service(const uint8_t *at, struct run_service *ret_service)
{
	struct run_routes *routes = &ret_service->routes;
	size_t count;

	at = packed_decode(at, (uint64_t *)ret_service, SERVICE_WORDS);
	count = routes->count;
	routes->count = 0;
	routes->list = count ? calloc(count, sizeof(*routes->list)) : NULL;
	if (count && !routes->list)
		return NULL;
	routes->count = count;
	for (size_t i = 0; i < count; i++)
		at = packed_decode(at, (uint64_t *)&routes->list[i], ROUTE_WORDS);
	return at;
}

int packed_open(struct packed_run *packed)
{
	const uint8_t *at = packed->bytes;
	struct run *run = packed->head;

	if (run_make_services(run, packed->count))
		return -ENOMEM;
	for (size_t i = 0; at && i < packed->count; i++)
		at = read_service(at, &run->services[i]);
	if (at || !packed->count)
		return 0;
	packed_close(packed);
	return -ENOMEM;
}

void packed_close(struct packed_run *packed)
{
	(void)drop_services(packed->head);
}
