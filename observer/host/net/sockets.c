// SPDX-License-Identifier: MIT
/* Sockets from inet_diag, or from /proc/net if that does not answer; see sockets.h. */
#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/inet_diag.h"
#include "sojourn/procfs.h"

#define TIMER_TIME_WAIT 3
#define USER_HZ_MS	10 /* /proc counts time in hundredths of a second on every architecture */

struct query {
	socket_visit visit;
	void *context;
};

/* ---- inet_diag ---- */

/* Convert IPv4-mapped addresses: an IPv6 socket with these competes for IPv4's tuples. */
static void copy_addresses(const struct inet_diag_msg *m, struct resource_socket *s)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *source = (const uint8_t *)m->id.idiag_src;
	const uint8_t *destination = (const uint8_t *)m->id.idiag_dst;
	size_t size = m->idiag_family == AF_INET ? 4 : 16;

	s->family = m->idiag_family;
	if (size == 16 && !memcmp(source, prefix, 12) && !memcmp(destination, prefix, 12)) {
		s->family = AF_INET;
		source += 12;
		destination += 12;
		size = 4;
	}
	memcpy(s->source.bytes, source, size);
	memcpy(s->destination.bytes, destination, size);
}

static void take_message(void *context, const void *socket, size_t length)
{
	const struct inet_diag_msg *m = socket;
	const uint32_t *memory = inet_diag_attribute(m, length, INET_DIAG_SKMEMINFO,
						     (SK_MEMINFO_DROPS + 1) * sizeof(*memory));
	const struct tcp_info *info = inet_diag_attribute(
		m, length, INET_DIAG_INFO, offsetof(struct tcp_info, tcpi_bytes_retrans));
	const struct query *query = context;
	struct resource_socket s = {
		.state = m->idiag_state,
		.time_wait = m->idiag_timer == TIMER_TIME_WAIT,
		.source_port = ntohs(m->id.idiag_sport),
		.destination_port = ntohs(m->id.idiag_dport),
		.expires_ms = m->idiag_expires,
		.receive_queue = m->idiag_rqueue,
		.send_queue = m->idiag_wqueue,
		.drops = memory ? memory[SK_MEMINFO_DROPS] : 0,
		.interface = m->id.idiag_if,
		.timer = m->idiag_timer,
		.silent_ms = info ? info->tcpi_last_ack_recv : 0,
		.sent_ms = info ? info->tcpi_last_data_sent : 0,
		.received_ms = info ? info->tcpi_last_data_recv : 0,
		.unsent = info ? info->tcpi_notsent_bytes : 0,
		.bytes_received = info ? info->tcpi_bytes_received : 0,
		.bytes_sent = info ? info->tcpi_bytes_sent : 0,
		.user = m->idiag_uid,
		.inode = m->idiag_inode,
		.cookie = m->id.idiag_cookie[0] | (uint64_t)m->id.idiag_cookie[1] << 32,
	};

	copy_addresses(m, &s);
	query->visit(query->context, &s);
}

static int dump(uint32_t states, enum socket_detail detail, struct query *query)
{
	static const uint8_t extensions[] = {
		[SOCKET_PLAIN] = 0,
		[SOCKET_MEMORY] = 1 << (INET_DIAG_SKMEMINFO - 1),
		[SOCKET_INFO] = 1 << (INET_DIAG_INFO - 1),
	};
	const struct inet_diag_question question = {
		.states = states,
		.extensions = extensions[detail],
		.answer_bytes = INET_DIAG_ANSWER_MAX,
		.visit = take_message,
		.context = query,
	};

	return inet_diag_ask(&question);
}

static void take_one(void *context, const struct resource_socket *s)
{
	*(struct resource_socket *)context = *s;
}

/* The kernel also finds an IPv6 socket with IPv4-mapped addresses by its IPv4 addresses (inet_match()). */
int sockets_again(struct resource_socket *socket)
{
	struct resource_socket found = {};
	struct query query = {take_one, &found};
	const struct inet_diag_question question = {
		.states = UINT32_MAX,
		.extensions = 1 << (INET_DIAG_INFO - 1),
		.answer_bytes = INET_DIAG_ANSWER_MAX,
		.visit = take_message,
		.context = &query,
	};
	struct inet_diag_sockid id = {
		.idiag_sport = htons(socket->source_port),
		.idiag_dport = htons(socket->destination_port),
		.idiag_if = socket->interface,
		.idiag_cookie = {(uint32_t)socket->cookie, (uint32_t)(socket->cookie >> 32)},
	};
	int r;

	memcpy(id.idiag_src, socket->source.bytes, sizeof(id.idiag_src));
	memcpy(id.idiag_dst, socket->destination.bytes, sizeof(id.idiag_dst));
	r = inet_diag_ask_one(&question, socket->family, &id);
	if (r < 0)
		return r;
	if (found.cookie != socket->cookie)
		return -ENOENT;
	*socket = found;
	return 0;
}

