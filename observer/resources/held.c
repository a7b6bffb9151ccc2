// SPDX-License-Identifier: MIT
/*
 * Connections that stand still. A process does not read its data, the peers of closed connections do not take theirs,
 * or clients left before accept(). They are counted by listener, or by destination if the host is the client.
 */
#include <stdio.h>
#include <string.h>

#include "resource.h"
#include "sojourn/address.h"
#include "sojourn/array.h"

#define INFO "inet_diag, tcp_info"

struct standing {
	enum resource_kind kind;
	uint32_t least_ms; /* a shorter standstill is normal */
	bool (*is)(const struct resource_socket *s);
	/* Return for how long nothing has moved at least, by the second reading alone. */
	uint32_t (*still_ms)(const struct resource_socket *s);
	/* Return a number that changes with every movement: if it is the same in both readings, nothing moved. */
	uint64_t (*moved)(const struct resource_socket *s);
	const char *bytes; /* name of the fact; NULL: none */
};

/* Sums of one resource, while its sockets are counted. */
struct tally {
	double bytes, orphans, unaccepted, unsent, probing, resending;
	uint32_t shortest_ms, longest_ms;
};

/* The resources of one kind, and a tally of each. */
struct ends {
	struct resource_list *list;
	size_t first; /* the first of them in the list */
	struct tally *tallies;
	size_t count;
};

static bool is_unread(const struct resource_socket *s)
{
	return s->receive_queue >= NETNS_UNREAD_LEAST;
}

static uint32_t unread_ms(const struct resource_socket *s)
{
	return s->received_ms;
}

static uint64_t bytes_read(const struct resource_socket *s)
{
	return s->bytes_received - s->receive_queue;
}

static bool is_closing(const struct resource_socket *s)
{
	return s->send_queue >= NETNS_UNSENT_LEAST &&
	       (s->state == SOCKET_FIN_WAIT1 || s->state == SOCKET_LAST_ACK ||
		s->state == SOCKET_CLOSING);
}

/*
 * A peer without room acknowledges probes, but gets no data. A peer that vanished acknowledges nothing, and data is
 * sent again. Data on its way may be acknowledged bit by bit.
 */
static uint32_t untaken_ms(const struct resource_socket *s)
{
	return s->unsent && s->sent_ms > s->silent_ms ? s->sent_ms : s->silent_ms;
}

/* After a close no data are added: the rest shrinks as the peer takes it. */
static uint64_t left_to_send(const struct resource_socket *s)
{
	return s->send_queue;
}

/* Return whether a client left before accept(): sockets closed here are in another state. */
static bool is_dead(const struct resource_socket *s)
{
	return !s->inode && s->state == SOCKET_CLOSE_WAIT;
}

static uint32_t dead_ms(const struct resource_socket *s)
{
	return s->silent_ms;
}

static uint64_t nothing(const struct resource_socket *s)
{
	(void)s;
	return 0;
}

/*
 * 3 s: a peer that lost a segment has been sent it four times by then (0.2, 0.6, 1.4 and 3 s). A handler that looks
 * up a user before it reads a body has done so. A thread that serves one request after the other returns to accept()
 * sooner, so 2 s are enough there.
 */
static const struct standing kinds[] = {
	{RESOURCE_UNREAD_DATA, 3000, is_unread, unread_ms, bytes_read, "unread"},
	{RESOURCE_CLOSING_DATA, 3000, is_closing, untaken_ms, left_to_send,
	 "not sent or not acknowledged"},
	{RESOURCE_DEAD_QUEUED, 2000, is_dead, dead_ms, nothing, NULL},
};

/* Return for how long the socket has stood still; 0: not at all, or not long enough. */
static uint32_t stands_ms(const struct standing *kind, const struct resource_pair *pair,
			  const struct resource_socket *s, const struct resource_socket *then)
{
	uint32_t ms = kind->still_ms(s);

	if (!kind->is(s) || (then && kind->moved(then) != kind->moved(s)))
		return 0;
	/*
	 * A client that trickles bytes into an unread socket would otherwise restart the time with
	 * each of them.
	 */
	if (then && kind->is(then) && kind->kind != RESOURCE_DEAD_QUEUED)
		ms = (uint32_t)fmax(ms, kind->still_ms(then) + pair->seconds * 1000);
	return ms >= kind->least_ms ? ms : 0;
}

/* ---- by listener or destination ---- */

/* Name the resource after the end that its connections have in common. */
static void name_end(const struct resource_pair *pair, const struct resource_socket *s,
		     struct resource *resource)
{
	const struct resource_socket *listener = netns_listener(&pair->after, s);
	const struct resource_socket *end = listener ? listener : s;
	char address[64];

	if (listener || s->source_port < pair->after.rules.low ||
	    s->source_port > pair->after.rules.high) {
		address_format(end->family, end->source.bytes, end->source_port, resource->object,
			       sizeof(resource->object));
		resource->port = end->source_port;
		return;
	}
	address_format(s->family, s->destination.bytes, s->destination_port, address,
		       sizeof(address));
	snprintf(resource->object, sizeof(resource->object), "connections to %s", address);
	resource->other_port = s->destination_port;
}

