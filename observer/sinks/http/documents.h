/* SPDX-License-Identifier: MIT */
/*
 * Documents that several requests get, the CPU time that making them may take, and a run document that is
 * printed in slices. Used by routes.c and http.c.
 */
#ifndef OBSERVER_SINKS_HTTP_DOCUMENTS_H
#define OBSERVER_SINKS_HTTP_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/run.h"

struct http_document {
	unsigned int users;
	const char *type;
	char *body;
	size_t length;
	uint64_t made_ns;
	uint64_t cost_ns; /* CPU time */
};

/* A row of the table of routes has one, and metrics have one for each format. */
#define HTTP_DOCUMENTS 12

/* Zeroed it is valid; http_documents_done() frees the rest. */
struct http_documents {
	struct http_document *latest[HTTP_DOCUMENTS];
	int64_t credit_ns; /* of CPU time, for making documents */
	uint64_t credited_ns;
	struct http_making {
		struct run *run; /* NULL: no document is being made */
		size_t number;	 /* of the document */
		struct run_printing printing;
		char *text;
		size_t length;
		uint64_t cost_ns; /* so far */
	} making;
};

void http_documents_done(struct http_documents *documents);

bool http_documents_have_credit(struct http_documents *documents);
void http_documents_charge(struct http_documents *documents, uint64_t cost_ns);

/* Return document @number for one more user, if it is to be used again; NULL: it must be made. */
struct http_document *http_documents_share(struct http_documents *documents, size_t number);

/* Return the latest document @number for one more user. */
struct http_document *http_documents_lend(struct http_documents *documents, size_t number);

/* End a use; @context is the document, or NULL. */
void http_document_release(void *context);

/* Make @body, which is taken over, document @number. Without memory @body is freed, too: -ENOMEM. */
int http_documents_keep(struct http_documents *documents, size_t number, const char *type,
			char *body, uint64_t cost_ns);

/*
 * Begin to print @run, which is taken over, as document @number. Nothing else is being made.
 * @cost_ns: CPU time of the reading. 0 or -ENOMEM.
 */
int http_documents_begin(struct http_documents *documents, size_t number, struct run *run,
			 uint64_t cost_ns);

/*
 * Print the next slice, of a few milliseconds. 1: there are more; 0: it is the latest document now;
 * or -errno. Afterwards nothing is being made, except after 1.
 */
int http_documents_continue(struct http_documents *documents);

#endif