/* ---- /proc ---- */

struct line {
	char source[40], destination[40];
	unsigned int source_port, destination_port, state, send, receive, timer, user, drops;
	unsigned long long when, inode;
};

/* Eight hexadecimal digits per word, each word as the machine stores it. */
static uint8_t parse_address(const char *text, struct socket_address *ret_address)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	size_t words = strlen(text) / 8;

	for (size_t i = 0; i < words && i < 4; i++) {
		unsigned int word = 0;

		(void)sscanf(text + 8 * i, "%8x", &word);
		memcpy(ret_address->bytes + 4 * i, &word, sizeof(word));
	}
	if (words == 4 && !memcmp(ret_address->bytes, prefix, sizeof(prefix))) {
		memmove(ret_address->bytes, ret_address->bytes + 12, 4);
		memset(ret_address->bytes + 4, 0, 12);
		return AF_INET;
	}
	return words == 4 ? AF_INET6 : AF_INET;
}

static bool parse_line(const char *text, struct line *line)
{
	*line = (struct line){};
	return sscanf(text,
		      " %*d: %39[0-9A-F]:%x %39[0-9A-F]:%x %x %x:%x %x:%llx %*x %u %*u %llu "
		      "%*d %*x %u",
		      line->source, &line->source_port, line->destination, &line->destination_port,
		      &line->state, &line->send, &line->receive, &line->timer, &line->when,
		      &line->user, &line->inode, &line->drops) >= 11;
}

static void to_socket(const struct line *line, bool udp, struct resource_socket *s)
{
	*s = (struct resource_socket){
		.state = (uint8_t)line->state,
		.time_wait = !udp && line->timer == TIMER_TIME_WAIT,
		.source_port = (uint16_t)line->source_port,
		.destination_port = (uint16_t)line->destination_port,
		.expires_ms = (uint32_t)line->when * USER_HZ_MS,
		.receive_queue = line->receive,
		.send_queue = line->send,
		.drops = udp ? line->drops : 0, /* for TCP the column is another one */
		.user = line->user,
		.inode = line->inode,
	};
	s->family = parse_address(line->source, &s->source);
	if (parse_address(line->destination, &s->destination) != s->family)
		s->family = AF_INET6;
}

int sockets_table(uint32_t pid, const char *name, uint32_t states, socket_visit visit,
		  void *context)
{
	autofclose FILE *file = pid ? procfs_open("/proc/%u/net/%s", pid, name)
				    : procfs_open("/proc/self/net/%s", name);
	char text[512];

	if (!file)
		return errno == ENOENT && strchr(name, '6') ? 0 : -errno;
	while (fgets(text, sizeof(text), file)) {
		struct resource_socket s;
		struct line line;

		if (!parse_line(text, &line))
			continue;
		/* The kernel writes all listeners first (tcp_seq_start()), and there may be very many others. */
		if (states == SOCKET_BIT(SOCKET_LISTEN) && line.state != SOCKET_LISTEN)
			break;
		if (!(states >> (line.state & 31) & 1))
			continue;
		to_socket(&line, name[0] == 'u', &s);
		visit(context, &s);
	}
	return 0;
}

/* ---- either ---- */

int sockets_tcp(enum socket_source source, uint32_t states, enum socket_detail detail,
		socket_visit visit, void *context)
{
	struct query query = {visit, context};
	int r;

	if (source == SOCKETS_NETLINK)
		return dump(states, detail, &query);
	r = sockets_table(0, "tcp", states, visit, context);
	if (!r)
		r = sockets_table(0, "tcp6", states, visit, context);
	return r;
}

int sockets_udp(socket_visit visit, void *context)
{
	int r = sockets_table(0, "udp", UINT32_MAX, visit, context);

	return r < 0 ? r : sockets_table(0, "udp6", UINT32_MAX, visit, context);
}

static void ignore(void *context, const struct resource_socket *s)
{
	(void)context;
	(void)s;
}

enum socket_source sockets_source(void)
{
	struct query query = {ignore, NULL};
	int r = dump(SOCKET_BIT(SOCKET_LISTEN), SOCKET_PLAIN, &query);

	return r < 0 ? SOCKETS_PROCFS : SOCKETS_NETLINK;
}
