// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Follows calls of OpenSSL and GnuTLS, with --tls; see clear.h.
 *
 *   uprobe SSL_read, SSL_write, …   a thread enters such a call
 *   uretprobe of the same           and leaves it
 *   sock_recv_length                within it, bytes of an observed connection were read
 *   sock_send_length                and written
 *
 * User space attaches the first two to each library that a process of an observed service has mapped. They run for
 * all users of the library, and keep nothing of those without an observed connection.
 */
/* arrival.h: bpf_loop() exists on all kernels with these tracepoints. */
#define WALK_CALLS

#define TCP_CLOCK
#include "tcp/connection/clear.h"
#include "clear_pushes.h"
#include "service.h"
#include "tcp/connection/arrival.h"
#include "tcp/connection/clock.h"
#include "tcp/connection/sample.h"
#include "tcp/http/route.h"
#include "tcp/http/status.h"
#include "tls.h"

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
	if (call && call->kind != CLEAR_WRITE)
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

/* The library writes records of its own in other calls than its write. */
__noinline int clear_carries(const struct conn *c, int answers)
{
	const struct clear_conn *conn = c ? clear_of(c) : NULL;
	const struct clear_call *call;

	if (!conn)
		return TLS_CARRIES_UNKNOWN;
	if (conn->carries || !answers)
		return conn->carries;
	call = clear_call_now();
	return call && call->kind != CLEAR_WRITE ? TLS_CARRIES_ANY : TLS_CARRIES_UNKNOWN;
}

/* ---- calls of the library ---- */

/* Text is handed over. The first one after a request is its response's, which interim ones may precede. */
static __always_inline void clear_writes(const struct clear_call *call)
{
	struct clear_conn *conn = clear_conn_of(call->ssl);

	if (!conn || !conn->asked)
		return;
	conn->answer = status_in(call->text, call->length);
	conn->asked = conn->answer == STATUS_INTERIM;
	if (config.http && !conn->asked)
		clear_pushes_begin(conn, call->ssl, call->text, call->length);
}

/*
 * The text may be on the goroutine's stack, which may move during the call. Then it keeps its distance from the stack's end.
 * Return that end if the text is there. A goroutine begins with its stack's bounds (runtime.g).
 */
static __always_inline __u64 go_stack_of(const struct clear_goroutine *goroutine, __u64 text)
{
	__u64 bounds[2];

	if (bpf_probe_read_user(bounds, sizeof(bounds), (void *)goroutine->address))
		return 0;
	return text >= bounds[0] && text < bounds[1] ? bounds[1] : 0;
}

static __always_inline struct clear_goroutine goroutine_of(const struct clear_registers *registers)
{
	return (struct clear_goroutine){.address = GO_GOROUTINE(registers),
					.process = bpf_get_current_pid_tgid() >> 32};
}

/*
 * A goroutine may be in a write while another one reads that the client has closed: the state of streams stays until the
 * write returns. A return that was missed is seen by the next call. Then the rest cannot be understood.
 */
static __always_inline void go_holds(const struct clear_call *call, const struct clear_call *outer)
{
	bool again = outer && outer->ssl == call->ssl && outer->kind == call->kind;
	struct clear_key key = clear_key_of(call->ssl);
	struct clear_streams *t = bpf_map_lookup_elem(&clear_streams, &key);
	bool held;

	if (!t)
		return;
	held = call->kind == CLEAR_READ ? t->reading : t->writing;
	if (held && !again)
		t->conn.flags |= HTTP2_GIVEN_UP;
	if (call->kind == CLEAR_READ) {
		t->reading = true;
	} else if (!held) {
		t->writing = true;
		__sync_fetch_and_add(&t->working, 1);
	}
}

static __always_inline void go_releases(const struct clear_call *call)
{
	struct clear_key key = clear_key_of(call->ssl);
	struct clear_streams *t = bpf_map_lookup_elem(&clear_streams, &key);

	if (!t)
		return;
	if (call->kind == CLEAR_READ) {
		t->reading = false;
	} else if (call->kind == CLEAR_WRITE && t->writing) {
		t->writing = false;
		clear_streams_release(t);
	}
}

