/* SPDX-License-Identifier: MIT */
/* What the HTTP endpoint answers to a method and a path. Used by http.c alone. */
#ifndef OBSERVER_SINKS_HTTP_ROUTES_H
#define OBSERVER_SINKS_HTTP_ROUTES_H

#include "model/snapshot.h"
#include "sojourn/metrics.h"

struct http_reply {
	unsigned int status;
	const char *type;   /* Content-Type */
	char *body;	    /* to be freed by the caller; NULL: there was no memory for it */
	const char *header; /* one more header, may be NULL */
	char value[64];	    /* that header's */
};

/* What answers are made of. Zeroed but for the source, it is valid; http_routes_done() frees the rest. */
struct http_routes {
	struct snapshot_source source;
	struct metrics *metrics;
	struct run *judged; /* findings of a while ago: a look costs more than an answer */
	uint64_t judged_ns;
};

/* Makes @reply {"error": @error}; @error must need no escaping. */
void http_reply_error(struct http_reply *reply, unsigned int status, const char *error);

/* What answers depend on besides method and path; NULL: it is not there. */
struct http_query {
	const char *accept;		/* the header */
	const char *lease;		/* arguments */
	const char *last, *step, *port; /* likewise */
};

/* Fills @reply, a zeroed one; an unknown path or method and a failing source get an error. */
void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const struct http_query *query, struct http_reply *reply);

void http_routes_done(struct http_routes *routes);

#endif
