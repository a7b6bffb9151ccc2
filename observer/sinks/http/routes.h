/* SPDX-License-Identifier: MIT */
/* Answers of the HTTP endpoint to a method and a path. Used by http.c alone. */
#ifndef OBSERVER_SINKS_HTTP_ROUTES_H
#define OBSERVER_SINKS_HTTP_ROUTES_H

#include "documents.h"
#include "model/meanwhile.h"
#include "model/snapshot.h"
#include "query.h"
#include "sojourn/metrics.h"
#include "sojourn/report.h"

struct http_reply {
	unsigned int status;
	const char *type;		/* Content-Type */
	char *body;			/* NULL: no memory */
	const char *header;		/* one more header, may be NULL */
	char value[64];			/* that header's */
	char nonce[REPORT_NONCE];	/* of a page's scripts and styles; "": there are none */
	struct http_document *document; /* owner of the body; NULL: the reply */
	struct http_wanted awaited; /* with a number there is no reply yet: it must be made first */
	bool later;		    /* there is no reply yet: ask again with http_query.now */
};

/* End the use of a reply's body. */
void http_reply_done(struct http_reply *reply);

/* Data of the answers. Zeroed but for the source, it is valid; http_routes_done() frees the rest. */
struct http_routes {
	struct snapshot_source source;
	enum metrics_buckets buckets;
	struct metrics *metrics;
	struct run *judged; /* recent findings alone, because a look costs more than an answer */
	bool critical;	    /* they make observed services unhealthy */
	uint64_t judged_ns;
	bool judge_due; /* somebody asked: http_routes_judge() should look again */
	struct http_documents documents;
	struct meanwhile meanwhile; /* while a phase's document is printed */
};

/* Make @reply {"error": @error}; @error must need no escaping. */
void http_reply_error(struct http_reply *reply, unsigned int status, const char *error);

/* Whether a request asks how the observer is. */
enum http_probe {
	HTTP_PROBE_NONE,
	HTTP_PROBE_HEALTH, /* of the services */
	HTTP_PROBE_LIVE, /* whether the observer answers; says nothing else, so that it needs no token */
};

enum http_probe http_routes_probe(const char *path);

/* Fill @reply, a zeroed one; an unknown path or method and a failing source get an error. */
void http_routes_answer(struct http_routes *routes, const char *method, const char *path,
			const struct http_query *query, struct http_reply *reply);

/* Look again at what is running out, between requests and documents. On failure the next request looks. */
void http_routes_judge(struct http_routes *routes);

/* Take the reading of the @awaited document, and begin to print it (documents.h). 0 or -errno. */
int http_routes_begin(struct http_routes *routes, const struct http_wanted *awaited);

/*
 * Fill @reply, a zeroed one, now that the @awaited document was made; @r: 0, or -errno of making it.
 * If another one has replaced it already, it is awaited again.
 */
void http_routes_made(struct http_routes *routes, const struct http_wanted *awaited, int r,
		      struct http_reply *reply);

void http_routes_done(struct http_routes *routes);

#endif
