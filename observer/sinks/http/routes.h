/* SPDX-License-Identifier: MIT */
/* Answers of the HTTP endpoint to a method and a path. Used by http.c alone. */
#ifndef OBSERVER_SINKS_HTTP_ROUTES_H
#define OBSERVER_SINKS_HTTP_ROUTES_H

#include "model/snapshot.h"
#include "sojourn/metrics.h"

/* An answer that several requests get. */
struct http_document {
	unsigned int users;
	const char *type;
	char *body;
	size_t length;
	uint64_t made_ns;
	uint64_t cost_ns; /* CPU time */
};

struct http_reply {
	unsigned int status;
	const char *type;		/* Content-Type */
	char *body;			/* NULL: no memory */
	const char *header;		/* one more header, may be NULL */
	char value[64];			/* that header's */
	struct http_document *document; /* owner of the body; NULL: the reply */
};

/* End the use of a reply's body, or of a document. */
void http_reply_done(struct http_reply *reply);
void http_document_release(void *document);

/* A row of the table has one, and metrics have one for each format. */
#define HTTP_DOCUMENTS 12

/* Data of the answers. Zeroed but for the source, it is valid; http_routes_done() frees the rest. */
struct http_routes {
	struct snapshot_source source;
	enum metrics_buckets buckets;
	struct metrics *metrics;
	struct run *judged; /* recent findings, because a look costs more than an answer */
	uint64_t judged_ns;
	struct http_document *documents[HTTP_DOCUMENTS];
	int64_t credit_ns; /* of CPU time, for making documents */
	uint64_t credited_ns;
};

/* Make @reply {"error": @error}; @error must need no escaping. */
void http_reply_error(struct http_reply *reply, unsigned int status, const char *error);

/* Further inputs of an answer besides method and path; NULL: missing. */
struct http_query {
	const char *accept;		/* the header */
	const char *lease;		/* arguments */
	const char *last, *step, *port; /* likewise */
};

/* Fill @reply, a zeroed one; an unknown path or method and a failing source get an error. */
void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const struct http_query *query, struct http_reply *reply);

void http_routes_done(struct http_routes *routes);

#endif
