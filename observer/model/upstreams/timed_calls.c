// SPDX-License-Identifier: MIT
/* Calls to upstreams in a period: the difference of two readings of the kernel's counts; see timed_calls.h. */
#include "timed_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/kept/packed.h"
#include "sources/source.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/units.h"
#include "wire/call.h"

#define ROW_WORDS (sizeof(struct call_row) / sizeof(uint64_t))

/* The counts of a place, nearly all of which are empty buckets. */
struct kept {
	struct call_place place;
	uint8_t *bytes;
};

struct timed_calls {
	struct kept *list;
	size_t count;
};

/* ---- a period's begin ---- */

static int keep(void *context, const struct call_place *place, const struct call_row *row)
{
	autofree uint8_t *room = malloc(PACKED_MOST(ROW_WORDS));
	struct timed_calls *calls = context;
	struct kept kept = {.place = *place};
	size_t length;

	if (!room || ARRAY_GROW(calls->list, calls->count))
		return -ENOMEM;
	length = packed_encode((const uint64_t *)row, ROW_WORDS, room);
	kept.bytes = malloc(length);
	if (!kept.bytes)
		return -ENOMEM;
	memcpy(kept.bytes, room, length);
	calls->list[calls->count++] = kept;
	return 0;
}

int timed_calls_new(const struct loader *loader, struct timed_calls **ret_calls)
{
	struct timed_calls *calls = calloc(1, sizeof(*calls));
	int r = calls ? loader_timed_calls(loader, keep, calls) : -ENOMEM;

	if (r < 0)
		timed_calls_free(calls);
	else
		*ret_calls = calls;
	return r;
}

void timed_calls_free(struct timed_calls *calls)
{
	if (!calls)
		return;
	for (size_t i = 0; i < calls->count; i++)
		free(calls->list[i].bytes);
	free(calls->list);
	free(calls);
}

/* ---- its end ---- */

/* A service of the document, by the number that the kernel side has given it. */
struct numbered {
	uint32_t number;
	struct run_service *service;
};

struct reading {
	const struct timed_calls *before;
	struct numbered *services;
	size_t count;
	struct owner_key *owners;
	size_t owner_count;
	bool short_of_memory;
};

static struct run_service *service_of(const struct reading *reading, uint32_t number)
{
	for (size_t i = 0; i < reading->count; i++)
		if (reading->services[i].number == number)
			return reading->services[i].service;
	return NULL;
}

/* Set @ret_row to the counts of @place when the period began. */
static void counts_before(const struct timed_calls *before, const struct call_place *place,
			  struct call_row *ret_row)
{
	memset(ret_row, 0, sizeof(*ret_row));
	for (size_t i = 0; before && i < before->count; i++)
		if (!memcmp(&before->list[i].place, place, sizeof(*place)))
			(void)packed_decode(before->list[i].bytes, (uint64_t *)ret_row, ROW_WORDS);
}

static void subtract(const struct stage_histogram *now, const struct stage_histogram *earlier,
		     struct histogram *ret_histogram)
{
	autofree struct histogram *before = calloc(1, sizeof(*before));

	source_histogram_read(now, ret_histogram);
	if (!before)
		return;
	source_histogram_read(earlier, before);
	histogram_subtract(ret_histogram, before);
}

_Static_assert(CALLS_UNSEEN - CALLS_HTTP2 == (int)RUN_UNCUT_UNSEEN &&
		       CALL_COUNTS - CALLS_HTTP2 == (int)RUN_UNCUT_COUNT,
	       "the kernel's reasons are the document's");

static void fill_counts(const struct call_row *now, const struct call_row *before,
			struct run_timed_call *ret_call)
{
	const struct {
		uint64_t *into;
		enum call_count count;
	} rows[] = {
		{&ret_call->older, CALLS_OLDER},
		{&ret_call->connects, CALLS_CONNECTS},
		{&ret_call->connect_ns, CALLS_CONNECT_NS},
		{&ret_call->connects_failed, CALLS_CONNECTS_FAILED},
		{&ret_call->failed, CALLS_FAILED},
		{&ret_call->untimed, CALLS_UNTIMED},
		{&ret_call->handshakes, CALLS_HANDSHAKES},
		{&ret_call->trailing, CALLS_TRAILING},
		{&ret_call->carried, CALLS_CARRIED},
	};
	uint64_t ended = now->counts[CALLS_ANSWERED] + now->counts[CALLS_FAILED] +
			 now->counts[CALLS_GIVEN_UP];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		*rows[i].into = now->counts[rows[i].count] - before->counts[rows[i].count];
	for (enum run_uncut why = 0; why < RUN_UNCUT_COUNT; why++)
		ret_call->uncut[why] = now->counts[CALLS_HTTP2 + why];
	/* The programs count on while the row is read. */
	if (now->counts[CALLS_BEGUN] > ended)
		ret_call->open = now->counts[CALLS_BEGUN] - ended;
	subtract(&now->wait, &before->wait, &ret_call->wait);
	subtract(&now->whole, &before->whole, &ret_call->whole);
	ret_call->calls = ret_call->wait.count;
}

