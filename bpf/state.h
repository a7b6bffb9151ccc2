/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * State that the programs share: the state of a connection, and the maps. state.bpf.c defines them. Neighbours:
 * kernel.h (kernel structures), tcp/connection/place.h (where a connection is kept), service.h (which listeners are observed).
 */
#ifndef BPF_STATE_H
#define BPF_STATE_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "array.h"
#include "atomic.h"
#include "copies.h"
#include "fin.h"
#include "protocol/request.h"
#include "tcp/state/command.h"
#include "tcp/state/http2.h"
#include "tcp/state/push.h"
#include "tcp/state/talk.h"
#include "wire/config.h"
#include "wire/counters.h"
#include "wire/event.h"
#include "wire/route.h"
#include "wire/status.h"
#include "wire/window.h"

enum conn_phase {
	CONN_IDLE,	 /* no request under way */
	CONN_READING,	 /* a request was read, its response has not begun */
	CONN_RESPONDING, /* the response has begun; it ends with the next request or the connection */
	CONN_UNKNOWN,	 /* perhaps a request was under way when the observation began */
	CONN_CUT_OFF,	 /* a request was under way then, and its response has begun */
	CONN_PUSHING,	 /* the response is over; what follows is pushed (tcp/pushes.h) */
};

enum conn_flag {
	CONN_LISTENER = 1 << 0,	    /* this is the storage of a listener: children clone it */
	CONN_PREEXISTING = 1 << 1,  /* established before the observation */
	CONN_QUEUED = 1 << 2,	    /* its first data arrived before accept() */
	CONN_SERVER_FIN = 1 << 3,   /* the server's FIN came first */
	CONN_CLIENT_FIN = 1 << 4,   /* the client's */
	CONN_WRITES_OVER = 1 << 5,  /* the server has sent its FIN: nothing will be answered */
	CONN_RESET = 1 << 6,	    /* an RST was received */
	CONN_REFUSED_DATA = 1 << 7, /* data came after close(): the RST is the server's */
	CONN_GOODBYE = 1 << 8,	    /* the client's FIN came right after its last message */
};

/* Marks of the exchange under way. Until the connection closes, only the process writes them. */
enum conn_mark {
	MARK_OVERLAPPED =
		1 << 0, /* the server wrote between this request's arrival and its first read */
	MARK_MULTIPLEXED = 1 << 1, /* HTTP/2: reads and writes are no requests and responses */
	MARK_SAMPLED = 1 << 2,	   /* will be sent as an event: `sample` is kept */
	MARK_TRANSMIT = 1 << 3,	   /* its response is followed to the wire */
	MARK_SHARE = 1 << 4,	   /* it belongs to the random share that --transmit counts */
	MARK_SETTLED = 1 << 5,	   /* its bytes need no further look (tcp/speaks.h) */
	MARK_UNSEEN = 1 << 6,	   /* a part of its request was read unseen, by splice() say */
	MARK_CARRIED = 1 << 7,	   /* its response began in an earlier epoch: counted as carried */
	MARK_TLS = 1 << 8,
	MARK_HTTP1 = 1 << 9,	    /* each of its messages wants an answer */
	MARK_GREETED = 1 << 10,	    /* the server spoke first, or perhaps did */
	MARK_MYSQL_CLOSE = 1 << 11, /* its header may be that of COM_STMT_CLOSE (tcp/oneway.h) */
	MARK_MYSQL_QUIT = 1 << 12,  /* its header may be that of COM_QUIT */
	MARK_GOODBYE = 1 << 13,	    /* its message says that the client leaves */
	MARK_ONEWAY = 1 << 14,	    /* its message is complete and wants no answer */
	MARK_HELD = 1 << 15, /* TCP holds back the end of its response (tcp/connection/nagle.h) */
	/* Marks of the connection, not of an exchange. */
	MARK_LASTING = MARK_SETTLED | MARK_TLS | MARK_HTTP1 | MARK_GREETED,
};

