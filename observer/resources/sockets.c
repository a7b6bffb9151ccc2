// SPDX-License-Identifier: MIT
/* Resources of single sockets: accept and SYN queues, UDP buffers. */

#include "resource.h"
#include "sojourn/address.h"

#define LISTENER "listening socket, inet_diag"
#define WITHOUT	 "listening socket, /proc/net/tcp"

static void name_socket(struct resource *resource, const struct resource_socket *s)
{
	address_format(s->family, s->source.bytes, s->source_port, resource->object,
		       sizeof(resource->object));
	resource->port = s->source_port;
}

/* Return the drops in the sample. All drops of a socket that is newer count. */
static double new_drops(const struct resource_pair *pair, const struct socket_list *before,
			const struct resource_socket *now)
{
	const struct resource_socket *then = netns_find(before, now);

	if (!pair->before.at_ns)
		return 0;
	return now->drops - (then ? then->drops : 0U);
}

static double counted(const struct resource_pair *pair, enum resource_number number)
{
	const struct run_number *then = &pair->before.numbers.of[number];
	const struct run_number *now = &pair->after.numbers.of[number];

	return then->known && now->known ? (double)(now->value - then->value) : 0;
}

/*
 * A listener's own counter of drops has four causes: no room in the accept queue, a refused SYN, a repeated SYN, and a
 * put-off ACK. With TCP_DEFER_ACCEPT there is one for each connection that says nothing yet. The last two causes belong
 * to handshakes that go on, and lose nothing. TcpExt separates all but the third, for the whole namespace: ListenOverflows are
 * the first, the rest of ListenDrops the second, TCPDeferAcceptDrop the fourth. If several listeners dropped, those are blamed
 * whose queue is or was full. Those that put off ACKs are blamed only for what the others cannot have dropped.
 */
struct causes {
	double overflows, syns; /* of the namespace, in the sample */
	bool known;
	unsigned int full, flooded; /* listeners that dropped, and whose queues say why */
	double *dropped;	    /* of each listener, in the sample */
	bool *defers;  /* of each listener: its drops seem to be ACKs; NULL: there are no such */
	double others; /* drops of those that do not */
};

struct drops {
	double all, overflows, syns;
};

static bool was_full(const struct resource_pair *pair, const struct resource_socket *s)
{
	const struct resource_socket *then = netns_find(&pair->before.listeners, s);

	if (pair->after.source == SOCKETS_PROCFS) /* /proc does not show the limit */
		return false;
	return s->receive_queue > s->send_queue || (then && then->receive_queue > then->send_queue);
}

/*
 * Return the limit of half-open connections. Without SYN cookies a quarter of tcp_max_syn_backlog is reserved for
 * known peers.
 */
static double half_open_limit(const struct resource_pair *pair, const struct resource_socket *s,
			      bool *ret_global)
{
	const struct run_number *cookies = &pair->after.numbers.of[NUMBER_SYNCOOKIES];
	const struct run_number *most = &pair->after.numbers.of[NUMBER_SYN_BACKLOG_MAX];
	double global = (double)(most->value - (most->value >> 2));

	*ret_global = cookies->known && !cookies->value && most->known && global < s->send_queue;
	return *ret_global ? global : s->send_queue;
}

static bool is_flooded(const struct resource_pair *pair, size_t index)
{
	const struct resource_socket *s = &pair->after.listeners.sockets[index];
	bool global;

	return pair->after.half_open && pair->after.half_open[index] &&
	       pair->after.half_open[index] * 2.0 >= half_open_limit(pair, s, &global);
}

/* Return which of @dropped comes closest to @deferred, of those that are not yet in @defers; -1: none comes closer than 0. */
static ssize_t closest(const double *dropped, size_t count, const bool *defers, double deferred)
{
	double best = deferred;
	ssize_t found = -1;

	for (size_t i = 0; i < count; i++) {
		double away = fabs(deferred - dropped[i]);

		if (defers[i] || away >= best)
			continue;
		best = away;
		found = (ssize_t)i;
	}
	return found;
}

/*
 * Nothing says which listeners put off ACKs: find some whose drops add up to them. Both counts are read a moment apart, so
 * the sum may differ a little.
 */
