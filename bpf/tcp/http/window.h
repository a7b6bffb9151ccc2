/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The windows that a client of HTTP/2 grants for responses, with --http. The server spends them with DATA; the client
 * opens them with WINDOW_UPDATE. A response stalls while its stream's window is closed, or its connection's. That is
 * counted when DATA follows. Also times the server's PINGs.
 *
 * A read is followed before the server gets its bytes, and DATA is counted at the end of its frame. So a window that is
 * closed here is closed for the server, too.
 *
 * A thread may read WINDOW_UPDATE while another writes DATA. Each adds to the window first, which is a full
 * barrier, and then looks at what the other one has done.
 *
 * The functions are not inline, as those of status.h: window.bpf.c. Neighbours: streams.h, protocol/window.h.
 */
#ifndef BPF_TCP_HTTP_WINDOW_H
#define BPF_TCP_HTTP_WINDOW_H

#include "atomic.h"
#include "tcp/state/http2.h"

/*
 * A step in the client's SETTINGS, WINDOW_UPDATE or PING has returned @said; its bytes end before @end. Return 0, or -1
 * if they cannot be read.
 */
int window_read(struct http2_conn *h, __u32 said, __u64 end, __u64 now);

/* The response of @entry has begun with HEADERS that do not end it. Return 0. */
int window_begins(struct http2_conn *h, struct stream_entry *entry, __u64 now);

/* The server has written the end of a DATA frame of the stream @entry, NULL: of one that is not known. Return 0. */
int window_wrote(struct http2_conn *h, struct stream_entry *entry, __u64 now);

/* The server has written the end of a PING. */
static __always_inline void window_asks(struct http2_conn *h, __u64 now)
{
	struct http2_pings *p = &h->pings;

	if (h->out.side.flags & HTTP2_ACK)
		return;
	/* One at a time, so that its ACK is known by its number alone. */
	if (p->sent == PLAIN(&p->acknowledged)) {
		PLAIN(&p->sent_ns) = 0;
		PLAIN(&p->timed) = p->sent;
		PLAIN(&p->sent_ns) = now;
	}
	p->sent++;
}

#endif