enum conn_touch {
	TOUCHED = 1 << 0,      /* the server has read from it or written to it: it is accepted */
	TOUCHED_KEPT = 1 << 1, /* its socket has a struct command_conn of tcp/pipeline.h */
};

/* Further state of a sampled exchange; other exchanges do not use it. */
struct conn_sample {
	__u64 accept_delay_ns; /* how long the request waited for accept() */
	__u64 on_wire_ns;
	__u64 acked_ns;
	__u32 bytes_in;
	__u32 bytes_out;
	__u32 pid;
	__u32 write_seq; /* sequence number after the response's last byte */
	__u32 wire_seq;	 /* after the last byte that was handed to the driver, at on_wire_ns */
	__u32 acked_seq; /* after the last byte that the peer has acknowledged, at acked_ns */
};

/*
 * With --cpu: a snapshot of the clocks of the reading thread (tcp/connection/thread.h). After the first write of the exchange:
 * the deltas since that snapshot, all 0 if they are not known.
 */
struct conn_split {
	__u32 thread; /* struct thread.id; 0: the snapshot is not valid */
	__u32 unseen; /* all switches of that thread that its clocks have missed */
	__u64 running_ns;
	__u64 runnable_ns;
};

/* The latest bytes that became readable while others were still unread (tcp/connection/arrival.h): mostly there are none. */
#define ARRIVALS_QUEUED 8 /* a power of 2 */

struct arrival_queue {
	__u64 ns[ARRIVALS_QUEUED];
	__u64 range[ARRIVALS_QUEUED];
	__u32 write_seq[ARRIVALS_QUEUED];
	__u32 next; /* number of arrivals queued so far */
	__u32 pad;
};

/*
 * A connection. It starts 8 bytes after the start of a cache line. In socket storage these 8 bytes are the kernel's,
 * and in struct conn_place they are left_ns. So the first 56 bytes are one line, and the next 64 another.
 *
 * These fields are usually cache-cold, and each line costs a wait. A request that is neither sampled nor split
 * touches only these two lines. The holder of the socket's lock writes the first line: mostly softirq, perhaps on
 * another CPU than the process. The process reads that line. While the connection is open, only the process writes
 * the second line.
 */
struct conn {
	/* When bytes became readable that arrived while nothing was unread (tcp/connection/arrival.h). */
	__u64 arrival_ns[2];
	__u64 arrival_range[2];	    /* sequence numbers: lower half to upper half, exclusive */
	__u32 arrival_write_seq[2]; /* the server's write_seq then */
	__u16 newest;		    /* index of the newer one */
	__u16 flags;		    /* enum conn_flag */
	__u32 announced; /* the sequence number after the last byte that is known to be readable */
	__u32 service;
	__u32 flow_hash; /* see wire/flow.h */

	/* Of this exchange: max(arrival, accepted); 0: not timed. Before the first read: accepted. */
	__u64 start_ns;
	__u64 first_read_ns;
	__u64 last_read_ns;
	union {
		__u64 accept_delay_ns; /* while CONN_READING: how long its request waited for accept() */
		__u64 first_write_ns;
	};
	__u64 last_write_ns;
	__u32 bytes_in;	      /* read since the last response began; not above 2^32 - 1 */
	__u32 read_seq;	      /* after the last byte whose read was seen */
	__u32 index;	      /* of this exchange on its connection, from 0 */
	__u16 respond_bucket; /* the bucket that counts it in RESPOND; 0: not yet counted */
	__u16 busy_ticks;     /* TCP's busy ticks at the first read (tcp/connection/busy.h) */
	__u16 marks;	      /* enum conn_mark */
	__u8 phase;	      /* enum conn_phase */
	__u8 touched;	      /* enum conn_touch */
	__u32 pending;	      /* 1: its event is still to be sent (tcp/connection/sample.h) */