static bool *find_deferring(const struct resource_pair *pair, const double *dropped)
{
	const size_t count = pair->after.listeners.count;
	double deferred = counted(pair, NUMBER_DEFERRED);
	bool *defers = deferred > 0 ? calloc(count + 1, sizeof(*defers)) : NULL;

	while (defers) {
		ssize_t i = closest(dropped, count, defers, deferred);

		if (i < 0)
			break;
		defers[i] = true;
		deferred -= dropped[i];
	}
	return defers;
}

/* Without memory @dropped is NULL. */
static struct causes find_causes(const struct resource_pair *pair)
{
	const struct socket_list *now = &pair->after.listeners;
	struct causes causes = {
		.dropped = calloc(now->count + 1, sizeof(*causes.dropped)),
		.overflows = counted(pair, NUMBER_LISTEN_OVERFLOWS),
		.known = pair->before.numbers.of[NUMBER_LISTEN_DROPS].known &&
			 pair->after.numbers.of[NUMBER_LISTEN_DROPS].known,
	};

	for (size_t i = 0; causes.dropped && i < now->count; i++)
		causes.dropped[i] = new_drops(pair, &pair->before.listeners, &now->sockets[i]);
	causes.defers = causes.dropped ? find_deferring(pair, causes.dropped) : NULL;
	causes.syns = fmax(0, counted(pair, NUMBER_LISTEN_DROPS) - causes.overflows);
	for (size_t i = 0; causes.dropped && i < now->count; i++) {
		if (causes.dropped[i] <= 0)
			continue;
		causes.full += was_full(pair, &now->sockets[i]);
		causes.flooded += is_flooded(pair, i);
		if (!causes.defers || !causes.defers[i])
			causes.others += causes.dropped[i];
	}
	return causes;
}

static struct drops drops_of(const struct resource_pair *pair, const struct causes *causes,
			     size_t index)
{
	const struct resource_socket *s = &pair->after.listeners.sockets[index];
	struct drops drops = {.all = causes->dropped[index]};
	double explained = causes->defers && causes->defers[index] ? causes->others : 0;

	if (!causes->known)
		drops.overflows = drops.all;
	else if (was_full(pair, s))
		drops.overflows = fmin(drops.all, causes->overflows);
	else if (!causes->full)
		drops.overflows = fmin(drops.all, fmax(0, causes->overflows - explained));
	explained = fmax(0, explained - causes->overflows);
	if (causes->known && is_flooded(pair, index))
		drops.syns = fmin(drops.all - drops.overflows, causes->syns);
	else if (causes->known && !causes->flooded)
		drops.syns = fmin(drops.all - drops.overflows, fmax(0, causes->syns - explained));
	return drops;
}

/* Report the limit: listen()'s backlog, or somaxconn if that was lower at the call. */
static void say_limit(const struct resource_pair *pair, const struct resource_socket *s,
		      struct resource *resource)
{
	const struct run_number *cap = &pair->after.numbers.of[NUMBER_SOMAXCONN];
	const char *name = "limit";

	if (cap->known && s->send_queue < cap->value) {
		name = "limit, as the program asked of listen()";
		resource->command_idle = true;
	} else if (cap->known && s->send_queue == cap->value) {
		name = "limit, as net.core.somaxconn caps it";
	}
	/* The test is ">": a backlog of N admits N + 1, and listen(fd, 0) one. */
	resource_fact(resource, name, s->send_queue, "connections", LISTENER);
	resource->facts[resource->fact_count - 1].zero_counts = true;
	if (cap->known)
		resource_fact(resource, "net.core.somaxconn", (double)cap->value, "connections",
			      numbers_source(NUMBER_SOMAXCONN));
}

static void add_listener(const struct resource_pair *pair, const struct causes *causes,
			 size_t index, struct resource_list *list)
{
	const struct resource_socket *s = &pair->after.listeners.sockets[index];
	struct resource *resource = resource_add(list, RESOURCE_ACCEPT_QUEUE, &pair->after);
	bool netlink = pair->after.source == SOCKETS_NETLINK;

	if (!resource)
		return;
	name_socket(resource, s);
	resource->used = s->receive_queue;
	resource->capacity = netlink ? s->send_queue : NAN;
	resource->cookie = s->cookie;
	resource->has_user = true;
	resource->user = s->user;
	resource->events = drops_of(pair, causes, index).overflows;
	resource_fact(resource, "waiting for accept()", s->receive_queue, "connections",
		      netlink ? LISTENER : WITHOUT);
	if (netlink) {
		say_limit(pair, s, resource);
		resource_fact(resource, "dropped so far, for any reason", s->drops, "segments",
			      LISTENER);
		resource_fact(resource, "dropped in the sample", resource->events, "connections",
			      LISTENER);
	}
	resource_fact(resource, "overflows of all listeners in the sample", causes->overflows,
		      "connections", numbers_source(NUMBER_LISTEN_OVERFLOWS));
	resource_own(resource, owners_pid(&pair->owners, s->inode));
	resource_name_owners(resource);
}

