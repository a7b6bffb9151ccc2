/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Messages that want no answer, recognised by their bytes. The time until the client's next message then belongs to
 * no message. A client that says goodbye has not given up a request, whichever side closes first. Neighbours:
 * exchange.h, oneway.bpf.c.
 */
#ifndef BPF_TCP_ONEWAY_H
#define BPF_TCP_ONEWAY_H

#include "state.h"

#define ONEWAY_LONGEST 24

/*
 * Return the marks of the message under way, after the current system call has returned @bytes more of it and made it
 * @message long. @marks: those of its connection so far. A separate function, so that the verifier follows it once
 * instead of after each way that leads to it (45 % more in exchange_recv).
 */
__u32 oneway_look(__u32 marks, __u32 message, __u32 bytes);

#endif
