// SPDX-License-Identifier: MIT
/* Reads one network namespace in the fewest passes; see netns.h. */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define OWN "/proc/self/ns/net"

struct pass {
	struct resource_netns *netns;
	uint32_t sample_ms;
	bool again; /* this is the second pass: only ports */
};

static void append(struct socket_list *list, const struct resource_socket *s)
{
	if (list->count == list->limit || ARRAY_GROW(list->sockets, list->count) < 0)
		list->left_out++;
	else
		list->sockets[list->count++] = *s;
}

static void visit_bound(void *context, const struct resource_socket *s)
{
	struct resource_netns *netns = context;

	if (!s->source_port)
		return;
	port_set(netns->rules.held, s->source_port);
	if (s->state == SOCKET_LISTEN)
		append(&netns->listeners, s);
}

/* Prefer a listener on the same address to one on all addresses. */
const struct resource_socket *netns_listener(const struct resource_netns *netns,
					     const struct resource_socket *s)
{
	static const struct socket_address any;
	const struct resource_socket *found = NULL;

	for (size_t i = 0; i < netns->listeners.count; i++) {
		const struct resource_socket *l = &netns->listeners.sockets[i];

		if (l->source_port != s->source_port)
			continue;
		if (!memcmp(&l->source, &s->source, sizeof(any)) && l->family == s->family)
			return l;
		if (!memcmp(&l->source, &any, sizeof(any)))
			found = l;
	}
	return found;
}

static void count_half_open(struct resource_netns *netns, const struct resource_socket *s)
{
	const struct resource_socket *listener = netns_listener(netns, s);

	if (listener && netns->half_open)
		netns->half_open[listener - netns->listeners.sockets]++;
}

static bool closing(const struct resource_socket *s)
{
	return s->state == SOCKET_FIN_WAIT1 || s->state == SOCKET_LAST_ACK ||
	       s->state == SOCKET_CLOSING;
}

static bool holds_much(const struct resource_socket *s)
{
	if (s->time_wait || s->state == SOCKET_SYN_RECV)
		return false;
	return s->receive_queue >= NETNS_UNREAD_LEAST ||
	       (closing(s) && s->send_queue >= NETNS_UNSENT_LEAST);
}

static void visit_tuple(void *context, const struct resource_socket *s)
{
	struct pass *pass = context;
	struct resource_netns *netns = pass->netns;

	ports_count(&netns->ports, &netns->rules, s, pass->sample_ms);
	if (pass->again)
		return;
	netns->sockets++;
	if (s->state == SOCKET_SYN_RECV)
		count_half_open(netns, s);
	else if (s->state == SOCKET_CLOSE_WAIT)
		append(&netns->close_wait, s);
	if (holds_much(s))
		append(&netns->held, s);
}

static void visit_listed(void *context, const struct resource_socket *s)
{
	append(context, s);
}

static int read_tuples(struct resource_netns *netns, uint32_t sample_ms)
{
	struct pass pass = {.netns = netns, .sample_ms = sample_ms};
	int r;

	r = sockets_tcp(netns->source, SOCKET_TUPLES, SOCKET_PLAIN, visit_tuple, &pass);
	netns->passes++;
	if (!r && ports_freeze(&netns->ports)) {
		pass.again = true;
		netns->passes++;
		r = sockets_tcp(netns->source, SOCKET_TUPLES, SOCKET_PLAIN, visit_tuple, &pass);
	}
	if (r < 0)
		return r;
	ports_sort(&netns->ports);
	return 0;
}

/*
 * Bound-only sockets come from the hash of bound ports. Walking it passes every TIME_WAIT too: with 100,000 of them
 * it costs more than all else. So compare the count of all sockets with those in other hashes. If up to a thousandth
 * of the range remains, it is too few to matter.
 */
static bool may_be_bound(const struct resource_netns *netns)
{
	const struct run_number *of = netns->numbers.of;
	uint64_t hashed = of[NUMBER_TCP_HASHED].value + of[NUMBER_TCP6_HASHED].value;
	uint64_t range = (uint64_t)netns->rules.high - netns->rules.low + 1;

	if (!of[NUMBER_TCP_HASHED].known || !of[NUMBER_TCP_ALLOCATED].known)
		return true;
	return of[NUMBER_TCP_ALLOCATED].value > hashed + range / 1000;
}

