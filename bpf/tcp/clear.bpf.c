// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Follows calls of OpenSSL, with --tls; see clear.h.
 *
 *   uprobe SSL_read, SSL_write, …   a thread enters such a call
 *   uretprobe of the same           and leaves it
 *   sock_recv_length                within it, bytes of an observed connection were read
 *
 * User space attaches the first two to each library that a process of an observed service has mapped. They run for
 * all users of the library, and keep nothing of those without an observed connection.
 */
/* arrival.h: bpf_loop() exists on all kernels with these tracepoints. */
#define WALK_CALLS

#include "arrival.h"
#include "clear.h"
#include "route.h"
#include "sample.h"
#include "service.h"
#include "status.h"

/* The registers at a probe, as <asm/ptrace.h> has them. */
#if defined(__TARGET_ARCH_x86)
struct clear_registers {
	__u64 saved[8];
	__u64 r9, r8, ax, cx, dx, si, di;
};

#define CLEAR_FIRST(r)	  ((r)->di)
#define CLEAR_SECOND(r)	  ((r)->si)
#define CLEAR_THIRD(r)	  ((r)->dx)
#define CLEAR_FOURTH(r)	  ((r)->cx)
#define CLEAR_RETURNED(r) ((r)->ax)
#elif defined(__TARGET_ARCH_arm64)
struct clear_registers {
	__u64 regs[31];
};

#define CLEAR_FIRST(r)	  ((r)->regs[0])
#define CLEAR_SECOND(r)	  ((r)->regs[1])
#define CLEAR_THIRD(r)	  ((r)->regs[2])
#define CLEAR_FOURTH(r)	  ((r)->regs[3])
#define CLEAR_RETURNED(r) ((r)->regs[0])
#else
#error "the registers of this architecture are not known"
#endif

static __always_inline struct clear_socket clear_socket_of(const struct conn *c)
{
	return (struct clear_socket){.established_ns = c->established_ns,
				     .flow_hash = c->flow_hash};
}

/* ---- what the socket's programs ask ---- */

static __always_inline struct clear_conn *clear_of(const struct conn *c)
{
	struct clear_socket socket = clear_socket_of(c);
	struct clear_key *key = bpf_map_lookup_elem(&clear_sockets, &socket);
	struct clear_conn *conn = key ? bpf_map_lookup_elem(&clear_conns, key) : NULL;

	return conn && clear_is_same(&conn->socket, &socket) ? conn : NULL;
}

__noinline int clear_answer(const struct conn *c)
{
	const struct clear_call *call = clear_call_now();
	struct clear_conn *conn;
	int status = STATUS_UNKNOWN;

	if (!c)
		return status;
	/* These records are tickets, which may look like a response (tls.h). */
	if (call && call->kind != CLEAR_WRITE && call->kind != CLEAR_WRITE_EX)
		return STATUS_HANDSHAKE;
	conn = clear_of(c);
	if (conn) {
		status = conn->answer;
		conn->answer = STATUS_UNKNOWN;
	}
	return status;
}

__noinline int clear_route(const struct conn *c)
{
	struct clear_conn *conn = c ? clear_of(c) : NULL;
	int route = conn ? conn->route : ROUTE_TLS;

	if (conn)
		conn->route = ROUTE_TLS;
	return route;
}

/* ---- calls of OpenSSL ---- */

/* Text is handed over. The first one after a request is its response's, which interim ones may precede. */
static __always_inline void clear_writes(const struct clear_call *call)
{
	struct clear_conn *conn = clear_conn_of(call->ssl);

	if (!conn || !conn->asked)
		return;
	conn->answer = status_in(call->text, call->length);
	conn->asked = conn->answer == STATUS_INTERIM;
}

SEC("?uprobe")
int clear_enter(const struct clear_registers *registers)
{
	struct clear_call call = {
		.ssl = CLEAR_FIRST(registers),
		.text = CLEAR_SECOND(registers),
		.length = CLEAR_THIRD(registers),
		.kind = bpf_get_attach_cookie((void *)registers),
	};
	__u64 thread = bpf_get_current_pid_tgid();

	if (call.kind == CLEAR_READ_EX || call.kind == CLEAR_WRITE_EX)
		call.taken = CLEAR_FOURTH(registers);
	else
		call.length &= 0x7fffffff; /* of an int the upper half is undefined */
	bpf_map_update_elem(&clear_calls, &thread, &call, BPF_ANY);
	if (call.kind == CLEAR_WRITE || call.kind == CLEAR_WRITE_EX)
		clear_writes(&call);
	return 0;
}

/*
 * Text was read: of a new request, or more of the one under way. The rest of an upload that was answered early
 * does not begin like a request, which is looked for again in the next text.
 */
static __always_inline void clear_took(struct clear_conn *conn, __u64 text, __u32 length)
{
	struct route_look *look = &conn->look;
	bool first = !conn->asked || conn->route == ROUTE_STRANGE;

	if (!first && conn->route != ROUTE_CUT)
		return;
	look->left = length;
	look->skip = 0;
	look->bytes = (struct bytes){.at = text, .left = length};
	conn->route = route_in(look, first, 1);
	conn->asked = true;
	/* Keep no text. Of a line that comes in parts it is kept which routes match so far. */
	__builtin_memset(look->chunk, 0, sizeof(look->chunk));
	look->window = 0;
	if (first && conn->route != ROUTE_STRANGE)
		conn->answer = STATUS_UNKNOWN;
}

/* Return how many bytes of text the call has moved. */
static __always_inline __u32 clear_taken(const struct clear_call *call, int returned)
{
	__u64 length = 0;

	if (returned <= 0 || call->kind == CLEAR_HANDSHAKE)
		return 0;
	if (call->kind == CLEAR_READ || call->kind == CLEAR_WRITE)
		return returned;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)call->taken))
		return 0;
	return length;
}

