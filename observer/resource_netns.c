// SPDX-License-Identifier: MIT
/* Reads one network namespace in as few passes as it takes; see resource_netns.h. */
#include "resource_netns.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

struct pass {
	struct resource_netns *netns;
	uint32_t sample_ms;
	bool again; /* the second one: only ports */
};

static void append(struct socket_list *list, const struct resource_socket *s)
{
	if (list->count == list->limit) {
		list->left_out++;
		return;
	}
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 64;
		struct resource_socket *more = reallocarray(list->sockets, room, sizeof(*more));

		if (!more) {
			list->left_out++;
			return;
		}
		list->sockets = more;
		list->room = room;
	}
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

/* A request belongs to the listener on its address, or else to one on all addresses. */
static void count_half_open(struct resource_netns *netns, const struct resource_socket *s)
{
	static const struct socket_address any;
	size_t found = netns->listeners.count;

	for (size_t i = 0; i < netns->listeners.count; i++) {
		const struct resource_socket *l = &netns->listeners.sockets[i];

		if (l->source_port != s->source_port)
			continue;
		if (!memcmp(&l->source, &s->source, sizeof(any)) && l->family == s->family) {
			found = i;
			break;
		}
		if (!memcmp(&l->source, &any, sizeof(any)))
			found = i;
	}
	if (found < netns->listeners.count && netns->half_open)
		netns->half_open[found]++;
}

static void visit_tuple(void *context, const struct resource_socket *s)
{
	struct pass *pass = context;
	struct resource_netns *netns = pass->netns;

	resource_ports_count(&netns->ports, &netns->rules, s, pass->sample_ms);
	if (pass->again)
		return;
	netns->sockets++;
	if (s->state == SOCKET_SYN_RECV)
		count_half_open(netns, s);
	else if (s->state == SOCKET_CLOSE_WAIT)
		append(&netns->close_wait, s);
}

static void visit_listed(void *context, const struct resource_socket *s)
{
	append(context, s);
}

static int read_tuples(struct resource_netns *netns, uint32_t sample_ms)
{
	struct pass pass = {.netns = netns, .sample_ms = sample_ms};
	int r;

	r = resource_sockets_tcp(netns->source, SOCKET_TUPLES, SOCKET_PLAIN, visit_tuple, &pass);
	netns->passes++;
	if (!r && resource_ports_freeze(&netns->ports)) {
		pass.again = true;
		netns->passes++;
		r = resource_sockets_tcp(netns->source, SOCKET_TUPLES, SOCKET_PLAIN, visit_tuple,
					 &pass);
	}
	if (r < 0)
		return r;
	resource_ports_sort(&netns->ports);
	return 0;
}

/* Age only comes with tcp_info, which locks each socket: asked for nothing but CLOSE_WAIT. */
static int read_close_wait(struct resource_netns *netns)
{
	if (!netns->close_wait.count)
		return 0;
	netns->close_wait.count = 0;
	return resource_sockets_tcp(netns->source, SOCKET_BIT(SOCKET_CLOSE_WAIT), SOCKET_INFO,
				    visit_listed, &netns->close_wait);
}

/*
 * Bound-only sockets come from the hash of bound ports, a walk past every TIME_WAIT as well: with
 * 100,000 of them it costs more than all else. Such sockets are in no other hash, so where nearly
 * all are in one, there are too few to matter: a thousandth of the range.
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

static int read_sockets(struct resource_netns *netns, uint32_t sample_ms)
{
	uint32_t bound = may_be_bound(netns) ? SOCKET_BIT(SOCKET_BOUND_INACTIVE) : 0;
	int r = resource_sockets_tcp(netns->source, SOCKET_BIT(SOCKET_LISTEN) | bound,
				     SOCKET_MEMORY, visit_bound, netns);

	netns->half_open = calloc(netns->listeners.count + 1, sizeof(*netns->half_open));
	if (!r)
		r = read_tuples(netns, sample_ms);
	if (!r)
		r = read_close_wait(netns);
	return r;
}

int resource_netns_read(enum socket_source source, uint32_t sample_ms,
			struct resource_netns *ret_netns)
{
	struct resource_netns netns = {.at_ns = clock_now_ns(),
				       .source = source,
				       .listeners.limit = NETNS_LISTENERS,
				       .udp.limit = NETNS_UDP,
				       .close_wait.limit = NETNS_CLOSE_WAIT};
	struct stat st;
	int r = resource_numbers_rules(&netns.rules);

	if (r < 0)
		return r;
	if (!stat("/proc/self/ns/net", &st))
		netns.inode = (uint32_t)st.st_ino;
	resource_numbers_read(&netns.numbers);
	netns.error = read_sockets(&netns, sample_ms);
	(void)resource_sockets_udp(visit_listed, &netns.udp);
	*ret_netns = netns;
	return 0;
}

void resource_netns_free(struct resource_netns *netns)
{
	resource_ports_free(&netns->ports);
	free(netns->listeners.sockets);
	free(netns->half_open);
	free(netns->udp.sockets);
	free(netns->close_wait.sockets);
	*netns = (struct resource_netns){};
}

int resource_netns_enter(int fd)
{
	if (fd < 0)
		return 0;
	return setns(fd, CLONE_NEWNET) ? -errno : 0;
}
