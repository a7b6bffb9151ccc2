// SPDX-License-Identifier: MIT
/* Choosing services whose slots others need, and summing them up; see reclaim.h. */
#include "reclaim.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sources/source.h"

/* Time after which an unused listener may lose its slot. */
#define QUIET_NS (60 * NSEC_PER_SEC)
/* Maximum of slots kept free for services that come within a second. */
#define MOST_FREE 32

/* Services in the order in which they lose their slots. */
enum rank {
	RANK_UNUSED,
	RANK_ENDED,
	RANK_IDLE, /* it listens and was never used; it gets a slot again with its first connection */
	RANK_QUIET, /* it listens and was used, but not for QUIET_NS; its counts go into the sum */
	RANK_STAYS,
};

struct leaving {
	uint32_t index;
	enum rank rank;
	uint64_t counted;
};

struct of_slot {
	uint32_t number; /* of its service, by the last visit; 0: none */
	uint64_t turn;
	bool known;    /* the visit before saw this number, too */
	bool numbered; /* it has its turn */
};

struct reclaim {
	struct loader *loader;
	uint32_t size;
	struct of_slot *slots;
	uint64_t reclaimed; /* services so far */
	struct run_reclaimed sum;
	/* Of the call under way: */
	void (*forget)(void *context, uint32_t index);
	void *context;
};

int reclaim_new(struct loader *loader, struct reclaim **ret_reclaim)
{
	struct reclaim *reclaim = calloc(1, sizeof(*reclaim));

	if (!reclaim)
		return -ENOMEM;
	reclaim->loader = loader;
	reclaim->size = loader_config(loader)->max_services;
	reclaim->slots = calloc(reclaim->size, sizeof(*reclaim->slots));
	if (!reclaim->slots) {
		free(reclaim);
		return -ENOMEM;
	}
	*ret_reclaim = reclaim;
	return 0;
}

void reclaim_free(struct reclaim *reclaim)
{
	if (!reclaim)
		return;
	free(reclaim->slots);
	free(reclaim);
}

static bool is_open(const struct reclaim *reclaim, uint32_t index)
{
	const struct service_gauges *gauges = loader_gauges(reclaim->loader, index);

	return gauges && (gauges->listeners || gauges->connections);
}

/*
 * Return the turn of a new service, 0 for the first at its port. It is greater than those of earlier ones, which still
 * have slots or were reclaimed.
 */
static uint64_t next_turn(const struct reclaim *reclaim, const struct service_key *keys,
			  size_t count, uint32_t index)
{
	uint64_t turn = reclaim->reclaimed;

	for (uint32_t i = 0; i < count; i++)
		turn += reclaim->slots[i].numbered && keys[i].netns == keys[index].netns &&
			keys[i].port == keys[index].port &&
			keys[i].protocol == keys[index].protocol;
	return turn;
}

static void number_new(struct reclaim *reclaim, const struct service_key *keys, size_t count,
		       bool open)
{
	for (uint32_t i = 0; i < count; i++) {
		struct of_slot *slot = &reclaim->slots[i];

		if (!slot->number || slot->numbered || is_open(reclaim, i) != open)
			continue;
		slot->turn = next_turn(reclaim, keys, count, i);
		slot->numbered = true;
	}
}

/* Of new services at one port, those that have ended already came first. */
void reclaim_update(struct reclaim *reclaim, const struct service_key *keys, size_t count)
{
	for (uint32_t i = 0; i < reclaim->size; i++) {
		struct of_slot *slot = &reclaim->slots[i];
		bool used = i < count && keys[i].port;
		uint32_t number = used ? loader_service_number(reclaim->loader, i) : 0;

		slot->known = used && slot->number == number;
		slot->numbered = slot->known;
		slot->number = number;
	}
	number_new(reclaim, keys, count, false);
	number_new(reclaim, keys, count, true);
}

uint64_t reclaim_turn(const struct reclaim *reclaim, uint32_t index)
{
	return reclaim->slots[index].turn;
}

