/* SPDX-License-Identifier: MIT */
/*
 * Documents that several requests get, the CPU time that making them may take, and the document that is
 * printed in slices. Used by routes.c and http.c.
 */
#ifndef OBSERVER_SINKS_HTTP_DOCUMENTS_H
#define OBSERVER_SINKS_HTTP_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"
#include "sojourn/metrics.h"
#include "sojourn/run.h"

/* The document that a request wants. */
struct http_wanted {
	size_t number;		   /* from 1 on; 0: none */
	struct snapshot_past past; /* of the document of the past; else zeroed */
};

static inline bool http_wants_same(const struct http_wanted *a, const struct http_wanted *b)
{
	return a->number == b->number && a->past.last_s == b->past.last_s &&
	       a->past.step_s == b->past.step_s && a->past.port == b->past.port;
}

struct http_document {
	unsigned int users;
	struct http_wanted as;
	const char *type;
	char *body;
	size_t length;
	uint64_t made_ns;
	uint64_t cost_ns; /* CPU time */
};

/* A row of the table of routes has one, and metrics have one for each format. */
#define HTTP_DOCUMENTS 13

/* The document that is being made. */
struct http_making {
	FILE *file; /* NULL: none is */
	struct http_wanted as;
	struct run *run; /* that it owns */
	const struct run
		*judged; /* has lent its findings to @run, and keeps them until the end; or NULL */
	const char *type;
	struct run_printing printing;	 /* of JSON */
	struct metrics_printing metrics; /* with metrics: of these instead */
	char *text;
	size_t length;
	uint64_t cost_ns; /* so far */
};

/* Zeroed it is valid; http_documents_done() frees the rest. */
struct http_documents {
	struct http_document *latest[HTTP_DOCUMENTS];
	int64_t credit_ns; /* of CPU time, for making documents */
	uint64_t credited_ns;
	struct http_making making;
};

void http_documents_done(struct http_documents *documents);

bool http_documents_have_credit(struct http_documents *documents);
void http_documents_charge(struct http_documents *documents, uint64_t cost_ns);

/* Return the wanted document for one more user, if the latest is to be used again; NULL: it must be made. */
struct http_document *http_documents_share(struct http_documents *documents,
					   const struct http_wanted *wanted);

/* Return the latest one that is as wanted for one more user; NULL: there is none. */
struct http_document *http_documents_lend(struct http_documents *documents,
					  const struct http_wanted *wanted);

/* End a use; @context is the document, or NULL. */
void http_document_release(void *context);

/*
 * Begin to make @making, whose run is taken over. Nothing else is being made. Its cost is the CPU
 * time of the reading. 0 or -ENOMEM.
 */
int http_documents_begin(struct http_documents *documents, const struct http_making *making);

/*
 * Print the next slice, of a few milliseconds. 1: there are more; 0: it is the latest document now;
 * or -errno. Afterwards nothing is being made, except after 1.
 */
int http_documents_continue(struct http_documents *documents);

#endif
