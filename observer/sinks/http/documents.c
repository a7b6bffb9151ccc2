/* SPDX-License-Identifier: MIT */
/* Documents that are shared, and made in slices; see documents.h. */
#include "documents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"

/*
 * Making documents takes at most this part of a processor, with some credit after quiet times.
 * Beyond it, and if a document is dear, readers get the latest one if it is not too old.
 */
#define CREDIT_PART   5
#define CREDIT_MAX_NS ((int64_t)NSEC_PER_SEC)
#define SHARED_NS     NSEC_PER_SEC
#define DEAR_NS	      (100 * NSEC_PER_MSEC)

/* A slice ends with the service during which this time is over. */
#define SLICE_NS (5 * NSEC_PER_MSEC)

bool http_documents_have_credit(struct http_documents *documents)
{
	uint64_t now = clock_now_ns();
	int64_t grown = documents->credited_ns
				? (int64_t)((now - documents->credited_ns) / CREDIT_PART)
				: CREDIT_MAX_NS;

	documents->credited_ns = now;
	documents->credit_ns += grown < CREDIT_MAX_NS ? grown : CREDIT_MAX_NS;
	if (documents->credit_ns > CREDIT_MAX_NS)
		documents->credit_ns = CREDIT_MAX_NS;
	return documents->credit_ns > 0;
}

void http_documents_charge(struct http_documents *documents, uint64_t cost_ns)
{
	documents->credit_ns -=
		cost_ns < (uint64_t)CREDIT_MAX_NS ? (int64_t)cost_ns : CREDIT_MAX_NS;
	if (documents->credit_ns < -CREDIT_MAX_NS)
		documents->credit_ns = -CREDIT_MAX_NS;
}

/* ---- sharing ---- */

void http_document_release(void *context)
{
	struct http_document *document = context;

	if (!document || --document->users)
		return;
	free(document->body);
	free(document);
}

struct http_document *http_documents_lend(struct http_documents *documents, size_t number)
{
	documents->latest[number]->users++;
	return documents->latest[number];
}

struct http_document *http_documents_share(struct http_documents *documents, size_t number)
{
	const struct http_document *latest = documents->latest[number];
	bool dear = latest && latest->cost_ns >= DEAR_NS;

	if ((http_documents_have_credit(documents) && !dear) || !latest ||
	    clock_now_ns() - latest->made_ns >= SHARED_NS)
		return NULL;
	return http_documents_lend(documents, number);
}

int http_documents_keep(struct http_documents *documents, size_t number, const char *type,
			char *body, uint64_t cost_ns)
{
	struct http_document *document = body ? malloc(sizeof(*document)) : NULL;

	if (!document) {
		free(body);
		return -ENOMEM;
	}
	*document = (struct http_document){.users = 1,
					   .type = type,
					   .body = body,
					   .length = strlen(body),
					   .made_ns = clock_now_ns(),
					   .cost_ns = cost_ns};
	http_document_release(documents->latest[number]);
	documents->latest[number] = document;
	return 0;
}

/* ---- making ---- */

/* Close the text, which becomes complete by that, and free the rest. */
static char *end_making(struct http_documents *documents)
{
	struct http_making *making = &documents->making;
	bool whole = !making->printing.file || !fclose(making->printing.file);
	char *text = TAKE_PTR(making->text);

	run_free(making->run);
	*making = (struct http_making){0};
	if (whole)
		return text;
	free(text);
	return NULL;
}

int http_documents_begin(struct http_documents *documents, size_t number, struct run *run,
			 uint64_t cost_ns)
{
	struct http_making *making = &documents->making;

	*making = (struct http_making){.run = run, .number = number, .cost_ns = cost_ns};
	making->printing = (struct run_printing){
		.run = run, .file = open_memstream(&making->text, &making->length)};
	http_documents_charge(documents, cost_ns);
	if (making->printing.file)
		return 0;
	free(end_making(documents));
	return -ENOMEM;
}

int http_documents_continue(struct http_documents *documents)
{
	struct http_making *making = &documents->making;
	uint64_t cpu_ns = clock_thread_cpu_ns(), end_ns = clock_now_ns() + SLICE_NS, cost_ns;
	size_t number = making->number;
	int r;

	do
		r = run_print_part(&making->printing, 1);
	while (r > 0 && clock_now_ns() < end_ns);
	cpu_ns = clock_thread_cpu_ns() - cpu_ns;
	http_documents_charge(documents, cpu_ns);
	making->cost_ns += cpu_ns;
	if (r > 0)
		return r;
	cost_ns = making->cost_ns;
	if (r < 0) {
		free(end_making(documents));
		return r;
	}
	return http_documents_keep(documents, number, "application/json", end_making(documents),
				   cost_ns);
}

void http_documents_done(struct http_documents *documents)
{
	if (documents->making.run)
		free(end_making(documents));
	for (size_t i = 0; i < HTTP_DOCUMENTS; i++)
		http_document_release(documents->latest[i]);
}
