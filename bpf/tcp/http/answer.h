/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * A look at the start of a response of HTTP/1, with --http: its status, and whether pushes may follow. The first bytes are
 * copied once for both, and forgotten at once. Neighbours: answer.bpf.c, status.h, pushes.h, clear_pushes.h.
 */
#ifndef BPF_TCP_HTTP_ANSWER_H
#define BPF_TCP_HTTP_ANSWER_H

#include "tcp/state/push.h"

#define ANSWER_TEXT 1024 /* a power of 2 */

/* The place in a write, while its interim responses are passed (status.bpf.c). */
struct answer_head {
	struct bytes bytes; /* from the next byte on */
	__u32 left;	    /* bytes of the write */
	__u32 window;	    /* the latest 4 bytes */
	__u32 ended;
	__u32 pad;
};

struct answer_look {
	struct answer_head head;
	__u32 status; /* STATUS_UNKNOWN: of fewer bytes, or of others */
	__u32 have;   /* bytes in ->text */
	__u32 users;  /* of clear_looks */
	__u32 pad;
	__u64 text[2 * ANSWER_TEXT / 8]; /* the verifier sees no bound of the sum of buffers */
};

struct answer_looks_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer_look);
};

/* For writes. */
extern struct answer_looks_map answer_looks SEC(".maps");
/* For text of TLS. Probes run with preemption on: ->users counts who uses it. */
extern struct answer_looks_map clear_looks SEC(".maps");

/*
 * Look at @count bytes at @text; 0: those of the current write. Set look->status, and return enum push_suspicion. Not inline,
 * as the functions of status.h.
 */
int answer_look(struct answer_look *look, __u64 text, __u32 count);

#endif
