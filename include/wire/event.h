/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Sampled exchanges and calls, sent over the ring buffer; their sizes distinguish them. */
#ifndef WIRE_EVENT_H
#define WIRE_EVENT_H

#include <linux/types.h>
#include "wire/flow.h"

/* Sent when it is complete. CLOCK_MONOTONIC, nanoseconds. on_wire_ns and acked_ns are 0 if not measured. */
struct exchange_event {
	struct flow flow;
	__u32 index; /* of the exchange on its connection, from 0 */
	__u32 service;
	__u32 pid; /* writer of the response, in the observer's pid namespace; 0: unknown */
	__u32 bytes_in;
	__u32 bytes_out;
	__u64 arrival_ns;  /* the request became readable: start of residence */
	__u64 accepted_ns; /* first exchange of a connection: accept(), if after arrival; else 0 */
	__u64 first_read_ns;
	__u64 last_read_ns;
	__u64 first_write_ns;
	__u64 last_write_ns; /* end of residence */
	__u64 on_wire_ns;
	__u64 acked_ns;
	/* Parts of service: the thread ran, or waited for a CPU. running_ns 0: not measured. */
	__u64 running_ns;
	__u64 runnable_ns;
};

_Static_assert(sizeof(struct exchange_event) == 40 + 16 + 80, "no hidden padding");

/* With --calls: a call of an observed service's process, sent when its response begins. */
struct call_event {
	struct flow flow; /* as the upstream sees it */
	__u32 index;	  /* of the call on its connection, from 0 */
	__u32 service;	  /* the caller's */
	__u32 pad;
	__u64 begin_ns;	   /* its first byte was written */
	__u64 answered_ns; /* the first byte of the response was read */
};

_Static_assert(sizeof(struct call_event) == 40 + 8 + 16, "no hidden padding");

#endif
