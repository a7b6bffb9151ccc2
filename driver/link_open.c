// SPDX-License-Identifier: MIT
/* How a stream comes to be: TCP from a source port of our choice, or a local socket. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link_impl.h"
#include "sojourn/clock.h"

#define PORT_TRIES 64U

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
	struct link *link = handle->data;

	(void)suggested;
	*ret_buffer = uv_buf_init(link->all->buffer, LINK_BUFFER_SIZE);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct link *link = connect->handle->data;

	if (link->state != LINK_CONNECTING)
		return;
	if (status)
		link->all->events->failed(link, link_connect_failure(link, status));
	else
		link_on_established(link);
}

/* Ports of our own choice may be another's: connect() tells, and the next one is tried. */
static int connect_from(struct link *link)
{
	const struct link_plan *plan = link->all->plan;
	struct source_cursor *cursor = &link->all->sources;
	uv_os_fd_t fd;
	int err = uv_fileno(&link->handle, &fd);

	if (!err)
		err = source_bind(&plan->sources, cursor, fd);
	for (unsigned int tries = 0; !err; tries++) {
		policy_apply(&plan->policy, fd);
		err = uv_tcp_connect(&link->connect, &link->tcp,
				     (const struct sockaddr *)&plan->address, on_connect);
		if (err != UV_EADDRNOTAVAIL || tries == PORT_TRIES ||
		    !source_chooses_ports(&plan->sources, cursor))
			return err;
		err = source_replace(&plan->sources, cursor, fd);
	}
	return err;
}

static int open_tcp(struct link *link)
{
	int err = uv_tcp_init_ex(link->all->loop, &link->tcp, link->all->plan->address.ss_family);

	if (err)
		return err; /* and there is no handle to close */
	link->handle.data = link;
	link->state = LINK_CONNECTING;
	err = connect_from(link);
	/* Reading from now on, not from on_connect(), spares two epoll_ctl() per connection. */
	return err ? err : uv_read_start(&link->stream, on_alloc, link_on_read);
}

/* Connecting to a local socket does not take time: it is done, fails, or the queue is full (EAGAIN). */
static int connect_local(const struct link_plan *plan)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	policy_apply(&plan->policy, fd);
	if (!connect(fd, (const struct sockaddr *)&plan->address, plan->address_length))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int open_local(struct link *link)
{
	int fd = connect_local(link->all->plan);
	int err;

	if (fd < 0)
		return fd;
	err = uv_pipe_init(link->all->loop, &link->pipe, 0);
	if (err) {
		close(fd);
		return err;
	}
	link->handle.data = link;
	link->state = LINK_CONNECTING;
	err = uv_pipe_open(&link->pipe, fd);
	if (err) {
		close(fd);
		return err;
	}
	err = uv_read_start(&link->stream, on_alloc, link_on_read);
	if (!err)
		link_on_established(link);
	return err;
}

int link_open(struct link *link)
{
	link->begin_ns = clock_now_ns();
	link->connect_ns = 0;
	link->tls_ns = 0;
	link->detail = NULL;
	link->code = 0;
	if (link->all->plan->address.ss_family == AF_UNIX)
		return open_local(link);
	return open_tcp(link);
}
