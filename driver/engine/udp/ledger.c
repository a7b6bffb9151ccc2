// SPDX-License-Identifier: MIT
/* The requests of one socket. Neighbours: payload/match.c (keys), flow.c (sends and receives). */
#include "ledger.h"

#include <errno.h>
#include <stdlib.h>

#define REMEMBERED_MIN 64U

int ledger_open(struct ledger *ledger, uint32_t pending, bool numbered, uint64_t ids)
{
	uint64_t size = REMEMBERED_MIN;

	while (size < 4 * (uint64_t)pending)
		size *= 2;
	if (numbered && ids && size > ids)
		size = ids; /* a power of two itself */
	*ledger = (struct ledger){.mask = (uint32_t)(size - 1), .numbered = numbered};
	ledger->entries = calloc(size, sizeof(*ledger->entries));
	return ledger->entries ? 0 : -ENOMEM;
}

void ledger_close(struct ledger *ledger)
{
	free(ledger->entries);
	*ledger = (struct ledger){0};
}

bool ledger_has_room(const struct ledger *ledger, uint64_t key)
{
	return !ledger->numbered || ledger->entries[key & ledger->mask].state != LEDGER_PENDING;
}

/* The ledger has more places than requests can be pending. */
static struct ledger_entry *next_place(struct ledger *ledger, uint64_t key)
{
	if (ledger->numbered)
		return &ledger->entries[key & ledger->mask];
	while (ledger->entries[ledger->next & ledger->mask].state == LEDGER_PENDING)
		ledger->next++;
	return &ledger->entries[ledger->next++ & ledger->mask];
}

struct ledger_entry *ledger_add(struct ledger *ledger, uint64_t key, uint32_t slot,
				uint32_t replies)
{
	struct ledger_entry *entry = next_place(ledger, key);

	*entry = (struct ledger_entry){
		.key = key, .slot = slot, .left = replies, .state = LEDGER_PENDING};
	return entry;
}

struct ledger_entry *ledger_find(struct ledger *ledger, uint64_t key)
{
	struct ledger_entry *entry;

	for (uint32_t i = 0; i <= ledger->mask; i++) {
		entry = &ledger->entries[(ledger->seen + i) & ledger->mask];
		if (entry->key != key || entry->state == LEDGER_FREE)
			continue;
		ledger->seen += i;
		return entry;
	}
	return NULL;
}