static void add_half_open(const struct resource_pair *pair, const struct causes *causes,
			  size_t index, struct resource_list *list)
{
	const struct resource_socket *s = &pair->after.listeners.sockets[index];
	double syns = drops_of(pair, causes, index).syns;
	const struct run_number *cookies = &pair->after.numbers.of[NUMBER_SYNCOOKIES];
	uint32_t half_open = pair->after.half_open ? pair->after.half_open[index] : 0;
	struct resource *resource;
	bool global;

	if (!half_open && syns <= 0)
		return;
	resource = resource_add(list, RESOURCE_SYN_QUEUE, &pair->after);
	if (!resource)
		return;
	name_socket(resource, s);
	resource->used = half_open;
	resource->capacity = half_open_limit(pair, s, &global); /* 0 in /proc: not known */
	resource->events = syns;
	resource->has_user = true;
	resource->user = s->user;
	resource->command_idle = cookies->known && cookies->value;
	resource_fact(resource, "half open", resource->used, "requests", "TCP sockets in SYN_RECV");
	resource_fact(resource,
		      global ? "limit, three quarters of tcp_max_syn_backlog"
			     : "limit, the backlog",
		      resource->capacity, "requests",
		      global ? numbers_source(NUMBER_SYN_BACKLOG_MAX) : LISTENER);
	resource_fact(resource, "SYNs dropped in the sample", syns, "requests",
		      "ListenDrops less ListenOverflows in /proc/net/netstat, listening socket");
	resource_fact(resource, "answered by SYN cookies in the sample",
		      counted(pair, NUMBER_SYN_COOKIES), "requests",
		      numbers_source(NUMBER_SYN_COOKIES));
	resource_fact(resource, "found the queue full in the sample",
		      counted(pair, NUMBER_SYN_DROPS), "requests",
		      numbers_source(NUMBER_SYN_DROPS));
	resource_own(resource, owners_pid(&pair->owners, s->inode));
	resource_name_owners(resource);
}

static void add_udp(const struct resource_pair *pair, const struct resource_socket *s,
		    struct resource_list *list)
{
	double dropped = new_drops(pair, &pair->before.udp, s);
	struct resource *resource;

	if (!s->receive_queue && dropped <= 0)
		return;
	resource = resource_add(list, RESOURCE_UDP_BUFFER, &pair->after);
	if (!resource)
		return;
	name_socket(resource, s);
	resource->used = s->receive_queue;
	resource->events = dropped;
	resource_fact(resource, "waiting in the buffer", s->receive_queue, "bytes",
		      "/proc/net/udp");
	resource_fact(resource, "dropped so far", s->drops, "datagrams", "/proc/net/udp");
	resource_fact(resource, "dropped in the sample", dropped, "datagrams", "/proc/net/udp");
	resource_fact(resource, "buffer errors of all sockets in the sample",
		      counted(pair, NUMBER_UDP_BUFFER_ERRORS), "datagrams",
		      numbers_source(NUMBER_UDP_BUFFER_ERRORS));
	resource_own(resource, owners_pid(&pair->owners, s->inode));
	resource_name_owners(resource);
}

void resource_measure_sockets(const struct resource_pair *pair, struct resource_list *list)
{
	const struct resource_netns *netns = &pair->after;
	const struct causes causes = find_causes(pair);

	for (size_t i = 0; causes.dropped && i < netns->listeners.count; i++) {
		add_listener(pair, &causes, i, list);
		add_half_open(pair, &causes, i, list);
	}
	free(causes.dropped);
	free(causes.defers);
	for (size_t i = 0; i < netns->udp.count; i++)
		add_udp(pair, &netns->udp.sockets[i], list);
}