/* A read or a write shakes hands first if nobody has: such a call is within another. */
static __always_inline void go_enters(const struct clear_registers *registers, __u64 probe)
{
	struct clear_goroutine goroutine = goroutine_of(registers);
	const struct clear_call *outer = bpf_map_lookup_elem(&clear_goroutines, &goroutine);
	struct clear_call call = {
		.ssl = GO_FIRST(registers),
		.text = GO_SECOND(registers),
		.length = GO_THIRD(registers),
		.kind = CLEAR_PROBE_KIND(probe),
		.form = CLEAR_GO,
	};

	if (call.kind == CLEAR_HANDSHAKE && outer && outer->ssl == call.ssl &&
	    outer->kind != CLEAR_HANDSHAKE)
		return;
	if (call.kind != CLEAR_HANDSHAKE) {
		call.taken = go_stack_of(&goroutine, call.text);
		go_holds(&call, outer);
	}
	bpf_map_update_elem(&clear_goroutines, &goroutine, &call, BPF_ANY);
	if (call.kind == CLEAR_WRITE)
		clear_writes(&call);
}

/* BoringSSL's SSL_read() and SSL_write() call SSL_do_handshake() if nobody has. */
static __always_inline void thread_enters(const struct clear_registers *registers, __u64 probe)
{
	const struct clear_call *outer;
	struct clear_call call = {
		.ssl = CLEAR_FIRST(registers),
		.text = CLEAR_SECOND(registers),
		.length = CLEAR_THIRD(registers),
		.kind = CLEAR_PROBE_KIND(probe),
		.form = CLEAR_PROBE_FORM(probe),
	};
	__u64 thread = bpf_get_current_pid_tgid();

	if (call.form == CLEAR_AT)
		call.taken = CLEAR_FOURTH(registers);
	else if (call.form == CLEAR_INT)
		call.length &= 0x7fffffff; /* the upper half is undefined */
	outer = call.kind == CLEAR_HANDSHAKE ? bpf_map_lookup_elem(&clear_calls, &thread) : NULL;
	if (outer && outer->ssl == call.ssl && outer->kind != CLEAR_HANDSHAKE)
		return;
	bpf_map_update_elem(&clear_calls, &thread, &call, BPF_ANY);
	if (call.kind == CLEAR_WRITE)
		clear_writes(&call);
}

SEC("?uprobe")
int clear_enter(const struct clear_registers *registers)
{
	__u64 probe = bpf_get_attach_cookie((void *)registers);

	if (CLEAR_PROBE_FORM(probe) == CLEAR_GO)
		go_enters(registers, probe);
	else
		thread_enters(registers, probe);
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
	if (config.propose)
		route_sample_line(look, conn->route, conn->service);
	/* Keep no text but that path. Of a line that comes in parts it is kept which routes match so far. */
	__builtin_memset(look->chunk, 0, sizeof(look->chunk));
	look->window = 0;
	if (first && conn->route != ROUTE_STRANGE)
		conn->answer = STATUS_UNKNOWN;
}

/* Return how many bytes of text the call has moved. */
static __always_inline __u32 clear_taken(const struct clear_call *call, __s64 returned)
{
	__u64 length = 0;

	if (call->form == CLEAR_INT || call->form == CLEAR_AT)
		returned = (int)returned; /* the upper half is undefined */
	if (returned <= 0 || call->kind == CLEAR_HANDSHAKE)
		return 0;
	if (call->form != CLEAR_AT)
		return returned;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)call->taken))
		return 0;
	return length;
}

/* Return whether the first text of a connection that may carry HTTP/2 is a request of HTTP/1. */
static __always_inline bool clear_is_http1(const struct clear_streams *t, __u64 text, __u32 length)
{
	__u8 got[4] = {};

	if (t->hidden != COUNTER_TLS_UNKNOWN || t->preface || length < sizeof(got) ||
	    bpf_probe_read_user(got, sizeof(got), (void *)text))
		return false;
	return got[0] >= 'A' && got[0] <= 'Z' && !(got[0] == 'P' && got[1] == 'R' && got[2] == 'I');
}

