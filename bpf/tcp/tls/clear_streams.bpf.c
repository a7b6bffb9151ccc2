// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Follows the streams of HTTP/2 in plain text of TLS, with --tls; see clear.h and streams.h.
 *
 * A connection is followed from the end of its handshake on, if that says HTTP/2 or does not show what follows. The
 * client's first text decides: it has to be the preface. A request of HTTP/1 ends this, if the handshake has not said HTTP/2.
 * Until then the connection is in no count of protocols. OpenSSL and GnuTLS forbid two calls for one connection at a time, Go
 * two that read or two that write.
 */
#define WALK_CALLS
#define STREAMS_OF_TEXT
/* Probes run with preemption on: see slot.h. */
#define SLOT_SHARED

#include "clear_pushes.h"
#include "tcp/connection/clear.h"
#include "tcp/http/streams.h"

const char clear_preface[32] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* The connection is not followed, or not any more: count it as such. */
static __always_inline void clear_shows(struct clear_streams *t, struct service_slot *slot)
{
	__u32 counter = t->hidden;
	bool hidden = counter;

	t->hidden = 0;
	barrier_var(counter); /* as in respond_move() of slot.h */
	if (slot && hidden && counter < COUNTER_COUNT)
		count_atomic(slot, counter, 1);
}

/* ---- the end ---- */

static __always_inline void clear_streams_free(struct clear_streams *t, const struct clear_key *key)
{
	if (__sync_fetch_and_or(&t->working, CLEAR_FREED) & CLEAR_FREED)
		return;
	clear_shows(t, slot_of(t->conn.service));
	streams_ended(&t->conn);
	streams_end(&t->conn);
	bpf_map_delete_elem(&clear_streams, key);
}

static __always_inline void clear_streams_end(struct clear_streams *t, const struct clear_key *key)
{
	if (!__sync_fetch_and_or(&t->working, CLEAR_OVER))
		clear_streams_free(t, key);
}

__noinline int clear_streams_over(struct clear_streams *t)
{
	struct clear_key key;

	if (!t)
		return 0;
	key = t->key;
	clear_streams_end(t, &key);
	return 0;
}

/* The last of those who look at the text of a connection that is over frees it. */
static __always_inline void clear_leaves(struct clear_streams *t)
{
	if (__sync_fetch_and_sub(&t->working, 1) == (CLEAR_OVER | 1)) {
		struct clear_key key = t->key;

		clear_streams_free(t, &key);
	}
}

__noinline int clear_streams_release(struct clear_streams *t)
{
	if (t)
		clear_leaves(t);
	return 0;
}

/* Return whether the text may be looked at. */
static __always_inline bool clear_walk_begins(struct clear_streams *t)
{
	if (!(__sync_fetch_and_add(&t->working, 1) & CLEAR_FREED))
		return true;
	clear_leaves(t);
	return false;
}

static __always_inline void clear_walk_ends(struct clear_streams *t, struct service_slot *slot)
{
	if (t->conn.flags & HTTP2_GIVEN_UP)
		clear_shows(t, slot);
	clear_leaves(t);
}

__noinline int clear_hides(__u32 service, __u32 counter)
{
	const struct clear_call *call = clear_call_now();
	struct clear_conn *conn = call ? clear_conn_of(call->ssl) : NULL;
	struct clear_streams *t;
	struct clear_key key;

	if (!conn)
		return 0;
	key = clear_key_of(call->ssl);
	if (bpf_map_update_elem(&clear_streams, &key, &clear_streams_nothing, BPF_NOEXIST))
		return 0;
	t = bpf_map_lookup_elem(&clear_streams, &key);
	if (!t)
		return 0;
	http2_init(&t->conn, service, conn->socket.flow_hash);
	t->conn.flow = conn->flow;
	t->key = key;
	t->socket = conn->socket;
	t->hidden = counter;
	/* Here and not by clear_streams_over(): the stack of all callers together must not exceed 512 bytes. */
	if (__sync_fetch_and_or(&conn->ends, CLEAR_SHOOK) & CLEAR_CLOSED)
		clear_streams_end(t, &key);
	return 1;
}

