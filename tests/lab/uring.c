// SPDX-License-Identifier: MIT
/*
 * accept() by io_uring: one request at a time, so a ring of a few entries is enough. A multishot
 * request continues on its own, and the kernel accepts in advance.
 */
#include "uring.h"

#include <errno.h>
#include <liburing.h>
#include <sys/socket.h>

#define RING_ENTRIES	 8
#define RING_COMPLETIONS 4096 /* connections by which a multishot request may be ahead */

struct ring {
	struct io_uring uring;
	bool open;
	bool armed; /* a multishot request is active */
};

static _Thread_local struct ring ring;

static int open_ring(void)
{
	struct io_uring_params params = {.flags = IORING_SETUP_CQSIZE,
					 .cq_entries = RING_COMPLETIONS};
	int r = ring.open ? 0 : io_uring_queue_init_params(RING_ENTRIES, &ring.uring, &params);

	ring.open |= !r;
	return r;
}

static int ask(int fd, bool multishot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring.uring);

	if (!sqe)
		return -EBUSY;
	if (multishot)
		io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
	else
		io_uring_prep_accept(sqe, fd, NULL, NULL, SOCK_CLOEXEC);
	return io_uring_submit(&ring.uring);
}

int uring_accept(int fd, bool multishot)
{
	struct io_uring_cqe *cqe;
	int r = open_ring();

	if (!r && !ring.armed)
		r = ask(fd, multishot);
	if (r < 0)
		return r;
	ring.armed = true;
	do
		r = io_uring_wait_cqe(&ring.uring, &cqe);
	while (r == -EINTR);
	if (r < 0)
		return r;
	ring.armed = multishot && cqe->flags & IORING_CQE_F_MORE;
	r = cqe->res;
	io_uring_cqe_seen(&ring.uring, cqe);
	return r;
}

void uring_close(void)
{
	if (ring.open)
		io_uring_queue_exit(&ring.uring);
	ring = (struct ring){0};
}
