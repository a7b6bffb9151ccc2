/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* How long clients of HTTP/2 kept responses waiting, with --http: the kernel side's sums of one service. */
#ifndef WIRE_WINDOW_H
#define WIRE_WINDOW_H

#include "wire/counters.h"

/* The owner of the window that was closed. */
enum window_level {
	WINDOW_STREAM,
	WINDOW_CONNECTION,
	WINDOW_LEVELS
};

/* For all CPUs. */
struct service_windows {
	struct stage_histogram stalls[WINDOW_LEVELS];
	struct stage_histogram pings; /* the server's PING was written → its ACK was read */
};

_Static_assert(sizeof(struct service_windows) ==
		       (WINDOW_LEVELS + 1) * sizeof(struct stage_histogram),
	       "no padding");

#endif