/* The process closes all at its end: the calls that it is in do not return. */
static __always_inline bool clear_process_ends(const struct clear_key *key)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();

	return bpf_get_current_pid_tgid() >> 32 == key->process && task->flags & TASK_EXITING;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(clear_state, const struct sock *sk, int old, int new)
{
	struct clear_owner *owner;
	struct clear_streams *t;
	struct clear_conn *conn;
	struct clear_push *push;

	if (sk->sk_protocol != PROTO_TCP || !tcp_ends_writes(new))
		return 0;
	owner = bpf_sk_storage_get(&clear_owners, (void *)sk, 0, 0);
	if (!owner)
		return 0;
	push = bpf_map_lookup_elem(&clear_pushes, &owner->key);
	if (push && new == TCP_CLOSE && clear_is_same(&push->socket, &owner->socket))
		bpf_map_delete_elem(&clear_pushes, &owner->key);
	conn = bpf_map_lookup_elem(&clear_conns, &owner->key);
	if (conn && clear_is_same(&conn->socket, &owner->socket))
		__sync_fetch_and_or(&conn->ends, CLEAR_CLOSED);
	t = bpf_map_lookup_elem(&clear_streams, &owner->key);
	if (!t || !clear_is_same(&t->socket, &owner->socket))
		return 0;
	if (clear_process_ends(&t->key)) {
		struct clear_key key = t->key;

		clear_streams_free(t, &key);
	} else {
		clear_streams_over(t);
	}
	return 0;
}

/* ---- text ---- */

/* Take what the text has of the preface. Return how many bytes that is; 0: the text is something else. */
static __always_inline __u32 clear_preface_in(struct clear_streams *t, __u64 text, __u32 length)
{
	__u32 have = t->preface, count = CLEAR_PREFACE - have;
	__u8 got[32] = {};

	if (count > length)
		count = length;
	barrier_var(count); /* or the verifier does not see the bounds */
	count &= 31;
	if (bpf_probe_read_user(got, count, (void *)text))
		return 0;
	for (__u32 i = 0; i < CLEAR_PREFACE; i++) {
		if (i < count && got[i] != (__u8)clear_preface[(have + i) & 31])
			return 0;
	}
	t->preface = have + count;
	return count;
}

/* Return how many bytes of the text are no frames. Without the rest of the preface these are all. */
static __always_inline __u32 clear_start(struct streams_call *call, struct clear_streams *t,
					 __u64 text, __u32 length)
{
	__u32 before;

	if (t->preface >= CLEAR_PREFACE)
		return 0;
	before = clear_preface_in(t, text, length);
	if (!before)
		call->h->flags |= HTTP2_GIVEN_UP;
	if (t->preface < CLEAR_PREFACE || call->h->flags & HTTP2_GIVEN_UP)
		return length;
	call->h->flags |= HTTP2_FOLLOWED;
	t->hidden = 0;
	count_atomic(call->slot, COUNTER_HTTP2, 1);
	return before;
}

static __always_inline void way_text(struct http2_way *way, __u64 text, __u32 length)
{
	way->bytes = (struct bytes){.at = text, .left = length};
	way->rest = length;
	way->resumed = true;
}

__noinline int clear_streams_read(struct clear_streams *t, __u64 text, __u32 length,
				  __u64 arrival_ns)
{
	struct streams_call call = {.arrival_ns = arrival_ns, .now = bpf_ktime_get_ns()};
	__u32 before;

	if (!t || !clear_walk_begins(t))
		return 0;
	call.h = &t->conn;
	call.slot = slot_of(t->conn.service);
	if (call.slot && !(t->conn.flags & HTTP2_GIVEN_UP)) {
		before = clear_start(&call, t, text, length);
		if (before < length) {
			way_text(&t->conn.in, text + before, length - before);
			streams_walk_read(&call);
		}
	}
	clear_walk_ends(t, call.slot);
	return 0;
}

__noinline int clear_streams_wrote(struct clear_streams *t, __u64 text, __u32 length, __u64 sent_ns)
{
	struct streams_call call = {.now = sent_ns ? sent_ns : bpf_ktime_get_ns()};

	if (!t || !clear_walk_begins(t))
		return 0;
	call.h = &t->conn;
	call.slot = slot_of(t->conn.service);
	if (call.slot && !(t->conn.flags & HTTP2_GIVEN_UP)) {
		way_text(&t->conn.out, text, length);
		streams_walk_write(&call);
	}
	clear_walk_ends(t, call.slot);
	return 0;
}