/* /proc has no cookies: there sockets are known by their inodes. A cookie stays when a socket gets its inode. */
static int compare_cookies(const void *a, const void *b)
{
	const struct resource_socket *x = a, *y = b;

	if (x->cookie || y->cookie)
		return x->cookie < y->cookie ? -1 : x->cookie > y->cookie;
	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* A dump, or a table of /proc, may show a socket twice while others come and go: drop one of them. */
static void sort(struct socket_list *list)
{
	size_t kept = 0;

	if (!list->count)
		return;
	qsort(list->sockets, list->count, sizeof(*list->sockets), compare_cookies);
	for (size_t i = 0; i < list->count; i++) {
		const struct resource_socket *s = &list->sockets[i];

		if (!kept || (!s->cookie && !s->inode) ||
		    compare_cookies(s, &list->sockets[kept - 1]))
			list->sockets[kept++] = *s;
	}
	list->count = kept;
}

const struct resource_socket *netns_find(const struct socket_list *list,
					 const struct resource_socket *s)
{
	if (!list->count || (!s->cookie && !s->inode))
		return NULL;
	return bsearch(s, list->sockets, list->count, sizeof(*s), compare_cookies);
}

/*
 * Read the sockets again with tcp_info, which alone shows how long they have held their data. Drop sockets that are
 * gone or hold little now.
 */
static void read_held(struct socket_list *held)
{
	size_t kept = 0;

	for (size_t i = 0; i < held->count; i++) {
		struct resource_socket *s = &held->sockets[i];

		if (sockets_again(s) || !holds_much(s))
			continue;
		if (kept != i)
			held->sockets[kept] = *s;
		kept++;
	}
	held->count = kept;
	sort(held);
}

static int read_sockets(struct resource_netns *netns, uint32_t sample_ms)
{
	uint32_t bound = may_be_bound(netns) ? SOCKET_BIT(SOCKET_BOUND_INACTIVE) : 0;
	int r = sockets_tcp(netns->source, SOCKET_BIT(SOCKET_LISTEN) | bound, SOCKET_MEMORY,
			    visit_bound, netns);

	sort(&netns->listeners);
	netns->half_open = calloc(netns->listeners.count + 1, sizeof(*netns->half_open));
	if (!r)
		r = read_tuples(netns, sample_ms);
	if (r)
		return r;
	if (netns->source == SOCKETS_PROCFS)
		netns->held.count = 0; /* /proc does not show since when they are held */
	else
		read_held(&netns->held);
	if (!netns->close_wait.count)
		return 0;
	/* Ages come only with tcp_info, which locks each socket: ask for CLOSE_WAIT only. */
	netns->close_wait.count = 0;
	netns->close_wait.left_out = 0;
	r = sockets_tcp(netns->source, SOCKET_BIT(SOCKET_CLOSE_WAIT), SOCKET_INFO, visit_listed,
			&netns->close_wait);
	sort(&netns->close_wait);
	return r;
}

int netns_read(enum socket_source source, uint32_t sample_ms, struct resource_netns *ret_netns)
{
	struct resource_netns netns = {.at_ns = clock_now_ns(),
				       .source = source,
				       .listeners.limit = NETNS_LISTENERS,
				       .udp.limit = NETNS_UDP,
				       .close_wait.limit = NETNS_CLOSE_WAIT,
				       .held.limit = NETNS_HELD};
	struct stat st;
	int r = numbers_rules(&netns.rules);

	if (r < 0)
		return r;
	if (!stat(OWN, &st))
		netns.inode = (uint32_t)st.st_ino;
	numbers_read(&netns.numbers);
	netns.error = read_sockets(&netns, sample_ms);
	(void)sockets_udp(visit_listed, &netns.udp);
	sort(&netns.udp);
	*ret_netns = netns;
	return 0;
}

void netns_free(struct resource_netns *netns)
{
	ports_free(&netns->ports);
	free(netns->listeners.sockets);
	free(netns->half_open);
	free(netns->udp.sockets);
	free(netns->close_wait.sockets);
	free(netns->held.sockets);
	*netns = (struct resource_netns){};
}

size_t netns_bytes(const struct resource_netns *netns)
{
	size_t sockets = netns->listeners.count + netns->udp.count + netns->close_wait.count +
			 netns->held.count;

	return netns->ports.size * sizeof(*netns->ports.slots) +
	       netns->listeners.count * sizeof(*netns->half_open) +
	       sockets * sizeof(struct resource_socket);
}

int netns_open(const char *path, int *ret_fd, uint32_t *ret_inode)
{
	autoclose int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat own = {}, st;

	if (path && (fd < 0 || fstat(fd, &st)))
		return -errno;
	(void)stat(OWN, &own);
	*ret_inode = (uint32_t)(path ? st.st_ino : own.st_ino);
	*ret_fd = path && st.st_ino != own.st_ino ? TAKE_FD(fd) : -1;
	return 0;
}

int netns_enter(int fd)
{
	if (fd < 0)
		return 0;
	return setns(fd, CLONE_NEWNET) ? -errno : 0;
}
