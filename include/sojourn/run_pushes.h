/* SPDX-License-Identifier: MIT */
/* Messages of WebSocket and server-sent events, as part of a run (run.h). */
#ifndef SOJOURN_RUN_PUSHES_H
#define SOJOURN_RUN_PUSHES_H

#include <stdint.h>

/* Connections of HTTP/1 that have become WebSocket's, with --http. Messages are whole ones, and their bytes those of payload. */
struct run_websocket {
	uint64_t connections;
	uint64_t given_up;  /* of these: bytes not seen or not understood */
	uint64_t older;	    /* connections older than the observation that seem to be such */
	uint64_t picked_up; /* of these: frames have proved it, and they are in `connections` */
	uint64_t messages_in, messages_out;
	uint64_t bytes_in, bytes_out;
	uint64_t control_in, control_out; /* frames */
};

/* Responses of server-sent events in HTTP/1, with --http. */
struct run_events {
	uint64_t responses;
	uint64_t given_up; /* of these: bytes not seen, not understood or compressed */
	uint64_t count;
	uint64_t bytes; /* of the bodies */
};

#endif
