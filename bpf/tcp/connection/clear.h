/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Plain text of TLS, with --tls: the text that a server gets from OpenSSL's SSL_read() and hands to SSL_write().
 * Other libraries have the like. A thread or goroutine that is in such a call and reads from a socket reads for this
 * call. So the library's connection and ours find each other, usually in the handshake, without a look into its structures. Text is looked at where it is. A
 * request's route and its response's status are kept until the response passes the socket, and nothing else.
 *
 * If the text is HTTP/2 its streams are exchanges, followed as those in clear text are (streams.h). Probes cannot reach
 * storage of sockets, so the state of such a connection is in a hash by process and the library's connection.
 *
 * Functions are not inline, as those of status.h: clear.bpf.c, clear_streams.bpf.c. Neighbours: status.h and route.h,
 * which look at the text; tls.h, which finds exchanges by records.
 */
#ifndef BPF_TCP_CONNECTION_CLEAR_H
#define BPF_TCP_CONNECTION_CLEAR_H

#include "state.h"
#include "wire/clear.h"

/* A call that a thread is in. */
struct clear_call {
	__u64 ssl; /* the library's connection: a number for us */
	__u64 text;
	__u64 length; /* of the buffer or of the text */
	__u64 taken;  /* CLEAR_AT: where the length is written to; CLEAR_GO: see go_stack_of() */
	__u64 sent_ns; /* when the last write to a socket within the call returned; 0: there was none */
	__u16 kind;  /* enum clear_kind */
	__u16 form;  /* enum clear_form */
	__u32 reads; /* of the socket, during the call */
};

/* A goroutine: the address of its structure. A thread runs many, and it may change its thread in a call. */
struct clear_goroutine {
	__u64 address;
	__u32 process;
	__u32 pad;
};

/* The library's connection of a process. Another one may get the same address later. */
struct clear_key {
	__u64 ssl;
	__u32 process;
	__u32 pad;
};

/* Ours. */
struct clear_socket {
	__u64 established_ns;
	__u32 flow_hash;
	__u32 pad;
};

/* A handshake may end while a reset arrives on another CPU: the second of both frees struct clear_streams. */
enum clear_end {
	CLEAR_SHOOK = 1 << 0,  /* the handshake has ended */
	CLEAR_CLOSED = 1 << 1, /* the connection has */
};

struct clear_conn {
	struct clear_socket socket;
	__u64 arrival_ns; /* of the text that is read next; 0: not known */
	struct flow flow; /* with config.ring_bytes */
	__u32 service;
	__s32 answer; /* status of the response that was handed over; STATUS_UNKNOWN after one use */
	__u8 route;   /* of the request that was read last, likewise ROUTE_TLS */
	__u8 asked;   /* its final response was not handed over yet */
	__u8 pushes;  /* enum push_kind: what the latest response is (clear_pushes.h) */
	__u8 whole;   /* the text that was read last ends with a head */
	__u32 ends;   /* enum clear_end */
	__u32 carries; /* enum tls_carries, if only the text shows it; ANY: it has not */
	struct route_look look;
};

/* With the socket: its connection of the library. */
struct clear_owner {
	struct clear_key key;
	struct clear_socket socket;
};

/*
 * The uses of a struct clear_streams: the number of calls that look at text now, and of goroutines in a write. The last user
 * frees it.
 */
enum clear_working {
	CLEAR_OVER = 1 << 30, /* the connection is over */
	CLEAR_FREED = 1U << 31,
};

/* How many records are kept that were read at once, and whose text was not taken yet. */
#define CLEAR_RECORDS 64 /* a power of 2 */

struct clear_record {
	__u64 arrival_ns; /* of the last byte; 0: not known */
	__u32 length;
	__u32 pad;
};

/* The client's records, to know which text came when (clear_records.bpf.c). */
struct clear_records {
	struct bytes bytes; /* of the current read */
	struct clear_record all[CLEAR_RECORDS];
	__u32 next;	/* number of records read so far */
	__u32 taken;	/* of these, the number whose text was taken */
	__u32 text;	/* bytes taken of the text of the first of the others */
	__u32 excess;	/* bytes of a record that are no text; 0: not known yet */
	__u32 left;	/* bytes of the current record that were not read yet */
	__u32 length;	/* of that record */
	__u32 count;	/* bytes of the current read that are left */
	__u32 end;	/* sequence number after them */
	__u8 header[8]; /* of a record */
	__u8 have;	/* bytes of it */
	__u8 lost; /* the bytes are no records, or there were too many: not known until the next call */
	__u8 pad[6];
};

#define CLEAR_PREFACE 24

/* A connection with HTTP/2, or perhaps with it: streams.h follows its text. */
struct clear_streams {
	struct http2_conn conn;
	struct clear_key key;
	struct clear_socket socket;
	__u32 working; /* enum clear_working */
	__u32 preface; /* bytes of the client's preface that were read, of CLEAR_PREFACE */
	__u32 hidden;  /* what counts the connection if it is not followed; 0: it is counted */
	__u8 reading;  /* a goroutine is in a read */
	__u8 writing;  /* or in a write, which is one of @working */
	__u8 pad[2];
	struct clear_records records;
};

struct clear_calls_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);	/* the thread */
	__type(value, struct clear_call);
};

struct clear_goroutines_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_goroutine);
	__type(value, struct clear_call);
};

struct clear_conns_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_key);
	__type(value, struct clear_conn);
};

struct clear_sockets_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_socket);
	__type(value, struct clear_key);
};

struct clear_owners_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct clear_owner);
};

/* Not of the kind that drops the oldest entry: text would be missed unnoticed. */
struct clear_streams_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct clear_key);
	__type(value, struct clear_streams);
};