	__u64 established_ns; /* 0: preexisting */
	__u64 accepted_ns;    /* with ACCEPT_RETURNED; 0: not yet, or not seen */
	union {
		__u32 retransmits; /* the part of total_retrans that is already counted */
		__u32 drops;	   /* a listener's: the same of sk_drops */
	};
	__u16 server_port;    /* of a sampled exchange */
	__u8 accept_recorded; /* ACCEPT_QUEUE already has its wait */
	__u8 looks;	      /* how many of its reads were looked at (tcp/speaks.h) */
	union {
		struct fin fin;		    /* with CONN_SERVER_FIN */
		struct {		    /* a listener's: */
			__u32 depth_max;    /* the greatest depth of its queue */
			__u32 drops_before; /* sk_drops when it was seen first */
		};
	};
	/* With --route (tcp/http/route.h). */
	__u8 route; /* of this exchange */
	/* Of the latest read of an older connection that seems to be a frame of WebSocket's (tcp/speaks.h). */
	__u8 frames;	  /* how many such reads there were, of different masks */
	__u16 mask;	  /* the start of its mask */
	__u32 route_skip; /* bytes of the current read before those of a message */
	struct conn_sample sample;
	struct conn_split split;
	struct arrival_queue queue;
};

_Static_assert(__builtin_offsetof(struct conn, start_ns) == 56, "the process's line begins here");
_Static_assert(__builtin_offsetof(struct conn, established_ns) == 56 + 64, "and here the rest");

struct conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct conn);
};

/*
 * [hash of addresses and ports] % CONN_PLACES: the socket whose connection is kept here
 * (tcp/connection/place.h). Its address is in a line that no exchange writes. So a read does not wait for
 * another CPU's line before it has read the clock. BPF_F_MMAPABLE also aligns it to a cache line.
 */
struct conn_place {
	__u64 left_ns; /* when the last owner left; 0: there was none */
	struct conn conn;
	__u64 sk; /* its address; 0: the place is free */
	__u64 pad[4];
};

_Static_assert(sizeof(struct conn_place) % 64 == 0, "whole lines of memory");

DECLARE_ARRAY(conn_places, struct conn_place, 1, BPF_F_MMAPABLE);

/* [copy_of(service)]: one inlined lookup, readable by mmap without a system call. */
DECLARE_ARRAY(slots, struct service_slot, 1, BPF_F_MMAPABLE);

/* A thread that has read from an observed socket; see tcp/connection/thread.h. */
enum thread_state {
	THREAD_RUNNING,
	THREAD_RUNNABLE,
	THREAD_BLOCKED,
};

struct thread {
	__u32 tid;	/* in the initial pid namespace; 0: the place is free */
	__u32 state;	/* enum thread_state */
	__u32 id;	/* no other thread has the same */
	__u32 switches; /* switches away from a CPU that were seen */
	__u64 since_ns;
	__u64 running_ns;  /* before since_ns */
	__u64 runnable_ns; /* likewise */
};

/* THREAD_PLACES of them with --cpu. */
DECLARE_ARRAY(threads, struct thread, 1, 0);

/* [copy_of(service)], with --transmit. */
DECLARE_ARRAY(transmits, struct service_transmit, 1, BPF_F_MMAPABLE);

/* [copy_of(service)], with --cpu. */
DECLARE_ARRAY(splits, struct service_split, 1, BPF_F_MMAPABLE);

/* [copy_of(service)], with --http. */
DECLARE_ARRAY(statuses, struct service_statuses, 1, BPF_F_MMAPABLE);

/* [service], shared by all CPUs, with config.streams. */
DECLARE_ARRAY(windows, struct service_windows, 1, BPF_F_MMAPABLE);

/* [copy_of(service) × route_rows + row], with --route. */
DECLARE_ARRAY(route_rows, struct service_route, 1, BPF_F_MMAPABLE);

/* [service_index()], with --propose-routes. */
DECLARE_ARRAY(route_paths, struct route_paths, 1, BPF_F_MMAPABLE);