/* Return whether the text is of a connection whose streams are followed. */
static __always_inline bool clear_follows(const struct clear_call *call, __u32 length)
{
	struct clear_key key = clear_key_of(call->ssl);
	struct clear_streams *t = bpf_map_lookup_elem(&clear_streams, &key);
	struct clear_conn *conn = t ? bpf_map_lookup_elem(&clear_conns, &key) : NULL;
	__u64 arrival_ns;

	if (!t)
		return false;
	/* The connection's service may have a new number: it lost its slots and got others. */
	if (conn)
		t->conn.service = conn->service;
	if (call->kind == CLEAR_WRITE || call->kind == CLEAR_WRITE_EX) {
		clear_streams_wrote(t, call->text, length);
		return true;
	}
	arrival_ns = clear_records_taken(&t->records, length, call->length);
	if (conn && conn->arrival_ns)
		arrival_ns = conn->arrival_ns;
	clear_streams_read(t, call->text, length, arrival_ns);
	return true;
}

SEC("?uretprobe")
int clear_return(const struct clear_registers *registers)
{
	int returned = (int)CLEAR_RETURNED(registers);
	struct clear_call *found = clear_call_now(), call;
	__u64 thread = bpf_get_current_pid_tgid();
	struct clear_conn *conn;
	__u32 length;

	if (!found)
		return 0;
	call = *found;
	bpf_map_delete_elem(&clear_calls, &thread);
	length = clear_taken(&call, returned);
	if (!length || clear_follows(&call, length) || call.kind == CLEAR_WRITE ||
	    call.kind == CLEAR_WRITE_EX)
		return 0;
	conn = clear_conn_of(call.ssl);
	if (conn)
		clear_took(conn, call.text, length);
	return 0;
}

/* ---- which connection a call is for ---- */

/* Forget the former connection that OpenSSL had at this address. NULL: the kernel has no memory. */
static __always_inline struct clear_conn *
clear_begin(const struct clear_call *call, const struct sock *sk, const struct clear_socket *socket)
{
	struct clear_owner owner = {.key = clear_key_of(call->ssl), .socket = *socket}, *stored;
	struct clear_streams *former = bpf_map_lookup_elem(&clear_streams, &owner.key);
	struct clear_conn *conn;

	if (former && !clear_is_same(&former->socket, socket))
		clear_streams_over(former);
	stored = bpf_sk_storage_get(&clear_owners, (void *)sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!stored)
		return NULL;
	*stored = owner;
	bpf_map_update_elem(&clear_sockets, socket, &owner.key, BPF_ANY);
	bpf_map_update_elem(&clear_conns, &owner.key, &clear_nothing, BPF_ANY);
	conn = bpf_map_lookup_elem(&clear_conns, &owner.key);
	if (!conn)
		return NULL;
	conn->socket = *socket;
	conn->route = ROUTE_TLS;
	if (config.ring_bytes)
		flow_of(&sk->__sk_common, sk->__sk_common.skc_num, &conn->flow);
	return conn;
}

/*
 * A call has read @bytes up to @end. OpenSSL reads only if it holds no complete record. So the record whose text comes
 * next ends in the bytes that the latest of such calls has read. If all these arrived at one time it is known.
 */
static __always_inline void clear_arrived(struct clear_conn *conn, struct clear_call *call,
					  struct conn *c, __u32 end, __u32 bytes)
{
	struct arrival first, last;

	arrival_of(c, end - bytes, &first);
	arrival_of(c, end - 1, &last);
	if (!call->reads)
		conn->arrival_ns = first.ns;
	if (conn->arrival_ns != last.ns)
		conn->arrival_ns = 0;
}

/* Bytes of the connection were read, but in no call that is probed. */
static __always_inline void clear_missed(const struct sock *sk)
{
	struct clear_owner *owner = bpf_sk_storage_get(&clear_owners, (void *)sk, 0, 0);
	struct clear_conn *conn = owner ? bpf_map_lookup_elem(&clear_conns, &owner->key) : NULL;
	struct clear_streams *t = conn ? bpf_map_lookup_elem(&clear_streams, &owner->key) : NULL;

	if (conn && clear_is_same(&conn->socket, &owner->socket))
		conn->arrival_ns = 0;
	if (t)
		t->records.lost = true;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(clear_received, struct sock *sk, int ret, int flags)
{
	struct clear_socket socket;
	struct clear_streams *t;
	struct clear_conn *conn;
	struct clear_call *call;
	struct clear_key key;
	struct conn *c;

	if (ret <= 0 || flags & FLAGS_NO_READ || !port_observed(sk->__sk_common.skc_num))
		return 0;
	call = clear_call_now();
	if (!call) {
		clear_missed(sk);
		return 0;
	}
	c = conn_of(sk);
	/* Of older connections TLS is not known either. */
	if (!c || !c->established_ns)
		return 0;
	socket = clear_socket_of(c);
	conn = clear_conn_of(call->ssl);
	if (!conn || !clear_is_same(&conn->socket, &socket))
		conn = clear_begin(call, sk, &socket);
	if (!conn)
		return 0;
	conn->service = c->service;
	clear_arrived(conn, call, c, read_end(sk), ret);
	key = clear_key_of(call->ssl);
	t = c->marks & MARK_MULTIPLEXED ? bpf_map_lookup_elem(&clear_streams, &key) : NULL;
	if (t)
		clear_records_read(&t->records, c, ret, read_end(sk), !call->reads);
	call->reads++;
	return 0;
}