extern struct clear_calls_map clear_calls SEC(".maps");
extern struct clear_goroutines_map clear_goroutines SEC(".maps");
extern struct clear_conns_map clear_conns SEC(".maps");
extern struct clear_sockets_map clear_sockets SEC(".maps");
extern struct clear_owners_map clear_owners SEC(".maps");
extern struct clear_streams_map clear_streams SEC(".maps");
/* States of zeros, for which the stack has no room. */
extern __u64 clear_nothing[sizeof(struct clear_conn) / sizeof(__u64)];
extern __u64 clear_streams_nothing[sizeof(struct clear_streams) / sizeof(__u64)];

static __always_inline struct clear_key clear_key_of(__u64 ssl)
{
	return (struct clear_key){.ssl = ssl, .process = bpf_get_current_pid_tgid() >> 32};
}

static __always_inline struct clear_conn *clear_conn_of(__u64 ssl)
{
	struct clear_key key = clear_key_of(ssl);

	return bpf_map_lookup_elem(&clear_conns, &key);
}

/* Programs of Go are looked into. */
extern __u32 clear_go;

/* The registers at a probe, and those of user space in a system call, as <asm/ptrace.h> has them. */
#if defined(__TARGET_ARCH_x86)
struct clear_registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
};

#define CLEAR_FIRST(r)	  ((r)->di)
#define CLEAR_SECOND(r)	  ((r)->si)
#define CLEAR_THIRD(r)	  ((r)->dx)
#define CLEAR_FOURTH(r)	  ((r)->cx)
#define CLEAR_RETURNED(r) ((r)->ax)
/* Go's ABIInternal, as its compiler's sources document it: the first arguments and results, and the goroutine. */
#define GO_FIRST(r)	((r)->ax)
#define GO_SECOND(r)	((r)->bx)
#define GO_THIRD(r)	((r)->cx)
#define GO_GOROUTINE(r) ((r)->r14)
#elif defined(__TARGET_ARCH_arm64)
struct clear_registers {
	__u64 regs[31];
};

#define CLEAR_FIRST(r)	  ((r)->regs[0])
#define CLEAR_SECOND(r)	  ((r)->regs[1])
#define CLEAR_THIRD(r)	  ((r)->regs[2])
#define CLEAR_FOURTH(r)	  ((r)->regs[3])
#define CLEAR_RETURNED(r) ((r)->regs[0])
#define GO_FIRST(r)	  ((r)->regs[0])
#define GO_SECOND(r)	  ((r)->regs[1])
#define GO_THIRD(r)	  ((r)->regs[2])
#define GO_GOROUTINE(r)	  ((r)->regs[28])
#else
#error "the registers of this architecture are not known"
#endif

/* Go's code holds the goroutine in a register, also where it makes system calls. If not there is no such call. */
static __always_inline struct clear_call *clear_goroutine_call_now(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
	const struct clear_registers *registers = (const void *)bpf_task_pt_regs(task);
	struct clear_goroutine goroutine = {.process = bpf_get_current_pid_tgid() >> 32};

	if (bpf_probe_read_kernel(&goroutine.address, sizeof(goroutine.address),
				  &GO_GOROUTINE(registers)))
		return NULL;
	return bpf_map_lookup_elem(&clear_goroutines, &goroutine);
}

static __always_inline struct clear_call *clear_call_now(void)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct clear_call *call = bpf_map_lookup_elem(&clear_calls, &thread);

	return call || !clear_go ? call : clear_goroutine_call_now();
}

static __always_inline bool clear_is_same(const struct clear_socket *a,
					  const struct clear_socket *b)
{
	return a->established_ns == b->established_ns && a->flow_hash == b->flow_hash;
}

/* Return whether the socket passes records. TLS in the kernel takes plain text. */
static __always_inline bool clear_is_needed(const struct conn *c)
{
	return (c->marks & (MARK_TLS | MARK_SETTLED)) == MARK_TLS;
}

/*
 * The current system call writes records. Return the status of the response that they begin, or what else
 * status_written() of status.h returns.
 */
int clear_answer(const struct conn *c);

/* Return the route of the request that they answer, once; ROUTE_TLS: it is not known. */
int clear_route(const struct conn *c);

/*
 * The handshake has ended, and HTTP/2 follows, or perhaps does. Return 1 if the text will show it. Otherwise the
 * caller has to add to @counter.
 */
int clear_hides(__u32 service, __u32 counter);

/*
 * Return what the text has shown that the connection carries (enum tls_carries); ANY: nothing yet. @answers: it writes, which
 * may be an answer. Then it is too late for that.
 */
int clear_carries(const struct conn *c, int answers);

/* Follow @length bytes of text that were read, or handed over and written @sent_ns; 0: written now. Return 0. */
int clear_streams_read(struct clear_streams *t, __u64 text, __u32 length, __u64 arrival_ns);
int clear_streams_wrote(struct clear_streams *t, __u64 text, __u32 length, __u64 sent_ns);

/* A call has read @count bytes up to @end from the socket, as its @first ones or not. Return 0. */
int clear_records_read(struct clear_records *r, struct conn *c, __u32 count, __u32 end, int first);
/*
 * A call has got @length bytes of text, of @asked at most. Return when their record was complete; 0: not
 * known.
 */
__u64 clear_records_taken(struct clear_records *r, __u32 length, __u32 asked);

/* The connection is over. Free its state, unless it is used: the last user frees it. Return 0. */
int clear_streams_over(struct clear_streams *t);
/* A goroutine's write is no user of it any more. Return 0. */
int clear_streams_release(struct clear_streams *t);

#endif
