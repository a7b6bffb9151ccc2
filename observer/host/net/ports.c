// SPDX-License-Identifier: MIT
/*
 * Counts ports per destination by lossy counting (Manku and Motwani, VLDB 2002), followed by a
 * second pass that is exact for the heaviest; see ports.h.
 */
#include "ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/address.h"
#include "sojourn/cleanup.h"

#define FIRST_SIZE   1024
#define LARGEST_SIZE 32768
#define TIME_WAIT_MS 60000U /* TCP_TIMEWAIT_LEN */

_Static_assert(PORT_DESTINATIONS == LARGEST_SIZE * 3 / 4, "a quarter stays empty");

/* ---- the range ---- */

int ports_parse(const char *text, uint64_t *bits)
{
	while (*text && *text != '\n') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end != text && *end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == text || last >= PORT_COUNT || (*end && *end != ',' && *end != '\n'))
			return -EINVAL;
		for (unsigned long port = first; port <= last; port++)
			port_set(bits, (uint16_t)port);
		text = *end == ',' ? end + 1 : end;
	}
	return 0;
}

uint32_t ports_reserved(const struct port_rules *rules)
{
	uint32_t count = 0;

	for (uint32_t port = rules->low; port <= rules->high; port++)
		count += port_bit(rules->reserved, (uint16_t)port);
	return count;
}

uint32_t ports_held(const struct port_rules *rules)
{
	uint32_t count = 0;

	for (uint32_t port = rules->low; port <= rules->high; port++)
		count += port_bit(rules->held, (uint16_t)port) &&
			 !port_bit(rules->reserved, (uint16_t)port);
	return count;
}

/* "remaining &= ~1U" in __inet_hash_connect(): the last port of an odd range is never tried. */
uint32_t ports_capacity(const struct port_rules *rules)
{
	uint32_t size = (uint32_t)rules->high - rules->low + 1, count = 0;

	if (rules->high < rules->low)
		return 0;
	if (size > 1)
		size &= ~1U;
	for (uint32_t port = rules->low; port < rules->low + size; port++)
		count += !port_bit(rules->held, (uint16_t)port) &&
			 !port_bit(rules->reserved, (uint16_t)port);
	return count;
}

/* ---- TIME_WAIT ---- */

bool ports_reuses(const struct port_rules *rules, const struct port_key *key)
{
	if (!rules->timestamps || !rules->reuse)
		return false;
	return rules->reuse == 1 || address_is_loopback(key->family, key->destination.bytes) ||
	       address_is_loopback(key->family, key->source.bytes);
}

bool ports_reusable(const struct port_rules *rules, const struct resource_socket *s)
{
	struct port_key key = {
		.source = s->source, .destination = s->destination, .family = s->family};

	if (s->state != SOCKET_TIME_WAIT || !ports_reuses(rules, &key))
		return false;
	return s->expires_ms + rules->reuse_delay_ms <= TIME_WAIT_MS;
}

/* ---- the table ---- */

static uint32_t total(const struct port_use *use)
{
	return ports_used(use) + use->reusable;
}

static uint64_t hash(const struct port_key *key)
{
	uint64_t words[sizeof(*key) / 8], h = 0;

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
	return h;
}

static struct port_use *slot_of(const struct port_table *table, const struct port_key *key)
{
	size_t i = (size_t)hash(key) & (table->size - 1);

	while (table->slots[i].key.family && memcmp(&table->slots[i].key, key, sizeof(*key)))
		i = (i + 1) & (table->size - 1);
	return &table->slots[i];
}

/* Move destinations with more than @floor sockets to a table of @size slots. */
static int rebuild(struct port_table *table, size_t size, uint32_t floor)
{
	struct port_table next = *table;

	next.slots = calloc(size, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	next.size = size;
	next.count = 0;
	next.floor = floor;
	for (size_t i = 0; i < table->size; i++) {
		const struct port_use *use = &table->slots[i];

		if (!use->key.family)
			continue;
		if (total(use) + use->error <= floor) {
			next.others += total(use);
			continue;
		}
		*slot_of(&next, &use->key) = *use;
		next.count++;
	}
	free(table->slots);
	*table = next;
	return 0;
}

static int make_room(struct port_table *table)
{
	if (!table->size)
		return rebuild(table, FIRST_SIZE, 0);
	if (table->count < table->size * 3 / 4)
		return 0;
	if (table->size < LARGEST_SIZE)
		return rebuild(table,
			       table->size * 4 > LARGEST_SIZE ? LARGEST_SIZE : table->size * 4, 0);
	while (table->count >= PORT_DESTINATIONS) {
		int r = rebuild(table, table->size, table->floor + 1);

		if (r < 0)
			return r;
	}
	return 0;
}

static struct port_use *find(struct port_table *table, const struct port_key *key)
{
	struct port_use *use;

	if (!table->frozen && make_room(table) < 0)
		return NULL;
	use = slot_of(table, key);
	if (use->key.family)
		return use;
	if (table->frozen)
		return NULL;
	*use = (struct port_use){.key = *key, .error = table->floor};
	table->count++;
	return use;
}

static void count_twin(struct port_use *use, const struct port_rules *rules,
		       const struct resource_socket *s, uint32_t sample_ms)
{
	use->fresh += s->expires_ms + (uint64_t)sample_ms >= TIME_WAIT_MS;
	if (ports_reusable(rules, s))
		use->reusable++;
	else if (s->state == SOCKET_FIN_WAIT2)
		use->fin_wait2++;
	else
		use->time_wait++;
}

void ports_count(struct port_table *table, const struct port_rules *rules,
		 const struct resource_socket *s, uint32_t sample_ms)
{
	struct port_key key = {.source = s->source,
			       .destination = s->destination,
			       .port = s->destination_port,
			       .family = s->family};
	struct port_use *use;

	if (s->source_port < rules->low || s->source_port > rules->high ||
	    port_bit(rules->held, s->source_port))
		return;
	use = find(table, &key);
	if (!use)
		table->others++;
	else if (s->time_wait)
		count_twin(use, rules, s, sample_ms);
	else
		use->live++;
}

static int compare(const void *a, const void *b)
{
	const struct port_use *x = a, *y = b;
	uint32_t left = total(x), right = total(y);

	if (left != right)
		return left < right ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

void ports_sort(struct port_table *table)
{
	if (table->size)
		qsort(table->slots, table->size, sizeof(*table->slots), compare);
}

const struct port_use *ports_match(const struct port_table *table, const struct port_key *key)
{
	for (size_t i = 0; i < table->count; i++) {
		if (!memcmp(&table->slots[i].key, key, sizeof(*key)))
			return &table->slots[i];
	}
	return NULL;
}

bool ports_freeze(struct port_table *table)
{
	size_t count = table->count < PORT_EXACT ? table->count : PORT_EXACT;
	struct port_table next = {.size = FIRST_SIZE, .count = count, .frozen = true};

	if (!table->floor)
		return false;
	next.slots = calloc(next.size, sizeof(*next.slots));
	if (!next.slots)
		return false;
	ports_sort(table);
	for (size_t i = 0; i < count; i++) {
		struct port_use use = {.key = table->slots[i].key};

		*slot_of(&next, &use.key) = use;
	}
	ports_free(table);
	*table = next;
	return true;
}

void ports_free(struct port_table *table)
{
	free(table->slots);
	*table = (struct port_table){};
}
