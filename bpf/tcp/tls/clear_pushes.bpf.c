// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Follows pushes in plain text of TLS. See clear_pushes.h. */
#include "clear_pushes.h"
#include "tcp/http/answer.h"
#include "tcp/http/pushed.h"

#define CLEAR_HEAD_END 0x0a0d0a0dU /* "\r\n\r\n", the first byte lowest */

/* Return what the text begins (enum push_suspicion). If another probe is interrupted in its look, it may be anything. */
static __always_inline int clear_suspects(__u64 text, __u32 length)
{
	struct answer_look *look;
	__u32 zero = 0;
	int suspicion;

	look = bpf_map_lookup_elem(&clear_looks, &zero);
	if (!look || __sync_fetch_and_add(&look->users, 1)) {
		if (look)
			__sync_fetch_and_sub(&look->users, 1);
		return PUSH_SUSPECTED;
	}
	suspicion = answer_look(look, text, length);
	__sync_fetch_and_sub(&look->users, 1);
	return suspicion;
}

/* Return the state of the library's connection, new or of an earlier response. NULL: there is no room. */
static __always_inline struct clear_push *clear_push_new(const struct clear_key *key,
							 const struct clear_socket *socket)
{
	struct clear_push *push = bpf_map_lookup_elem(&clear_pushes, key);

	if (!push) {
		bpf_map_update_elem(&clear_pushes, key, &clear_push_nothing, BPF_NOEXIST);
		push = bpf_map_lookup_elem(&clear_pushes, key);
	}
	if (push)
		push->socket = *socket;
	return push;
}

__noinline int clear_pushes_begin(struct clear_conn *conn, __u64 ssl, __u64 text, __u32 length)
{
	struct clear_key key = clear_key_of(ssl);
	struct clear_push *push;
	int suspicion, former;

	if (!conn)
		return 0;
	former = conn->pushes;
	conn->pushes = PUSH_NONE;
	suspicion = clear_suspects(text, length);
	if (suspicion == PUSH_UNSUSPECTED) {
		if (former)
			bpf_map_delete_elem(&clear_pushes, &key);
		return 0;
	}
	if (suspicion == PUSH_CUT_SHORT) {
		push = bpf_map_lookup_elem(&clear_pushes, &key);
		if (push && clear_is_same(&push->socket, &conn->socket) &&
		    push->conn.kind == PUSH_EVENTS)
			pushes_lose(&push->conn);
		return 0;
	}
	push = clear_push_new(&key, &conn->socket);
	if (!push)
		return 0;
	push->conn.service = conn->service;
	push->conn.missed = !conn->whole;
	push->conn.out.text = text;
	conn->pushes = pushes_begin(&push->conn, length, 0, 0);
	push->ahead = length;
	if (conn->pushes <= PUSH_HEAD)
		bpf_map_delete_elem(&clear_pushes, &key);
	else if (push->conn.head.number == STATUS_UPGRADE)
		conn->pushes = PUSH_WEBSOCKET; /* or what was to be one */
	else
		conn->pushes = PUSH_EVENTS;
	return 0;
}

/* Return how many bytes of a write were taken before. */
static __always_inline __u32 clear_ahead(struct clear_push *push, __u32 length)
{
	__u32 ahead = push->ahead;

	if (ahead > length)
		ahead = length;
	push->ahead -= ahead;
	return ahead;
}

__noinline int clear_pushes_moved(__u64 ssl, __u32 kind, __u64 text, __u32 length)
{
	struct clear_key key = clear_key_of(ssl);
	struct clear_push *push = bpf_map_lookup_elem(&clear_pushes, &key);
	struct clear_conn *conn = bpf_map_lookup_elem(&clear_conns, &key);
	__u32 last = 0, ahead;

	if (!conn)
		return 0;
	if (!push || !clear_is_same(&push->socket, &conn->socket)) {
		if (kind == CLEAR_READ && length >= sizeof(last))
			bpf_probe_read_user(&last, sizeof(last),
					    (void *)(text + length - sizeof(last)));
		if (kind == CLEAR_READ)
			conn->whole = last == CLEAR_HEAD_END;
		return 0;
	}
	push->conn.service = conn->service;
	if (kind == CLEAR_WRITE) {
		ahead = clear_ahead(push, length);
		push->conn.out.text = text + ahead;
		if (length > ahead)
			pushes_out(&push->conn, length - ahead,
				   push->conn.out.end + (length - ahead));
		return 1;
	}
	if (conn->pushes != PUSH_WEBSOCKET)
		return 0;
	push->conn.in.text = text;
	if (push->conn.kind == PUSH_WEBSOCKET)
		pushes_in(&push->conn, length, push->conn.in.end + length);
	return 1;
}

__noinline int clear_pushes_follow(struct conn *c)
{
	struct clear_socket socket;
	struct clear_conn *conn;
	struct clear_key *key;

	if (!c)
		return 0;
	socket = (struct clear_socket){.established_ns = c->established_ns,
				       .flow_hash = c->flow_hash};
	key = bpf_map_lookup_elem(&clear_sockets, &socket);
	conn = key ? bpf_map_lookup_elem(&clear_conns, key) : NULL;
	if (!conn || !clear_is_same(&conn->socket, &socket) || !conn->pushes)
		return 0;
	c->phase = CONN_PUSHING;
	if (conn->pushes == PUSH_WEBSOCKET)
		c->marks |= MARK_MULTIPLEXED | MARK_SETTLED;
	return 0;
}
