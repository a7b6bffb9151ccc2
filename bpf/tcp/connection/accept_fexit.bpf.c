// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Times the return of inet_csk_accept(), where every TCP accept() takes its connection from the queue. It is the
 * exact source of accept_queue (accept.h), and costs nothing outside accept(). The function runs in process context,
 * and its result is the new socket.
 *
 * 6.10 changed its arguments, and so the place of the result (92ef0fd55ac8, "net: change proto and proto_ops accept
 * type"). Each program loads only where its signature is the kernel's: the wrong one finds no argument, or no socket.
 * So a rehearsal shows which program to use.
 */
#include "accept.h"
#include "service.h"

/* One connection has just left the queue. */
static __always_inline void depth_seen(const struct sock *listener, struct service_slot *slot)
{
	__u32 depth = listener->sk_ack_backlog + 1;

	if (config.depth_at_accept)
		copy_raise(&slot->depth_max, depth);
}

static __always_inline void wait_seen(struct conn *c, struct service_slot *slot)
{
	__u64 established_ns;

	/* Another CPU may just have moved the connection to its place. */
	atomic_order(&c->announced);
	/*
	 * Read it once, and before the clock: another CPU may be about to write it
	 * (accept_unrecorded()).
	 */
	established_ns = PLAIN(&c->established_ns);
	c->accepted_ns = bpf_ktime_get_ns();
	if (!established_ns)
		return;
	c->accept_recorded = 1;
	stage_add_atomic(&slot->stages[STAGE_ACCEPT_QUEUE], c->accepted_ns - established_ns);
}

static __always_inline void accept_returned(const struct sock *listener, const struct sock *child)
{
	struct service_slot *slot;
	struct conn *c;

	if (!child || !port_observed(child->__sk_common.skc_num))
		return;
	c = conn_of(child);
	slot = c ? slot_of(c->service) : NULL;
	if (!slot)
		return;
	wait_seen(c, slot);
	depth_seen(listener, slot);
}

SEC("?fexit/inet_csk_accept")
int BPF_PROG(accept_arg, struct sock *listener, void *arg, struct sock *child)
{
	accept_returned(listener, child);
	return 0;
}

SEC("?fexit/inet_csk_accept")
int BPF_PROG(accept_flags, struct sock *listener, int flags, int *err, bool kern,
	     struct sock *child)
{
	accept_returned(listener, child);
	return 0;
}
