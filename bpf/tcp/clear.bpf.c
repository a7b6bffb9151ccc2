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
#include "clear.h"

#include "route.h"
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

static __always_inline struct clear_key clear_key_of(__u64 ssl)
{
	return (struct clear_key){.ssl = ssl, .process = bpf_get_current_pid_tgid() >> 32};
}

static __always_inline struct clear_conn *clear_conn_of(__u64 ssl)
{
	struct clear_key key = clear_key_of(ssl);

	return bpf_map_lookup_elem(&clear_conns, &key);
}

static __always_inline struct clear_call *clear_call_now(void)
{
	__u64 thread = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&clear_calls, &thread);
}

static __always_inline struct clear_socket clear_socket_of(const struct conn *c)
{
	return (struct clear_socket){.established_ns = c->established_ns,
				     .flow_hash = c->flow_hash};
}

static __always_inline bool clear_is_of(const struct clear_conn *conn,
					const struct clear_socket *socket)
{
	return conn->socket.established_ns == socket->established_ns &&
	       conn->socket.flow_hash == socket->flow_hash;
}

/* ---- what the socket's programs ask ---- */

static __always_inline struct clear_conn *clear_of(const struct conn *c)
{
	struct clear_socket socket = clear_socket_of(c);
	struct clear_key *key = bpf_map_lookup_elem(&clear_sockets, &socket);
	struct clear_conn *conn = key ? bpf_map_lookup_elem(&clear_conns, key) : NULL;

	return conn && clear_is_of(conn, &socket) ? conn : NULL;
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

	if (call.kind == CLEAR_READ_EX)
		call.length = CLEAR_FOURTH(registers);
	if (call.kind == CLEAR_WRITE)
		call.length &= 0x7fffffff; /* of an int the upper half is undefined */
	bpf_map_update_elem(&clear_calls, &thread, &call, BPF_ANY);
	if (call.kind == CLEAR_WRITE)
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
	conn->route = route_in(look, first);
	conn->asked = true;
	/* Keep no text. Of a line that comes in parts it is kept which routes match so far. */
	__builtin_memset(look->chunk, 0, sizeof(look->chunk));
	look->window = 0;
	if (first && conn->route != ROUTE_STRANGE)
		conn->answer = STATUS_UNKNOWN;
}

static __always_inline __u32 clear_taken(const struct clear_call *call, int returned)
{
	__u64 length = 0;

	if (returned <= 0)
		return 0;
	if (call->kind == CLEAR_READ)
		return returned;
	if (call->kind != CLEAR_READ_EX ||
	    bpf_probe_read_user(&length, sizeof(length), (void *)call->length))
		return 0;
	return length;
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
	conn = length ? clear_conn_of(call.ssl) : NULL;
	if (conn)
		clear_took(conn, call.text, length);
	return 0;
}

/* ---- which connection a call is for ---- */

/* Forget the former connection that OpenSSL had at this address. */
static __always_inline void clear_begin(const struct clear_call *call,
					const struct clear_socket *socket)
{
	struct clear_key key = clear_key_of(call->ssl);
	struct clear_conn *conn;

	bpf_map_update_elem(&clear_sockets, socket, &key, BPF_ANY);
	bpf_map_update_elem(&clear_conns, &key, &clear_nothing, BPF_ANY);
	conn = bpf_map_lookup_elem(&clear_conns, &key);
	if (!conn)
		return;
	conn->socket = *socket;
	conn->route = ROUTE_TLS;
}

SEC("?tp_btf/sock_recv_length")
int BPF_PROG(clear_received, struct sock *sk, int ret, int flags)
{
	struct clear_socket socket;
	struct clear_conn *conn;
	struct clear_call *call;
	struct conn *c;

	if (ret <= 0 || !port_observed(sk->__sk_common.skc_num))
		return 0;
	call = clear_call_now();
	c = call ? conn_of(sk) : NULL;
	/* Of older connections TLS is not known either. */
	if (!c || !c->established_ns)
		return 0;
	socket = clear_socket_of(c);
	conn = clear_conn_of(call->ssl);
	if (!conn || !clear_is_of(conn, &socket))
		clear_begin(call, &socket);
	return 0;
}