/*
 * [connection's number and hpack_request.field]: the texts of paths in dynamic tables, with --propose-routes. A text that
 * gives way to another while it is copied may be a mix of both: one path of a sample is then wrong.
 */
struct route_texts_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, struct route_path);
};

/*
 * A request's line, as far as it was read, and the bytes of the current read. With --route each
 * connection has one. The bytes are here for the same reason as those of struct walk (tcp/state/talk.h).
 */
#define ROUTE_CHUNK 64 /* a power of 2 */

struct route_look {
	struct request_line line;
	__u32 left; /* bytes of the read that are not in the chunk yet */
	__u32 skip; /* bytes before the first one that matters */
	__u32 have; /* bytes in the chunk */
	__u32 at;   /* of these, the number taken */
	__u32 more; /* another request was found */
	__u64 window;
	struct bytes bytes;
	__u8 chunk[ROUTE_CHUNK];
	struct route_path path; /* with config.propose */
	__u32 pad;
};

struct route_looks_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct route_look);
};

/* The numbers of the services that have slots. */
struct services_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct service_key);
	__type(value, __u32);
};

/*
 * Free numbers of services: a ring that user space fills (observer/kernel/running/services.c). Their slots
 * are zeroed and have their generation.
 */
DECLARE_ARRAY(services_free, __u32, 1, 0);

/* Services that found no slot, and how many of their connections were not observed. */
struct services_dropped_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SERVICES_DROPPED_TOLD);
	__type(key, struct service_key);
	__type(value, __u64);
};

/* [0]: the cgroup whose processes' listeners are observed, with config.cgroup. */
struct target_cgroup_map {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

DECLARE_ARRAY(gauges, struct service_gauges, 1, BPF_F_MMAPABLE);
DECLARE_ARRAY(listeners, struct listener_gauge, LISTENERS_TOLD, BPF_F_MMAPABLE);
DECLARE_ARRAY(opens, struct service_open, 1, BPF_F_MMAPABLE);

/* [service], shared by all CPUs: updated at most once per connection. */
DECLARE_ARRAY(spans, struct service_spans, 1, BPF_F_MMAPABLE);
DECLARE_ARRAY(port_places, struct port_place, PORT_PLACES, BPF_F_MMAPABLE);

struct owners_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct owner_key);
	__type(value, __u8);
};

/*
 * The processes whose connect() is under way: by the client's socket, and once that is established, by the flow
 * (tcp/connection/front.h). A connection that fails stays until others need its place.
 */
struct connect_key {
	__u64 socket; /* its address, or the flow's ports */
	__u32 hash;   /* of the flow */
	__u32 netns;
};

struct connects_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct connect_key);
	__type(value, __u32);
};

/* How many connections to a service the process has opened; .service is the service connected to. */
struct fronts_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct owner_key);
	__type(value, __u64);
};

/* Processes that serve observed services, with the latest one; those that connect to nothing give way to others. */
struct serving_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
};

/* How many connections these have opened, by process and place. */
struct calls_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct call_key);
	__type(value, __u64);
};

/* Connections on their way through accept(), by socket address; only with ACCEPT_SYSCALL. */
struct accepting {
	__u64 established_ns;
	__u64 accepted_ns; /* 0: not yet */
	__u32 service;
	__u32 pad;
};

struct accepting_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, __u64);
	__type(value, struct accepting);
};

/* Sampled exchanges on their way to user space. */
struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set before load */
};

extern struct conns_map conns SEC(".maps");
extern struct route_looks_map route_looks SEC(".maps");
extern struct route_texts_map route_texts SEC(".maps");
extern struct services_map services SEC(".maps");
extern struct services_dropped_map services_dropped SEC(".maps");
extern struct target_cgroup_map target_cgroup SEC(".maps");
extern struct owners_map owners SEC(".maps");
extern struct connects_map connects SEC(".maps");
extern struct fronts_map fronts SEC(".maps");
extern struct serving_map serving SEC(".maps");
extern struct calls_map calls SEC(".maps");
extern struct accepting_map accepting SEC(".maps");
extern struct ring_map ring SEC(".maps");

