// SPDX-License-Identifier: MIT
/* A worker's UDP sockets: see flow.h. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sojourn/address.h"
#include "sojourn/clock.h"

/* How many sockets wait for late replies at most. */
#define RETIRED_MAX 1024U

static void drop(struct udp_socket *socket)
{
	ledger_close(&socket->ledger);
	free(socket);
}

static void on_close(uv_handle_t *handle)
{
	drop(handle->data);
}

static void unlink_retired(struct udp_socket *socket)
{
	struct udp_socket **at = &socket->udp->retired;

	while (*at != socket)
		at = &(*at)->next;
	*at = socket->next;
	socket->udp->retired_count--;
}

void udp_socket_close(struct udp_socket *socket)
{
	if (socket->retired)
		unlink_retired(socket);
	else
		socket->udp->sockets[socket->flow] = NULL;
	/* The descriptor is free at once, the memory once libuv has closed the handle. */
	uv_close((uv_handle_t *)&socket->poll, on_close);
	close(socket->fd);
	socket->fd = -1;
}

static void close_oldest_retired(struct udp *udp)
{
	struct udp_socket *oldest = udp->retired;

	while (oldest->next)
		oldest = oldest->next;
	udp_socket_close(oldest);
}

void udp_socket_retire(struct udp_socket *socket, uint64_t now_ns)
{
	struct udp *udp = socket->udp;

	udp->sockets[socket->flow] = NULL;
	socket->retired = true;
	socket->opened_ns = now_ns;
	socket->next = udp->retired;
	udp->retired = socket;
	if (++udp->retired_count > RETIRED_MAX)
		close_oldest_retired(udp);
}

void udp_socket_expire_retired(struct udp *udp, uint64_t now_ns, uint64_t over_ns)
{
	struct udp_socket *next;

	for (struct udp_socket *socket = udp->retired; socket; socket = next) {
		next = socket->next;
		if (now_ns - socket->opened_ns >= over_ns)
			udp_socket_close(socket);
	}
}

/* EAGAIN: the kernel found no free port. */
static int connect_socket(struct udp *udp, int fd)
{
	const struct udp_plan *plan = udp->plan;
	int err = source_bind(&plan->sources, &udp->sources, fd);

	if (err)
		return err;
	policy_apply(&plan->policy, fd);
	datagram_want_errors(fd, plan->address.ss_family);
	if (!connect(fd, (const struct sockaddr *)&plan->address, address_length(&plan->address)))
		return 0;
	return errno == EAGAIN ? -EADDRNOTAVAIL : -errno;
}

static int open_descriptor(struct udp *udp)
{
	const int family = udp->plan->address.ss_family;
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	while (fd < 0 && (errno == EMFILE || errno == ENFILE) && udp->retired) {
		close_oldest_retired(udp);
		fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	}
	if (fd < 0)
		return -errno;
	err = connect_socket(udp, fd);
	if (err)
		close(fd);
	return err ? err : fd;
}

static struct udp_socket *socket_new(struct udp *udp, uint32_t flow)
{
	const struct udp_plan *plan = udp->plan;
	struct udp_socket *socket;

	socket = calloc(1, sizeof(*socket) + plan->outstanding * sizeof(socket->queue[0]));
	if (!socket)
		return NULL;
	socket->udp = udp;
	socket->flow = flow;
	socket->poll.data = socket;
	if (ledger_open(&socket->ledger, plan->outstanding, plan->match.kind != MATCH_ECHO,
			match_ids(&plan->match))) {
		free(socket);
		return NULL;
	}
	return socket;
}

int udp_socket_open(struct udp *udp, uint32_t flow, uv_poll_cb ready)
{
	struct udp_socket *socket = socket_new(udp, flow);
	int err;

	if (!socket)
		return -ENOMEM;
	socket->fd = open_descriptor(udp);
	if (socket->fd < 0) {
		err = socket->fd;
		drop(socket);
		return err;
	}
	err = uv_poll_init(udp->host->loop, &socket->poll, socket->fd);
	if (err) {
		close(socket->fd);
		drop(socket);
		return err;
	}
	socket->opened_ns = clock_now_ns();
	udp->sockets[flow] = socket;
	return uv_poll_start(&socket->poll, UV_READABLE, ready);
}