/* Find the index of the socket's resource in @ends, adding one if needed. 0 or -ENOMEM. */
static int find_end(const struct standing *kind, const struct resource_pair *pair,
		    const struct resource_socket *s, struct ends *ends, size_t *ret_index)
{
	struct resource named = {}, *resource;
	size_t i = 0;

	name_end(pair, s, &named);
	while (i < ends->count &&
	       strcmp(ends->list->entries[ends->first + i].object, named.object) != 0)
		i++;
	*ret_index = i;
	if (i < ends->count)
		return 0;
	if (ARRAY_GROW(ends->tallies, ends->count) < 0)
		return -ENOMEM;
	resource = resource_add(ends->list, kind->kind, &pair->after);
	if (!resource)
		return -ENOMEM;
	memcpy(resource->object, named.object, sizeof(named.object));
	resource->port = named.port;
	resource->other_port = named.other_port;
	ends->tallies[ends->count++] = (struct tally){};
	return 0;
}

static void note_socket(const struct standing *kind, const struct resource_pair *pair,
			const struct resource_socket *s, uint32_t ms, struct tally *tally,
			struct resource *resource)
{
	bool orphan = kind->kind == RESOURCE_CLOSING_DATA;

	resource->used++;
	resource_own(resource, owners_pid(&pair->owners, s->inode));
	tally->bytes += orphan ? s->send_queue : s->receive_queue;
	tally->orphans += orphan && !s->inode;
	tally->unaccepted += !orphan && !s->inode;
	tally->unsent += s->unsent;
	tally->probing += s->timer == SOCKET_PROBES;
	tally->resending += s->timer == SOCKET_RETRANSMITS;
	if (resource->used == 1 || ms < tally->shortest_ms)
		tally->shortest_ms = ms;
	if (ms > tally->longest_ms)
		tally->longest_ms = ms;
}

/* Sockets without a process belong to the listening process; of several processes all are named. */
static void own_listeners(const struct resource_pair *pair, struct resource *resource)
{
	char address[128];

	if (resource->owner_count)
		return;
	for (size_t i = 0; i < pair->after.listeners.count; i++) {
		const struct resource_socket *l = &pair->after.listeners.sockets[i];

		address_format(l->family, l->source.bytes, l->source_port, address,
			       sizeof(address));
		if (!strcmp(address, resource->object))
			resource_own(resource, owners_pid(&pair->owners, l->inode));
	}
	for (size_t i = 0; i < resource->owner_count; i++)
		resource->owners[i].sockets = 0; /* the listeners' own sockets do not count */
}

static void add_facts(const struct standing *kind, const struct tally *tally,
		      struct resource *resource)
{
	resource_fact(resource, "connections", resource->used, "sockets", "inet_diag");
	if (kind->bytes)
		resource_fact(resource, kind->bytes, tally->bytes, "bytes", "inet_diag");
	resource_fact(resource, "for at least", tally->shortest_ms / 1000.0, "s", INFO);
	resource_fact(resource, "the longest for", tally->longest_ms / 1000.0, "s", INFO);
	if (kind->kind == RESOURCE_UNREAD_DATA)
		resource_fact(resource, "of these not accepted", tally->unaccepted, "sockets",
			      "inet_diag");
	if (kind->kind != RESOURCE_CLOSING_DATA)
		return;
	/* A peer that acknowledges probes restarts the count of retries. */
	resource->command_idle = !tally->resending;
	resource_fact(resource, "of these never sent", tally->unsent, "bytes", INFO);
	resource_fact(resource, "held by no process", tally->orphans, "sockets", "inet_diag");
	resource_fact(resource, "the peer makes no room", tally->probing, "sockets",
		      "inet_diag, timer of window probes");
	resource_fact(resource, "the peer does not acknowledge", tally->resending, "sockets",
		      "inet_diag, timer of retransmissions");
}

static void measure(const struct standing *kind, const struct resource_pair *pair,
		    const struct socket_list *before, const struct socket_list *after,
		    struct resource_list *list)
{
	struct ends ends = {.list = list, .first = list->count};

	for (size_t i = 0; i < after->count; i++) {
		const struct resource_socket *s = &after->sockets[i];
		const struct resource_socket *then =
			pair->before.at_ns ? netns_find(before, s) : NULL;
		uint32_t ms = stands_ms(kind, pair, s, then);
		size_t at;

		if (!ms)
			continue;
		if (find_end(kind, pair, s, &ends, &at) < 0)
			break;
		note_socket(kind, pair, s, ms, &ends.tallies[at], &list->entries[ends.first + at]);
	}
	for (size_t i = 0; i < ends.count; i++) {
		struct resource *resource = &list->entries[ends.first + i];

		own_listeners(pair, resource);
		resource_name_owners(resource);
		add_facts(kind, &ends.tallies[i], resource);
	}
	free(ends.tallies);
}

void resource_measure_held(const struct resource_pair *pair, struct resource_list *list)
{
	if (pair->after.source == SOCKETS_PROCFS)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		bool dead = kinds[i].kind == RESOURCE_DEAD_QUEUED;

		measure(&kinds[i], pair, dead ? &pair->before.close_wait : &pair->before.held,
			dead ? &pair->after.close_wait : &pair->after.held, list);
	}
}
