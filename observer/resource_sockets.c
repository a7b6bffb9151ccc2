// SPDX-License-Identifier: MIT
/* Asks inet_diag for sockets, see resource_sockets.h; neighbour: resource_sockets_proc.c. */
#include "resource_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"

#define TIMER_TIME_WAIT 3
/* The kernel fills at most 32 KiB per read, if the reader offers as much. */
#define ANSWER_SIZE 32768

struct query {
	socket_visit visit;
	void *context;
};

static void cleanup_mnl(struct mnl_socket **nl)
{
	if (*nl)
		mnl_socket_close(*nl);
}

static int copy_attribute(const struct nlattr *attribute, void *data)
{
	struct resource_socket *s = data;
	const void *payload = mnl_attr_get_payload(attribute);
	uint16_t size = mnl_attr_get_payload_len(attribute);

	if (mnl_attr_get_type(attribute) == INET_DIAG_SKMEMINFO &&
	    size >= (SK_MEMINFO_DROPS + 1) * sizeof(uint32_t))
		s->drops = ((const uint32_t *)payload)[SK_MEMINFO_DROPS];
	if (mnl_attr_get_type(attribute) == INET_DIAG_INFO &&
	    size >= offsetof(struct tcp_info, tcpi_pmtu))
		s->silent_ms = ((const struct tcp_info *)payload)->tcpi_last_ack_recv;
	return MNL_CB_OK;
}

/* A socket of IPv6 that talks IPv4 competes for IPv4's tuples. */
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

static int on_message(const struct nlmsghdr *header, void *data)
{
	const struct inet_diag_msg *m = mnl_nlmsg_get_payload(header);
	const struct query *query = data;
	struct resource_socket s = {
		.state = m->idiag_state,
		.time_wait = m->idiag_timer == TIMER_TIME_WAIT,
		.source_port = ntohs(m->id.idiag_sport),
		.destination_port = ntohs(m->id.idiag_dport),
		.expires_ms = m->idiag_expires,
		.receive_queue = m->idiag_rqueue,
		.send_queue = m->idiag_wqueue,
		.inode = m->idiag_inode,
		.cookie = m->id.idiag_cookie[0] | (uint64_t)m->id.idiag_cookie[1] << 32,
	};

	copy_addresses(m, &s);
	mnl_attr_parse(header, sizeof(*m), copy_attribute, &s);
	query->visit(query->context, &s);
	return MNL_CB_OK;
}

/*
 * The request of before 3.3 (inet_diag_dump_compat()): only it gets both families in one walk over
 * the kernel's hash, which with 100,000 sockets costs 10 ms and more.
 */
static int request(struct mnl_socket *nl, uint32_t states, enum socket_detail detail)
{
	static const uint8_t extensions[] = {
		[SOCKET_PLAIN] = 0,
		[SOCKET_MEMORY] = 1 << (INET_DIAG_SKMEMINFO - 1),
		[SOCKET_INFO] = 1 << (INET_DIAG_INFO - 1),
	};
	char buffer[256];
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req *r;

	header->nlmsg_type = TCPDIAG_GETSOCK;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	r = mnl_nlmsg_put_extra_header(header, sizeof(*r));
	r->idiag_ext = extensions[detail];
	r->idiag_states = states;
	return mnl_socket_sendto(nl, header, header->nlmsg_len) < 0 ? -errno : 0;
}

static int receive(struct mnl_socket *nl, struct query *query)
{
	autofree char *buffer = malloc(ANSWER_SIZE);
	int r = buffer ? MNL_CB_OK : -ENOMEM;

	while (r > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(nl, buffer, ANSWER_SIZE);

		if (n < 0)
			return -errno;
		r = mnl_cb_run(buffer, (size_t)n, 0, 0, on_message, query);
		if (r < 0)
			return -errno;
	}
	return r < 0 ? r : 0;
}

static int dump(uint32_t states, enum socket_detail detail, struct query *query)
{
	CLEANUP(cleanup_mnl) struct mnl_socket *nl = mnl_socket_open(NETLINK_SOCK_DIAG);
	int r;

	if (!nl)
		return -errno;
	r = request(nl, states, detail);
	return r < 0 ? r : receive(nl, query);
}

int resource_sockets_tcp(enum socket_source source, uint32_t states, enum socket_detail detail,
			 socket_visit visit, void *context)
{
	struct query query = {visit, context};
	int r;

	if (source == SOCKETS_NETLINK)
		return dump(states, detail, &query);
	r = resource_sockets_table("tcp", states, visit, context);
	if (!r)
		r = resource_sockets_table("tcp6", states, visit, context);
	return r;
}

int resource_sockets_udp(socket_visit visit, void *context)
{
	int r = resource_sockets_table("udp", UINT32_MAX, visit, context);

	return r < 0 ? r : resource_sockets_table("udp6", UINT32_MAX, visit, context);
}

static void ignore(void *context, const struct resource_socket *s)
{
	(void)context;
	(void)s;
}

enum socket_source resource_sockets_source(void)
{
	struct query query = {ignore, NULL};
	int r = dump(SOCKET_BIT(SOCKET_LISTEN), SOCKET_PLAIN, &query);

	return r < 0 ? SOCKETS_PROCFS : SOCKETS_NETLINK;
}

char *resource_sockets_format(uint8_t family, const struct socket_address *address, uint16_t port,
			      char *buffer, unsigned int size)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(family, address->bytes, text, sizeof(text));
	if (!port)
		snprintf(buffer, size, "%s", text);
	else
		snprintf(buffer, size, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
	return buffer;
}
