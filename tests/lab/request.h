/* SPDX-License-Identifier: MIT */
/* A complete request of any protocol. */
#ifndef LAB_REQUEST_H
#define LAB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "knobs.h"

struct request {
	struct knobs knobs;
	bool bad;	     /* to be answered with the complaint */
	bool hopeless;	     /* so bad that the following bytes cannot be parsed: close */
	bool last;	     /* the client wants the connection closed after the response */
	unsigned int status; /* http: of a bad request */
	struct complaint complaint;
	const char *payload; /* line, frame, udp: the echo; lives until the next read */
	size_t payload_length;
	bool head; /* http: answer without a body */
	bool old;  /* HTTP/1.0: no chunks, and needs a Keep-Alive header */
};

void request_init(struct request *request, const struct knobs *defaults);

/* Mark the request as bad, to be answered with @status (http) and this text. */
__attribute__((format(printf, 3, 4))) void
request_refuse(struct request *request, unsigned int status, const char *format, ...);

/* Read "name=value&name=value"; an error makes the request bad (http: 400). */
void request_set_knobs(struct request *request, const char *text, size_t length,
		       enum knob_scope scope);

/*
 * Read the knobs from a payload. Printable text with a '=' must be valid; anything else is plain
 * payload.
 */
void request_set_payload(struct request *request, const char *payload, size_t length,
			 enum knob_scope scope);

#endif
