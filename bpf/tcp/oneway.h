/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Messages that want no answer, recognised by their bytes. The time until the client's next message is then no part of
 * that message, and a client that says goodbye gives nothing up, whoever closes first. Neighbours: exchange.h, oneway.bpf.c.
 */
#ifndef BPF_TCP_ONEWAY_H
#define BPF_TCP_ONEWAY_H

#include "state.h"

#define ONEWAY_LONGEST 9

/*
 * The marks of a message under way, now that the current system call has returned @bytes more of it, which makes it
 * @message long. @marks: of its connection, so far. A function of its own, so that the verifier follows it once, and
 * not behind each way that leads to it (45 % more in exchange_recv).
 */
__u32 oneway_look(__u32 marks, __u32 message, __u32 bytes);

#endif
