// SPDX-License-Identifier: MIT
/* Collects the inodes of suspicious sockets and asks /proc once for all; see owners.h. */
#include "owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sojourn/clock.h"

#define WANTED	 (OWNED_SOCKETS + NETNS_LISTENERS + NETNS_CLOSE_WAIT + NETNS_UDP + NETNS_HELD)
#define TRIES	 5
#define RETRY_NS (20 * NSEC_PER_MSEC)

struct search {
	const struct resource_netns *before, *after;
	bool all;
	uint16_t port;			 /* whose listeners' owners are wanted, too */
	bool chosen[OWNED_DESTINATIONS]; /* of the heaviest destinations */
	size_t chosen_count;
	struct owner_table *table;
};

uint32_t owners_pid(const struct owner_table *table, uint64_t inode)
{
	return process_owner(table->owners, table->count, inode);
}

static void want(struct search *search, uint64_t inode)
{
	struct owner_table *table = search->table;

	if (inode && table->count < WANTED)
		table->owners[table->count++] = (struct socket_owner){.inode = inode};
}

static bool lost_more(const struct socket_list *before, const struct resource_socket *now)
{
	const struct resource_socket *then = netns_find(before, now);

	return then && now->drops > then->drops;
}

/* Find ports whose listener owns sockets without a process: orphans, and unaccepted ones. */
static void find_wards(const struct resource_netns *now, uint64_t *ports)
{
	for (size_t i = 0; i < now->held.count; i++) {
		if (!now->held.sockets[i].inode)
			port_set(ports, now->held.sockets[i].source_port);
	}
	for (size_t i = 0; i < now->close_wait.count; i++) {
		if (!now->close_wait.sockets[i].inode)
			port_set(ports, now->close_wait.sockets[i].source_port);
	}
}

static void want_listed(struct search *search)
{
	const struct resource_netns *now = search->after;
	uint64_t wards[PORT_COUNT / 64] = {};

	find_wards(now, wards);
	for (size_t i = 0; i < now->listeners.count; i++) {
		const struct resource_socket *s = &now->listeners.sockets[i];
		bool filling = s->receive_queue && s->receive_queue * 2 >= s->send_queue;
		bool half_open = now->half_open && now->half_open[i] * 4 > s->send_queue;

		if (search->all || s->source_port == search->port || filling || half_open ||
		    port_bit(wards, s->source_port) || lost_more(&search->before->listeners, s))
			want(search, s->inode);
	}
	for (size_t i = 0; i < now->close_wait.count; i++) {
		if (search->all || now->close_wait.sockets[i].silent_ms >= CLOSE_WAIT_MS ||
		    now->source == SOCKETS_PROCFS)
			want(search, now->close_wait.sockets[i].inode);
	}
	for (size_t i = 0; i < now->held.count; i++)
		want(search, now->held.sockets[i].inode);
	for (size_t i = 0; i < now->udp.count; i++) {
		if (lost_more(&search->before->udp, &now->udp.sockets[i]))
			want(search, now->udp.sockets[i].inode);
	}
}

static uint32_t total(const struct port_use *use)
{
	return ports_used(use) + use->reusable;
}

/* Return whether the growth of the sample, continued for the 60 s of a TIME_WAIT, would take half of the range. */
static bool grows_fast(const struct search *search, const struct port_use *use, double capacity)
{
	const struct resource_netns *before = search->before, *after = search->after;
	double seconds = (double)(after->at_ns - before->at_ns) / NSEC_PER_SEC;
	const struct port_use *then = ports_match(&before->ports, &use->key);
	double grown = (double)total(use) - (then ? total(then) : 0);

	return before->at_ns && grown > 1 && grown / seconds * 60 > capacity / 2;
}

static void choose_destinations(struct search *search)
{
	const struct resource_netns *now = search->after;
	double capacity = ports_capacity(&now->rules);

	for (size_t i = 0; i < now->ports.count && i < OWNED_DESTINATIONS; i++) {
		const struct port_use *use = &now->ports.slots[i];

		/* TIME_WAIT has no owner: five searches for one would be in vain. */
		search->chosen[i] =
			use->live && (search->all || total(use) >= OWNED_SHARE * capacity ||
				      grows_fast(search, use, capacity));
		search->chosen_count += search->chosen[i];
	}
}

static void visit(void *context, const struct resource_socket *s)
{
	struct search *search = context;
	struct owner_table *table = search->table;
	struct port_key key = {.source = s->source,
			       .destination = s->destination,
			       .port = s->destination_port,
			       .family = s->family};

	if (!s->inode || table->socket_count == OWNED_SOCKETS)
		return;
	for (size_t i = 0; i < OWNED_DESTINATIONS; i++) {
		if (!search->chosen[i] ||
		    memcmp(&search->after->ports.slots[i].key, &key, sizeof(key)) != 0)
			continue;
		table->sockets[table->socket_count++] = (struct owned_socket){i, s->inode};
		want(search, s->inode);
	}
}

/* Return whether every heavy destination that has live sockets got an owner. */
static bool complete(const struct search *search)
{
	bool found[OWNED_DESTINATIONS] = {};
	const struct owner_table *table = search->table;

	for (size_t i = 0; i < table->socket_count; i++) {
		const struct owned_socket *s = &table->sockets[i];

		if (owners_pid(table, s->inode))
			found[s->destination] = true;
	}
	for (size_t i = 0; i < OWNED_DESTINATIONS; i++) {
		if (search->chosen[i] && !found[i])
			return false;
	}
	return true;
}

static int try(struct search *search)
{
	struct owner_table *table = search->table;
	int r = 0;

	table->count = 0;
	table->socket_count = 0;
	if (search->chosen_count)
		r = sockets_tcp(search->after->source, SOCKET_OWNED, SOCKET_PLAIN, visit, search);
	want_listed(search);
	if (!r && table->count) {
		process_owners(table->owners, table->count);
		table->walks++;
	}
	return r;
}

int owners_find(const struct resource_netns *before, const struct resource_netns *after, bool all,
		uint16_t port, struct owner_table *ret_table)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	struct owner_table table = {};
	struct search search = {
		.before = before, .after = after, .all = all, .port = port, .table = &table};
	int r;

	/* Untouched pages of these cost nothing. */
	table.owners = calloc(WANTED, sizeof(*table.owners));
	table.sockets = calloc(OWNED_SOCKETS, sizeof(*table.sockets));
	r = table.owners && table.sockets ? 0 : -ENOMEM;
	choose_destinations(&search);
	for (int i = 0; !r && i < TRIES; i++) {
		r = try(&search);
		if (complete(&search))
			break;
		if (!r && i < TRIES - 1)
			nanosleep(&pause, NULL);
	}
	if (r < 0) {
		owners_free(&table);
		return r;
	}
	*ret_table = table;
	return 0;
}

void owners_free(struct owner_table *table)
{
	free(table->owners);
	free(table->sockets);
	*table = (struct owner_table){};
}
