/* SPDX-License-Identifier: MIT */
/* What the HTTP endpoint answers to a method and a path. Used by sink_http.c alone. */
#ifndef OBSERVER_HTTP_ROUTES_H
#define OBSERVER_HTTP_ROUTES_H

#include "snapshot.h"

struct http_reply {
	unsigned int status;
	const char *type;   /* Content-Type */
	char *body;	    /* to be freed by the caller; NULL: there was no memory for it */
	const char *header; /* one more header, may be NULL */
	char value[64];	    /* that header's */
};

/* Makes @reply {"error": @error}; @error must need no escaping. */
void http_reply_error(struct http_reply *reply, unsigned int status, const char *error);

/* Fills @reply, a zeroed one; an unknown path or method and a failing source get an error. */
void http_routes_answer(const struct snapshot_source *source, const char *method, const char *path,
			struct http_reply *reply);

#endif