const struct run_reclaimed *reclaim_sum(const struct reclaim *reclaim)
{
	return &reclaim->sum;
}

/*
 * Return the service's rank by the last visit. It stays if the visit before did not see it yet, or if its namespace
 * exists and was not visited. Such a service may only look unused.
 */
static enum rank rank_of(const struct reclaim *reclaim, const struct service_key *key,
			 uint32_t index, uint64_t *ret_counted)
{
	const struct loader *loader = reclaim->loader;
	const struct service_gauges *gauges = loader_gauges(loader, index);
	struct run_reclaimed remains;

	if (!key->port || key->protocol != IPPROTO_TCP || !reclaim->slots[index].known ||
	    (!loader_visited(loader, key->netns) && !loader_gone(loader, key->netns)) || !gauges ||
	    gauges->connections || loader_open_requests(loader, index)->closing)
		return RANK_STAYS;
	if (!source_slots_remains(loader, index, &remains))
		return gauges->listeners ? RANK_IDLE : RANK_UNUSED;
	*ret_counted = remains.accepted + remains.exchanges;
	if (!gauges->listeners)
		return RANK_ENDED;
	return clock_now_ns() - source_slots_last_message(loader, index) > QUIET_NS ? RANK_QUIET
										    : RANK_STAYS;
}

/*
 * Within a rank the small ones come first: a service of millions of requests says more than a
 * short-lived one.
 */
static int compare(const void *a, const void *b)
{
	const struct leaving *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->counted > y->counted) - (x->counted < y->counted);
}

static size_t choose(const struct reclaim *reclaim, const struct service_key *keys, size_t count,
		     size_t wanted, struct leaving *ret_candidates)
{
	size_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct leaving one = {.index = i};

		one.rank = rank_of(reclaim, &keys[i], i, &one.counted);
		if (one.rank != RANK_STAYS)
			ret_candidates[found++] = one;
	}
	qsort(ret_candidates, found, sizeof(*ret_candidates), compare);
	return found < wanted ? found : wanted;
}

/* Return how many slots should be free but are not. */
static size_t count_wanted(const struct reclaim *reclaim)
{
	uint32_t left = loader_services_left(reclaim->loader);
	uint32_t free = reclaim->size / 4 + 1;

	if (!loader_config(reclaim->loader)->slots_kept)
		return 0;
	free = free < MOST_FREE ? free : MOST_FREE;
	return left < free ? free - left : 0;
}

static void add_last(void *context, uint32_t index)
{
	struct reclaim *reclaim = context;
	struct run_reclaimed remains;

	if (source_slots_remains(reclaim->loader, index, &remains))
		run_reclaimed_add(&reclaim->sum, &remains);
	reclaim->forget(reclaim->context, index);
	reclaim->slots[index] = (struct of_slot){};
	reclaim->reclaimed++;
}

int reclaim_slots(struct reclaim *reclaim, const struct service_key *keys, size_t count,
		  void (*forget)(void *context, uint32_t index), void *context)
{
	size_t wanted = count_wanted(reclaim), chosen;
	autofree struct leaving *candidates = NULL;
	autofree struct service_key *chosen_keys = NULL;
	autofree uint32_t *indices = NULL;

	if (!wanted)
		return 0;
	candidates = calloc(reclaim->size, sizeof(*candidates));
	chosen_keys = calloc(reclaim->size, sizeof(*chosen_keys));
	indices = calloc(reclaim->size, sizeof(*indices));
	if (!candidates || !chosen_keys || !indices)
		return -ENOMEM;
	chosen = choose(reclaim, keys, count, wanted, candidates);
	for (size_t i = 0; i < chosen; i++) {
		indices[i] = candidates[i].index;
		chosen_keys[i] = keys[indices[i]];
	}
	reclaim->forget = forget;
	reclaim->context = context;
	/* Call it also for no service: it frees numbers that nothing uses. */
	return loader_reclaim(reclaim->loader, chosen_keys, indices, chosen, add_last, reclaim);
}
