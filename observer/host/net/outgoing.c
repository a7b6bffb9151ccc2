// SPDX-License-Identifier: MIT
/* Outgoing connections; see outgoing.h. */
#include "outgoing.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sockets.h"
#include "sojourn/address.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/inet_diag.h"
#include "sojourn/text.h"

/* More sockets are not looked at. */
#define OUTGOING_MOST 65536

struct search {
	struct outgoing_list found;
	bool listens[65536]; /* by port */
	bool collecting;     /* the listeners are known */
	int error;
};

static struct outgoing *add(struct search *search)
{
	struct outgoing_list *found = &search->found;

	if (found->count >= OUTGOING_MOST || search->error)
		return NULL;
	search->error = ARRAY_GROW(found->list, found->count);
	if (search->error)
		return NULL;
	found->list[found->count] = (struct outgoing){};
	return &found->list[found->count++];
}

/* Connections to an own address are from the same one, unless the client has chosen another. */
static bool stays_here(const struct resource_socket *socket)
{
	const uint8_t *to = socket->destination.bytes;

	return (socket->family == AF_INET && to[0] == IN_LOOPBACKNET) ||
	       !memcmp(&socket->source, &socket->destination, sizeof(socket->source));
}

/* A connection from a port that somebody listens on was accepted there. */
static void visit_tcp(void *context, const struct resource_socket *socket)
{
	struct search *search = context;
	struct outgoing *outgoing;

	if (socket->state == SOCKET_LISTEN) {
		search->listens[socket->source_port] = true;
		return;
	}
	if (!search->collecting || search->listens[socket->source_port] || !socket->inode)
		return;
	outgoing = add(search);
	if (!outgoing)
		return;
	outgoing->inode = socket->inode;
	outgoing->port = socket->destination_port;
	outgoing->here = stays_here(socket);
	address_format(socket->family, socket->destination.bytes, socket->destination_port,
		       outgoing->towards, sizeof(outgoing->towards));
}

static int read_tcp(struct search *search)
{
	enum socket_source source = sockets_source();
	int r = sockets_tcp(source, SOCKET_BIT(SOCKET_LISTEN), SOCKET_PLAIN, visit_tcp, search);

	search->collecting = true;
	if (!r)
		r = sockets_tcp(source,
				SOCKET_BIT(SOCKET_ESTABLISHED) | SOCKET_BIT(SOCKET_SYN_SENT),
				SOCKET_PLAIN, visit_tcp, search);
	return r;
}

/* ---- Unix ---- */

static bool serves_no_requests(const char *path)
{
	return !strncmp(path, "/run/systemd/", 13) || !strncmp(path, "/run/dbus/", 10) ||
	       !strncmp(path, "/var/run/dbus/", 14);
}

/* Only the accepted socket has the path. Its peer is the client's. */
static void visit_unix(void *context, const void *socket, size_t length)
{
	const struct unix_diag_msg *message = socket;
	int left = (int)(length - sizeof(*message));
	struct search *search = context;
	struct outgoing *outgoing;
	char path[110] = "";
	uint32_t peer = 0;

	if (message->udiag_type != SOCK_STREAM)
		return;
	for (const struct rtattr *at = (const void *)(message + 1); RTA_OK(at, left);
	     at = RTA_NEXT(at, left)) {
		size_t size = RTA_PAYLOAD(at);

		if (at->rta_type == UNIX_DIAG_PEER && size == sizeof(peer))
			memcpy(&peer, RTA_DATA(at), sizeof(peer));
		if (at->rta_type == UNIX_DIAG_NAME && size < sizeof(path))
			snprintf(path, sizeof(path), "%.*s", (int)size, (const char *)RTA_DATA(at));
	}
	outgoing = peer && *path && !serves_no_requests(path) ? add(search) : NULL;
	if (!outgoing)
		return;
	outgoing->inode = peer;
	snprintf(outgoing->towards, sizeof(outgoing->towards), "unix:%s", path);
	text_make_printable(outgoing->towards, '?');
}

static int read_unix(struct search *search)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} request = {
		.header = {.nlmsg_len = sizeof(request),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.sdiag_family = AF_UNIX,
			    .udiag_states = SOCKET_BIT(SOCKET_ESTABLISHED),
			    .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER},
	};
	const struct inet_diag_question question = {
		.request = &request.header,
		.least = sizeof(struct unix_diag_msg),
		.answer_bytes = INET_DIAG_ANSWER_MAX,
		.visit = visit_unix,
		.context = search,
	};

	return inet_diag_ask(&question);
}

static int compare(const void *a, const void *b)
{
	const struct outgoing *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

int outgoing_read(struct outgoing_list *ret_outgoing)
{
	autofree struct search *search = calloc(1, sizeof(*search));
	int r = search ? read_tcp(search) : -ENOMEM;

	if (r < 0)
		goto failed;
	/* A kernel may lack unix_diag. */
	(void)read_unix(search);
	r = search->error;
	if (r < 0)
		goto failed;
	if (search->found.count)
		qsort(search->found.list, search->found.count, sizeof(*search->found.list),
		      compare);
	*ret_outgoing = search->found;
	return 0;
failed:
	if (search)
		free(search->found.list);
	return r;
}