extern const volatile struct observer_config config;

/* A struct conn of zeros, for which the stack has no room. */
extern __u64 conn_nothing[sizeof(struct conn) / sizeof(__u64)];

/* One bit per local port that some observed service has: the cheapest filter, before any helper. */
extern __u64 observed_ports[1024];
/* Counts of all numbers ever put into services_free, and taken out. */
extern __u32 services_given, services_taken;
/*
 * Number of services in services_dropped, and of connections that were not observed because their
 * service has no slot.
 */
extern __u64 services_dropped_count, connections_dropped;
/* Listeners without a slot that the pass over the sockets has met. */
extern __u32 listeners_idle;
/*
 * How many connections with followed responses share the lower bits of their hash. Nearly every packet belongs to
 * another connection, and this number alone rules it out.
 */
#define TRANSMIT_PLACES 4096
extern __u32 transmit_followed[TRANSMIT_PLACES];
/* Set by user space before its last pass over the sockets, which turns their timestamps off. */
extern __u32 transmit_leaving;
/* User space raises epoch when a measured phase begins, and sets epoch_ns to that time. */
extern __u64 epoch;
extern __u64 epoch_ns;
/* Exchanges whose hash is below it are sampled: 0 … 2^32, set by user space. */
extern __u64 sample_threshold;
/* TCP reads its clock at each read (tcp/connection/clock.h): set by user space, observer/kernel/read_clock.h. */
extern __u32 read_clock;
/* One bit per place of `threads`: a thread has it. */
extern __u64 threads_known[THREAD_PLACES / 64];
/* The number of threads that have ever got a clock. */
extern __u32 threads_next;
/* Set by user space when all of the scheduler's programs are attached. Earlier clocks would be wrong. */
extern __u32 threads_watched;
/* Set by user space while a pass over the sockets is to send the complete sampled exchanges. */
extern __u32 sample_flushing;
/* The range that connect() chooses from, set by user space before each pass; 0, 0: not known. */
extern __u16 ports_low, ports_high;
/*
 * Of the current pass: a bit for each port that is reserved or listened on, and the number of
 * sockets without room in port_places.
 */
extern __u64 ports_held[1024];
extern __u64 ports_unplaced;
/* Listeners that the pass over the sockets has met. */
extern __u32 listeners_next;
/* With config.beside: a connection speaks HTTP/2; user space has attached the programs for its streams (tcp/http/beside.h). */
extern __u32 streams_wanted, streams_attached;

/* Return the place of @sk: the kernel's struct sock, as struct bpf_sock has other fields. */
static __always_inline struct conn_place *place_of(const void *sk)
{
	__u32 index = ((const struct sock_common *)sk)->skc_hash & (CONN_PLACES - 1);

	return bpf_map_lookup_elem(&conn_places, &index);
}

/* Return the connection of @sk, whose place is @place. */
static __always_inline struct conn *conn_at(struct conn_place *place, const void *sk)
{
	if (place && place->sk == (__u64)sk)
		return &place->conn;
	return bpf_sk_storage_get(&conns, (void *)sk, 0, 0);
}

static __always_inline struct conn *conn_of(const void *sk)
{
	return conn_at(place_of(sk), sk);
}

/* Store a copy of @first as the state of a socket that has none. NULL: the kernel has no memory. */
static __always_inline struct conn *conn_new(const void *sk, struct conn *first)
{
	return bpf_sk_storage_get(&conns, (void *)sk, first, BPF_SK_STORAGE_GET_F_CREATE);
}

/* Return where the current CPU's copy of the service's slot is, and of what else each copy has. */
static __always_inline __u32 copy_of(__u32 service)
{
	return copy_of_cpu(bpf_get_smp_processor_id()) * config.max_services +
	       service_index(service);
}

