/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * State of a connection whose protocol is not known yet, or that speaks TLS. Few connections need it, so it is kept
 * apart: in storage of the socket. Neighbours: walk.h, state.h.
 */
#ifndef BPF_TCP_STATE_TALK_H
#define BPF_TCP_STATE_TALK_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#include "array.h"

/* The bytes that a system call has read or written, from the next one on (bytes.h). */
struct bytes {
	__u64 at;      /* address of the next byte */
	__u64 left;    /* bytes of this buffer from there on */
	__u64 vector;  /* address of the next buffer's struct iovec */
	__u64 vectors; /* further buffers */
};

/*
 * The state of walking through the bytes of one system call. It is here and not on the stack, where
 * the verifier would follow each value through each step.
 */
struct walk {
	struct bytes bytes;
	__u64 now;
	__u32 count;   /* bytes of the call */
	__u32 at;      /* of these, the number passed */
	__u32 begun;   /* where the field begins in this call */
	__u32 message; /* where the first byte of a message is; from count on: nowhere */
	__u8 resumed;  /* the field has begun in an earlier call */
	__u8 untimed;  /* the message may have begun before */
	__u8 pad[6];
};

/* Which field is the next one. */
enum talk_stage {
	TALK_START,	 /* the first bytes of all, or of a read */
	TALK_PREFACE,	 /* HTTP/2's preface */
	TALK_PROXY_LINE, /* the rest of a PROXY header's line */
	TALK_PROXY,	 /* a PROXY header of version 2 */
	TALK_FRAME,	 /* a frame's header, of HTTP/2 */
	TALK_OLD_RECORD, /* a record's header, which proves that the one before it was one */
	TALK_RECORD,	 /* a record's header, of TLS; what follows is within a record */
	TALK_HELLO_ID,	 /* of a hello, as are all below: session_id's length */
	TALK_HELLO_CIPHERS,
	TALK_HELLO_METHODS,
	TALK_HELLO_EXTENSIONS,
	TALK_HELLO_EXTENSION,
	TALK_HELLO_ALPN,
};

/*
 * Room for the longest field, HTTP/2's preface, and for the most that side_gather() of walk.h adds
 * in the verifier's view.
 */
#define TALK_FIELD 40

/* The bytes of one side of a connection, as far as they are followed. */
struct talk_side {
	__u32 skip;	  /* bytes before the next field */
	__u32 rest;	  /* bytes of a hello's record after those passed */
	__u16 extensions; /* bytes of a hello's extensions after the current one */
	__u8 pad[2];
	__u8 stage;   /* enum talk_stage: which field is the next one */
	__u8 want;    /* bytes of that field */
	__u8 have;    /* bytes of it in `field` so far */
	__u8 message; /* the skipped bytes belong to a message */
	__u8 field[TALK_FIELD];
	struct walk walk;
};

/*
 * Tickets of a service: each looks like a response. Kept are the lengths of their records, and how
 * many have one length. There are two kinds: those of new sessions and of resumed ones.
 */
#define TICKET_LENGTHS 2

struct tickets {
	__u16 length[TICKET_LENGTHS];
	__u8 count[TICKET_LENGTHS];
	__u8 next;
	__u8 none; /* a connection had none */
};

struct talk {
	struct talk_side in, out;
	__u64 begun_ns;	     /* the first byte of TLS' handshake was there; 0: not known */
	__u64 client_ns;     /* the latest encrypted record of the client's handshake was read */
	__u64 open_ns;	     /* the handshake was over */
	__u32 flags;	     /* enum tls_flag (tls.h) */
	__u16 extensions;    /* length of the record with EncryptedExtensions */
	__u16 ticket;	     /* length of the latest ticket's record */
	__u8 tickets;	     /* tickets sent so far */
	__u8 client_records; /* encrypted ones of the client's handshake */
	__u8 frames;	     /* of HTTP/2, in a row */
	__u8 reading;	     /* a request has begun */
	__u8 start;	     /* enum start (speaks.h): what the first bytes are */
	__u8 old;	     /* the connection is older than the observation */
	__u8 looks;	     /* struct conn.looks */
	__u8 pad;
	struct tickets known; /* the service's tickets when the first request was read */
};

_Static_assert(sizeof(struct talk_side) == 56 + 64 && sizeof(struct talk) == 48 + 2 * 120,
	       "no hidden padding");

struct talks_map {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct talk);
};

DECLARE_ARRAY(tickets, struct tickets, 1, 0);

/* State of a read whose requests are counted (batch.h), one per CPU. */
#define BATCH_CHUNK 64

struct batch {
	struct bytes bytes;
	__u64 window; /* the latest 8 bytes */
	__u64 requests;
	__u64 seen; /* bytes looked at */
	__u64 room; /* bytes in chunk */
	__u8 chunk[BATCH_CHUNK];
};

struct batches_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct batch);
};

extern struct batches_map batches SEC(".maps");
extern struct talks_map talks SEC(".maps");

#endif
