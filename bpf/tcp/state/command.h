/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* State of connections whose commands are followed, with --protocol or --http. Neighbours: commands.h, pipeline.h, talk.h. */
#ifndef BPF_TCP_STATE_COMMAND_H
#define BPF_TCP_STATE_COMMAND_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "array.h"
#include "talk.h"
#include "wire/command.h"
#include "wire/flow.h"
#include "protocol/command.h"
#include "protocol/http1_head.h"
#include "protocol/request.h"

/* Requests without a reply, and how many different times these have. Powers of 2. */
#define COMMANDS_QUEUED	 1024
#define COMMANDS_BATCHES 32
#define COMMANDS_CHUNK	 64

/* Words of 8 bytes of a text that are looked at in one step. After its last bytes a step may reach others. */
#define PIPELINE_WORDS 2
#define PIPELINE_AFTER (PIPELINE_WORDS + 1)

/* Of struct command_conn.protocol, with --http. It is not given for a port, but seen (pipeline.h). */
#define COMMAND_HTTP1 COMMAND_PROTOCOL_COUNT

/*
 * In struct command_conn.queue: a row (of HTTP: struct conn.route), plus one of these bits, and above them the request's
 * bytes. COMMAND_LEAVES: the server leaves the order after the reply. COMMAND_BODILESS: the method is HEAD. A request
 * that has more bytes was read by several reads, and is the first of a batch.
 */
#define COMMAND_ROW	   0x3f
#define COMMAND_BODILESS   0x40
#define COMMAND_LEAVES	   0x80
#define COMMAND_BYTES	   8
#define COMMAND_BYTES_MOST 0xffffffU

/* Of struct command_conn.over: enum route_unknown plus 1, or one of these: */
#define COMMAND_LEFT	 (ROUTE_UNKNOWN_COUNT + 1) /* the server has left the order */
#define COMMAND_UPGRADED (ROUTE_UNKNOWN_COUNT + 2) /* another protocol follows */

struct command_times {
	__u64 start_ns; /* max(arrival, accepted); 0: not timed */
	__u64 accept_delay_ns;
	__u64 first_read_ns;
	__u64 last_read_ns;
};

/* Return when the request arrived; not timed: when it was read. */
static __always_inline __u64 command_since(const struct command_times *t)
{
	return t->start_ns ? t->start_ns - t->accept_delay_ns : t->first_read_ns;
}

/* Requests with the same times: one read has returned all of them. */
struct command_batch {
	struct command_times times;
	__u32 requests; /* without a reply */
	__u32 bytes;	/* of the first one */
};

/* The reply under way. */
struct command_reply {
	struct command_times times;
	__u64 first_write_ns;
	__u64 last_write_ns;
	__u32 bytes_in;
	__u32 begun_seq;      /* the sequence number of its first byte */
	__u32 end_seq;	      /* and that after its last one so far */
	__u32 pid;	      /* of a sampled exchange */
	__u16 respond_bucket; /* see struct conn */
	__u8 row;
	__u8 counts; /* an exchange does: it answers a request */
	__u8 carried;
	__u8 sampled;
	__u8 named;
	__u8 leaves; /* the server leaves the order after it */
};

struct command_conn {
	struct command_side in, out;
	struct command_times open; /* of the request under way */
	__u32 open_seq;		   /* the sequence number of its first byte */
	__u8 opened;		   /* there is one */
	__u8 over;		   /* not 0: its bytes are not followed any more */
	__u8 protocol;		   /* enum command_protocol, or COMMAND_HTTP1 */
	__u8 ended;		   /* its requests will not be answered */
	struct request_line line;  /* of HTTP: of the request under way, with --route */
	__u32 route;		   /* ROUTE_WANTED: that of the line; otherwise the route */
	struct command_reply reply;
	/* Of the current read or write. */
	struct bytes bytes;
	__u64 now;
	__u64 accepted_ns;
	__u32 end;  /* the sequence number after its last byte */
	__u32 rest; /* bytes that are not in the chunk yet */
	__u32 have; /* bytes in the chunk */
	__u32 at;   /* of these, the number taken */
	__u8 chunk[COMMANDS_CHUNK];
	struct flow
		flow; /* with config.ring_bytes; port 0: the connection's first request was not seen */
	__u32 service;
	__u32 flow_hash;
	__u32 waiting; /* bytes of the requests of the queue */
	__u32 pad;
	__u32 index;	/* of the next reply on its connection */
	__u32 lost;	/* requests without room, which are after those of the queue */
	__u32 asked;	/* number of requests ever put into the queue */
	__u32 answered; /* number of those taken out */
	__u32 begun;	/* number of batches ever put into their queue */
	__u32 done;	/* number of those taken out */
	struct command_batch batches[COMMANDS_BATCHES];
	union {
		__u32 queue[COMMANDS_QUEUED];
		struct {
			struct http1_head head; /* of a look (pipeline.bpf.c) */
			__u64 text[(HTTP1_HEAD_MOST + HTTP1_HEAD_AFTER) / 8];
		};
	};
};

struct command_conns_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct command_conn);
};

/* For a look at a read of a connection that has no state, one per CPU (pipeline.h). */
struct pipeline_looks_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct command_conn);
};

struct command_names_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set before load */
	__type(key, struct command_name);
	__type(value, struct command_known);
};

/* [id]: the row of that command; 0: it has none yet. COMMAND_ROWS: it gets none. COMMAND_CLAIMED: it is about to. */
DECLARE_ARRAY(command_rows_of, __u64, 1, BPF_F_MMAPABLE);

/* [copy_of(service) × command_rows + row]. */
DECLARE_ARRAY(command_rows, struct service_route, 1, BPF_F_MMAPABLE);

/* [copy_of(service)]. */
DECLARE_ARRAY(commands_without, struct service_unnamed, 1, BPF_F_MMAPABLE);

extern struct command_conns_map command_conns SEC(".maps");
extern struct pipeline_looks_map pipeline_looks SEC(".maps");
extern struct command_names_map command_names SEC(".maps");
/* How many rows are taken of each protocol, without [0]. */
extern __u32 command_rows_taken[COMMAND_PROTOCOL_COUNT];

#endif
