// SPDX-License-Identifier: MIT
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

/* A slice ends with the part during which this time is over. */
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

struct http_document *http_documents_lend(struct http_documents *documents,
					  const struct http_wanted *wanted)
{
	struct http_document *latest = documents->latest[wanted->number - 1];

	if (!latest || !http_wants_same(&latest->as, wanted))
		return NULL;
	latest->users++;
	return latest;
}

struct http_document *http_documents_share(struct http_documents *documents,
					   const struct http_wanted *wanted)
{
	const struct http_document *latest = documents->latest[wanted->number - 1];
	bool dear = latest && latest->cost_ns >= DEAR_NS;

	if ((http_documents_have_credit(documents) && !dear) || !latest ||
	    clock_now_ns() - latest->made_ns >= SHARED_NS)
		return NULL;
	return http_documents_lend(documents, wanted);
}

/* ---- making ---- */

/* End the making: its text, if @ret_text, becomes the caller's. Without memory for all of it -ENOMEM. */
static int end_making(struct http_documents *documents, char **ret_text)
{
	struct http_making *making = &documents->making;
	bool whole = !making->file || !fclose(making->file);
	struct run *run = making->run;
	autofree char *text = making->text;

	if (run && making->judged) {
		run->findings = NULL;
		run->finding_count = 0;
		run->not_seen = NULL;
	}
	if (run)
		run_free(run);
	*making = (struct http_making){0};
	if (!whole)
		return -ENOMEM;
	if (ret_text)
		*ret_text = TAKE_PTR(text);
	return 0;
}

int http_documents_begin(struct http_documents *documents, const struct http_making *given)
{
	struct http_making *making = &documents->making;

	*making = *given;
	making->file = open_memstream(&making->text, &making->length);
	making->printing = (struct run_printing){.run = given->run, .file = making->file};
	making->metrics.run = given->run;
	making->metrics.file = making->file;
	http_documents_charge(documents, making->cost_ns);
	if (making->file)
		return 0;
	(void)end_making(documents, NULL);
	return -ENOMEM;
}

/* Print one part. 1: there are more. 0 or -errno. */
static int print_part(struct http_making *making)
{
	if (making->metrics.metrics)
		return metrics_print_part(&making->metrics);
	return run_print_part(&making->printing, 1);
}

/* Make the finished text the latest document. */
static int keep(struct http_documents *documents)
{
	const struct http_making *making = &documents->making;
	struct http_document *document = malloc(sizeof(*document));
	struct http_document **latest = &documents->latest[making->as.number - 1];
	int r;

	if (!document) {
		(void)end_making(documents, NULL);
		return -ENOMEM;
	}
	*document = (struct http_document){.users = 1,
					   .as = making->as,
					   .type = making->type,
					   .made_ns = clock_now_ns(),
					   .cost_ns = making->cost_ns};
	r = end_making(documents, &document->body);
	if (r) {
		free(document);
		return r;
	}
	document->length = strlen(document->body);
	http_document_release(*latest);
	*latest = document;
	return 0;
}

int http_documents_continue(struct http_documents *documents)
{
	struct http_making *making = &documents->making;
	uint64_t cpu_ns = clock_thread_cpu_ns(), end_ns = clock_now_ns() + SLICE_NS;
	int r;

	do
		r = print_part(making);
	while (r > 0 && clock_now_ns() < end_ns);
	cpu_ns = clock_thread_cpu_ns() - cpu_ns;
	http_documents_charge(documents, cpu_ns);
	making->cost_ns += cpu_ns;
	if (r < 0)
		(void)end_making(documents, NULL);
	return r ? r : keep(documents);
}

void http_documents_done(struct http_documents *documents)
{
	if (documents->making.file)
		(void)end_making(documents, NULL);
	for (size_t i = 0; i < HTTP_DOCUMENTS; i++)
		http_document_release(documents->latest[i]);
}