/* Text has been read while it was not known what the connection carries. */
static __always_inline void clear_decides(struct clear_conn *conn, const struct clear_streams *t)
{
	if (t->preface == CLEAR_PREFACE)
		conn->carries = TLS_CARRIES_HTTP2;
	else if (!t->preface)
		conn->carries = TLS_CARRIES_UNKNOWN;
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
	if (call->kind == CLEAR_WRITE) {
		clear_streams_wrote(t, call->text, length, call->sent_ns);
		return true;
	}
	if (conn && clear_is_http1(t, call->text, length)) {
		conn->carries = TLS_CARRIES_HTTP1;
		t->hidden = 0;
		clear_streams_over(t);
		return false;
	}
	arrival_ns = clear_records_taken(&t->records, length, call->length);
	if (conn && conn->arrival_ns)
		arrival_ns = conn->arrival_ns;
	clear_streams_read(t, call->text, length, arrival_ns);
	if (conn && !conn->carries)
		clear_decides(conn, t);
	return true;
}

static __always_inline void clear_returns(const struct clear_call *call, __s64 returned)
{
	__u32 length = clear_taken(call, returned);
	struct clear_conn *conn;

	if (!length || clear_follows(call, length) ||
	    (config.http && clear_pushes_moved(call->ssl, call->kind, call->text, length)) ||
	    call->kind == CLEAR_WRITE)
		return;
	conn = clear_conn_of(call->ssl);
	if (conn)
		clear_took(conn, call->text, length);
}

static __always_inline void go_returns(const struct clear_registers *registers, __u64 probe)
{
	struct clear_goroutine goroutine = goroutine_of(registers);
	struct clear_call *found = bpf_map_lookup_elem(&clear_goroutines, &goroutine), call;
	__u64 bounds[2];

	if (!found || found->kind != CLEAR_PROBE_KIND(probe))
		return;
	call = *found;
	bpf_map_delete_elem(&clear_goroutines, &goroutine);
	if (call.taken && !bpf_probe_read_user(bounds, sizeof(bounds), (void *)goroutine.address))
		call.text += bounds[1] - call.taken;
	clear_returns(&call, GO_FIRST(registers));
	go_releases(&call);
}

static __always_inline void thread_returns(const struct clear_registers *registers, __u64 probe)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct clear_call *found = bpf_map_lookup_elem(&clear_calls, &thread), call;

	if (!found || found->kind != CLEAR_PROBE_KIND(probe))
		return;
	call = *found;
	bpf_map_delete_elem(&clear_calls, &thread);
	clear_returns(&call, CLEAR_RETURNED(registers));
}

/* Go moves its stacks, so what a return probe puts there would end the program: probes are at its returns instead. */
SEC("?uretprobe")
int clear_return(const struct clear_registers *registers)
{
	__u64 probe = bpf_get_attach_cookie((void *)registers);

	if (CLEAR_PROBE_FORM(probe) == CLEAR_GO)
		go_returns(registers, probe);
	else
		thread_returns(registers, probe);
	return 0;
}

/* ---- which connection a call is for ---- */

/* Forget the former connection that the library had at this address. NULL: the kernel has no memory. */
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
 * A call has read @bytes up to @end. Libraries read only if they hold no complete record. So the record whose text comes
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
	t = c->marks & MARK_HTTP1 ? NULL : bpf_map_lookup_elem(&clear_streams, &key);
	if (t)
		clear_records_read(&t->records, c, ret, read_end(sk), !call->reads);
	call->reads++;
	return 0;
}

/*
 * The response has left by now. At the return from the system call its client may already run instead of the thread, which
 * comes to the end of SSL_write() much later. On loopback the client gets it within the call, so TCP's own time counts.
 */
SEC("?tp_btf/sock_send_length")
int BPF_PROG(clear_sent, const struct sock *sk, int ret, int flags)
{
	struct clear_call *call;
	struct conn *c;

	if (ret <= 0 || !port_observed(sk->__sk_common.skc_num))
		return 0;
	call = clear_call_now();
	c = call ? conn_of(sk) : NULL;
	if (c)
		call->sent_ns = clock_written(sk, c);
	return 0;
}