static bool has_pid(const struct reading *reading, uint32_t number, uint32_t pid)
{
	for (size_t i = 0; i < reading->owner_count; i++)
		if (reading->owners[i].service == number && reading->owners[i].pid == pid)
			return true;
	return false;
}

/* If the processes serve another service, too, which of both they call for is not known. */
static struct run_number served_too(const struct reading *reading, uint32_t number)
{
	for (size_t i = 0; i < reading->owner_count; i++) {
		const struct owner_key *owner = &reading->owners[i];
		const struct run_service *other =
			owner->service == number ? NULL : service_of(reading, owner->service);

		if (other && other->exchanges && has_pid(reading, number, owner->pid))
			return (struct run_number){true, other->port};
	}
	return (struct run_number){};
}

static bool is_used(const struct run_timed_call *call)
{
	return call->connects || call->connects_failed || call->older || call->calls ||
	       call->failed || call->open || call->untimed || call->handshakes ||
	       run_call_uncut(call);
}

static int add_row(void *context, const struct call_place *place, const struct call_row *now)
{
	struct reading *reading = context;
	struct run_service *service = service_of(reading, place->service);
	autofree struct call_row *before = malloc(sizeof(*before));
	struct run_timed_call *call;

	if (!service)
		return 0; /* another service has its slots now */
	call = before ? ARRAY_APPEND(service->timed_calls, service->timed_call_count) : NULL;
	if (!call)
		return -ENOMEM;
	counts_before(reading->before, place, before);
	fill_counts(now, before, call);
	if (!is_used(call)) {
		service->timed_call_count--;
		return 0;
	}
	units_format_endpoint(place->server, place->port, call->towards, sizeof(call->towards));
	call->serves_too = served_too(reading, place->service);
	return 0;
}

static void add_owner(void *context, const struct owner_key *owner)
{
	struct reading *reading = context;

	if (ARRAY_GROW(reading->owners, reading->owner_count))
		reading->short_of_memory = true;
	else
		reading->owners[reading->owner_count++] = *owner;
}

static int number_services(struct reading *reading, const struct loader *loader,
			   const struct service_key *keys, size_t key_count, struct run *run)
{
	reading->services = calloc(run->service_count + 1, sizeof(*reading->services));
	if (!reading->services)
		return -ENOMEM;
	for (uint32_t i = 0; i < key_count && reading->count < run->service_count; i++)
		if (keys[i].port) {
			reading->services[reading->count] = (struct numbered){
				loader_service_number(loader, i), &run->services[reading->count]};
			reading->count++;
		}
	loader_owners(loader, add_owner, reading);
	return reading->short_of_memory ? -ENOMEM : 0;
}

/* Those that take most time come first. */
static int compare_calls(const void *a, const void *b)
{
	const struct run_timed_call *x = a, *y = b;

	if (x->wait.sum != y->wait.sum)
		return x->wait.sum < y->wait.sum ? 1 : -1;
	return strcmp(x->towards, y->towards);
}

int timed_calls_read(const struct timed_calls *before, const struct loader *loader,
		     const struct service_key *keys, size_t key_count, struct run *run)
{
	struct reading reading = {.before = before};
	int r;

	if (!loader_config(loader)->calls)
		return 0;
	r = number_services(&reading, loader, keys, key_count, run);
	if (!r)
		r = loader_timed_calls(loader, add_row, &reading);
	for (size_t i = 0; i < run->service_count; i++)
		if (run->services[i].timed_call_count)
			qsort(run->services[i].timed_calls, run->services[i].timed_call_count,
			      sizeof(*run->services[i].timed_calls), compare_calls);
	free(reading.services);
	free(reading.owners);
	return r;
}
