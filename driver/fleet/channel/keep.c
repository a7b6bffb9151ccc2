// SPDX-License-Identifier: MIT
/* Stores the result of an agent at the NATS server; see keep.h. */
#include "keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/text.h"

#define REASON_MAX  512U
#define AGAIN_STEPS 4U	/* for an acknowledgement */
#define TRIES_MAX   60U /* two minutes */

void keep_begin(struct keep *keep, struct nats *nats, const char *run, const char *agent,
		const char *kind)
{
	keep_clear(keep);
	keep->on = true;
	keep->nats = nats;
	snprintf(keep->subject, sizeof(keep->subject), "sojourn.kept.%s.%s", run, agent);
	snprintf(keep->reply, sizeof(keep->reply), "sojourn.to.%s.%s", agent, kind);
}

/* ---- sending ---- */

static void publish(const struct keep *keep, size_t number, json_t *message, const char *body,
		    size_t length)
{
	autofree char *reply = text_format("%s%zu", keep->reply, number);

	relay_publish(keep->nats, keep->subject, reply, message, body, length);
}

void keep_announce(struct keep *keep, const char *name)
{
	publish(keep, 0, json_pack("{s:b, s:s}", "here", 1, "name", name), NULL, 0);
}

static void send_piece(const struct keep *keep, size_t index)
{
	size_t at = index * keep->piece, left = keep->last.length - at;
	json_t *head = json_pack("{s:I, s:I, s:b, s:b, s:s*}", "at", (json_int_t)at, "total",
				 (json_int_t)keep->last.length, "final", keep->final, "stopped",
				 keep->stopped, "reason", keep->reason);

	publish(keep, index + 1, head, keep->last.text + at,
		left < keep->piece ? left : keep->piece);
}

static void send_missing(struct keep *keep)
{
	keep->steps = 0;
	for (size_t i = 0; i < keep->count; i++)
		if (!keep->stored[i])
			send_piece(keep, i);
}

/* From now on the document does not change. It is one piece at least. */
static void store(struct keep *keep)
{
	keep->storing = true;
	keep->piece = relay_piece(keep->nats);
	keep->count = keep->last.length ? (keep->last.length - 1) / keep->piece + 1 : 1;
	keep->missing = keep->count;
	keep->stored = calloc(keep->count, sizeof(*keep->stored));
	if (!keep->stored)
		keep->count = keep->missing = 0;
	send_missing(keep);
}

/* ---- what the agent sends ---- */

static void set_reason(struct keep *keep, const char *reason)
{
	if (keep->reason || !reason)
		return;
	keep->reason = strndup(reason, REASON_MAX);
	if (keep->reason)
		text_make_printable(keep->reason, ' ');
}

static void take_document(struct keep *keep, const json_t *message)
{
	int whole = channel_document_add(&keep->document, message);

	if (whole < 0)
		channel_document_clear(&keep->document);
	if (whole <= 0)
		return;
	channel_document_clear(&keep->last);
	keep->last = keep->document;
	keep->document = (struct channel_document){0};
	if (!json_is_true(json_object_get(message, "final")))
		return;
	keep->final = true;
	store(keep);
}

static void take_line(struct keep *keep, const char *line)
{
	autojson json_t *message = channel_parse(line);
	const char *type = message ? channel_type(message) : "";

	if (!strcmp(type, "document"))
		take_document(keep, message);
	else if (!strcmp(type, "error") || !strcmp(type, "refused")) {
		/* As for the coordinator, earlier counts are no result. */
		channel_document_clear(&keep->last);
		set_reason(keep, json_string_value(json_object_get(message, "reason")));
		if (!strcmp(type, "error"))
			store(keep); /* the agent stays until its coordinator has read it */
	} else if (!strcmp(type, "ready"))
		keep->planned = true;
	else if (!strcmp(type, "silent"))
		keep->stopped = true;
}

void keep_take(struct keep *keep, const char *bytes, size_t length)
{
	if (!keep->on || keep->storing)
		return;
	if (channel_lines_add(&keep->lines, bytes, length))
		nats_input_clear(&keep->lines);
	for (char *line; (line = channel_lines_take(&keep->lines)); free(line))
		if (!keep->storing)
			take_line(keep, line);
}

int keep_put(struct keep *keep, const char *text, size_t length)
{
	keep->last.text = malloc(length);
	if (!keep->last.text)
		return -ENOMEM;
	memcpy(keep->last.text, text, length);
	keep->last.length = length;
	keep->final = true;
	store(keep);
	return 0;
}

void keep_finish(struct keep *keep, const char *reason)
{
	if (!keep->on || keep->storing)
		return;
	set_reason(keep, reason);
	store(keep);
}

void keep_cancel(struct keep *keep)
{
	if (!keep->storing)
		keep->on = false;
}

/* ---- acknowledgements ---- */

static void note_failure(struct keep *keep, const char *reason)
{
	free(keep->failed);
	keep->failed = strdup(reason);
}

void keep_answer(struct keep *keep, size_t number, const json_t *answer)
{
	const json_t *error = json_object_get(answer, "error");
	const char *text = json_string_value(json_object_get(error, "description"));

	if (!keep->storing || !number || number > keep->count)
		return;
	if (error || !json_is_integer(json_object_get(answer, "seq"))) {
		note_failure(keep, text ? text : "the server did not store it");
	} else if (!keep->stored[number - 1]) {
		keep->stored[number - 1] = true;
		keep->missing--;
	}
}

void keep_attach(struct keep *keep, struct nats *nats)
{
	keep->nats = nats;
	if (nats && keep->storing)
		send_missing(keep);
}

void keep_step(struct keep *keep)
{
	if (!keep->storing || !keep->missing || keep->steps++ < AGAIN_STEPS)
		return;
	if (++keep->tries > TRIES_MAX) {
		if (!keep->failed)
			note_failure(keep, "no acknowledgement came");
		keep->missing = 0;
		return;
	}
	send_missing(keep);
}

bool keep_is_over(const struct keep *keep)
{
	return !keep->on || (keep->storing && !keep->missing);
}

void keep_clear(struct keep *keep)
{
	nats_input_clear(&keep->lines);
	channel_document_clear(&keep->document);
	channel_document_clear(&keep->last);
	free(keep->reason);
	free(keep->stored);
	free(keep->failed);
	*keep = (struct keep){0};
}