static __always_inline struct service_slot *slot_of(__u32 service)
{
	__u32 index = copy_of(service);
	struct service_slot *slot = bpf_map_lookup_elem(&slots, &index);

	return slot && slot->generation == service_generation(service) ? slot : NULL;
}

static __always_inline struct service_open *open_of(__u32 service)
{
	__u32 index = service_index(service);

	return bpf_map_lookup_elem(&opens, &index);
}

/* For counters that softirq and process context share: a plain += could lose the softirq's. */
static __always_inline void count_atomic(struct service_slot *slot, enum counter counter, __u64 n)
{
	__sync_fetch_and_add(&slot->counters[counter], n);
}

/* For counters and histograms that only process-context programs touch; see SLOT_ADD() of tcp/exchange.h. */
static __always_inline void count(struct service_slot *slot, enum counter counter, __u64 n)
{
	COPY_ADD(slot->counters[counter], n);
}

/*
 * Return the bucket of @value_ns in a form that the verifier follows. Without the barrier clang tests only the part
 * of the index that decides, and the verifier loses the bound of the sum.
 */
static __always_inline __u32 bucket_of(__u64 value_ns)
{
	__u32 index = bucket_index(value_ns);

	barrier_var(index);
	return index < BUCKET_COUNT ? index : BUCKET_COUNT - 1;
}

static __always_inline void stage_add(struct stage_histogram *h, __u64 value_ns)
{
	COPY_ADD(h->buckets[bucket_of(value_ns)], 1);
	COPY_ADD(h->sum_ns, value_ns);
	copy_raise(&h->max_ns, value_ns);
}

/*
 * For programs that can be preempted, like fexit's: another of our programs may then run on this
 * CPU.
 */
static __always_inline void stage_add_atomic(struct stage_histogram *h, __u64 value_ns)
{
	__sync_fetch_and_add(&h->buckets[bucket_of(value_ns)], 1);
	__sync_fetch_and_add(&h->sum_ns, value_ns);
	copy_raise(&h->max_ns, value_ns);
}

/*
 * Count a listener's drops: connections without room in its accept or SYN queue, and unwanted ones.
 */
static __always_inline void listener_drops(struct conn *c, const struct sock *sk)
{
	struct service_slot *slot = slot_of(c->service);
	__u32 drops = (__u32)sk->sk_drops.counter;

	if (slot)
		count_atomic(slot, COUNTER_LISTEN_DROPS, drops - c->drops);
	c->drops = drops;
}

/*
 * Add to a histogram of all CPUs. Without atomics that return a value the maximum may be missed;
 * user space then uses its bucket.
 */
static __always_inline void stage_add_shared(struct stage_histogram *h, __u64 value_ns)
{
	__sync_fetch_and_add(&h->buckets[bucket_of(value_ns)], 1);
	__sync_fetch_and_add(&h->sum_ns, value_ns);
	atomic_raise(&h->max_ns, value_ns);
}

/* Add to a span of @service, also from softirq. */
static __always_inline void span_add(__u32 service, enum span span, __u64 value_ns)
{
	__u32 index = service_index(service);
	struct service_spans *found = bpf_map_lookup_elem(&spans, &index);

	if (found && slot_of(service))
		stage_add_shared(&found->spans[span], value_ns);
}

static __always_inline void note_last_message(struct service_slot *slot, __u64 now)
{
#ifdef COPIES_SHARED
	copy_raise(&slot->last_message_ns, now);
#else
	slot->last_message_ns = now;
#endif
}

/* Note the first and the last message of the epoch. */
static __always_inline void note_messages(struct service_slot *slot, __u64 arrival_ns, __u64 now)
{
	note_last_message(slot, now);
#ifdef COPIES_SHARED
	atomic_lower(first_message_at(slot, epoch), arrival_ns);
#else
	if (slot->epoch != epoch) {
		slot->epoch = epoch;
		slot->first_message_ns = arrival_ns;
	} else if (arrival_ns < slot->first_message_ns || !slot->first_message_ns) {
		slot->first_message_ns = arrival_ns;
	}
#endif
}

#endif
