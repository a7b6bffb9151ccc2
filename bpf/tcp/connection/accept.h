/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * When accept() returned a connection. No tracepoint reports that. Three sources replace it:
 *
 * ACCEPT_RETURNED times the kernel's function that takes the connection from the queue, where the kernel allows that.
 *
 * Inference works elsewhere: when the request was readable before accept(), the first read follows at once.
 *
 * ACCEPT_SYSCALL times the return of accept(), or io_uring's completion. Any syscall tracepoint puts every thread of
 * the host on the kernel's slow syscall path, so that is the user's choice.
 *
 * Neighbours: accept_fexit.bpf.c, accept.bpf.c, exchange.bpf.c.
 */
#ifndef BPF_TCP_CONNECTION_ACCEPT_H
#define BPF_TCP_CONNECTION_ACCEPT_H

#include "state.h"

static __always_inline void accept_expect(const struct sock *sk, const struct conn *c)
{
	struct accepting entry = {.established_ns = c->established_ns, .service = c->service};
	__u64 key = (__u64)sk;

	if (config.accept_source == ACCEPT_SYSCALL)
		bpf_map_update_elem(&accepting, &key, &entry, BPF_ANY);
}

/* Socket addresses are reused: forget all about this one. */
static __always_inline void accept_forget(const struct sock *sk)
{
	__u64 key = (__u64)sk;

	if (config.accept_source == ACCEPT_SYSCALL)
		bpf_map_delete_elem(&accepting, &key);
}

/* Return when accept() returned the connection, whose first read or write is @now; 0: unknown. */
static __always_inline __u64 accept_time(const struct sock *sk, const struct conn *c, __u64 now)
{
	__u64 key = (__u64)sk, accepted_ns = 0;
	struct accepting *entry;

	if (config.accept_source == ACCEPT_RETURNED)
		return c->accepted_ns;
	if (config.accept_source != ACCEPT_SYSCALL)
		return c->flags & CONN_QUEUED ? now : 0;
	entry = bpf_map_lookup_elem(&accepting, &key);
	if (!entry)
		return 0;
	accepted_ns = entry->accepted_ns;
	bpf_map_delete_elem(&accepting, &key);
	return accepted_ns;
}

/*
 * Return whether the first read or write still has to record the stage. With inference it always
 * does. With ACCEPT_RETURNED it does if accept() came before the connection was announced as
 * established: tcp_check_req() queues the child before tcp_child_process() announces it. The wait is
 * then about 0.
 */
static __always_inline bool accept_unrecorded(const struct conn *c)
{
	if (config.accept_source == ACCEPT_RETURNED)
		return !c->accept_recorded;
	return config.accept_source != ACCEPT_SYSCALL;
}

static __always_inline __u64 accept_wait(const struct conn *c, __u64 accepted_ns)
{
	return accepted_ns > c->established_ns ? accepted_ns - c->established_ns : 0;
}

#endif
