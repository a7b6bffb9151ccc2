// SPDX-License-Identifier: MIT
/*
 * Any bytes as the messages of a fleet: lines of a coordinator or a member, in pieces of any length. They have plans, files,
 * steps of a sweep, parts of documents, and an observer's targets. The bytes are also a payload of NATS and a stored record.
 * Messages are the same however they are cut, and a document is the same when it is sent again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/channel/channel.h"
#include "fleet/channel/plan.h"
#include "fleet/channel/relay.h"
#include "fleet/channel/seal.h"
#include "fleet/observers/sight.h"
#include "fuzz.h"

/* One end of the channel, and what it has taken. */
struct end {
	struct nats_input lines;
	struct channel_document document;
	struct plan_inbox inbox;
	struct options options;
	struct scenario *scenario;
	bool planned; /* the plan is taken, or refused: an agent takes no second one */
	size_t messages, documents;
	uint64_t sum; /* of the bytes of all lines */
};

static void check(int err, const char *error)
{
	require(!err ? !error : err != -EINVAL || (error && *error));
}

static void send_again(const struct channel_document *document)
{
	struct channel_document again = {0};
	size_t at = 0;
	int whole = 0;

	while (!whole) {
		autojson json_t *part = channel_document_part(document->text, &at, true);

		require(part != NULL);
		whole = channel_document_add(&again, part);
		require(whole >= 0);
	}
	require(!strcmp(again.text, document->text));
	channel_document_clear(&again);
}

/* A text with a NUL in it is taken up to there. */
static void take_document(struct end *end, const json_t *message)
{
	if (channel_document_add(&end->document, message) != 1)
		return;
	send_again(&end->document);
	end->documents++;
	channel_document_clear(&end->document);
}

static void take_plan(struct end *end, const json_t *message)
{
	autofree char *error = NULL;
	uint64_t patience_ns = 0;
	int err = plan_take_patience(message, &patience_ns, &error);

	check(err, error);
	require(err || patience_ns);
	end->planned = true;
	if (err)
		return;
	err = plan_take(&end->inbox, message, &end->options, &end->scenario, &error);
	check(err, error);
	require(err || end->scenario);
}

static void take_step(struct end *end, const json_t *message)
{
	autofree char *error = NULL;
	int err = plan_take_step(&end->inbox, message, &end->options, &error);

	check(err, error);
	require(err || (end->options.run.threads &&
			end->options.load.connections >= end->options.run.threads));
}

static void take_targets(const json_t *message)
{
	const char *place = json_string_value(json_object_get(message, "place"));
	const struct sight_limits limits = {.allow = "127.0.0.0/8:80", .sees = "example.net"};
	struct sight sight;

	if (!sight_compare(json_object_get(message, "targets"), place, &limits, &sight))
		require(sight.count && sight.count <= SIGHT_TARGETS);
}

static void take(struct end *end, const json_t *message)
{
	const char *type = channel_type(message);
	autofree char *error = NULL;

	if (!strcmp(type, "file"))
		check(plan_take_file(&end->inbox, message, &error), error);
	else if (!strcmp(type, "plan") && !end->planned)
		take_plan(end, message);
	else if (!strcmp(type, "step") && end->scenario)
		take_step(end, message);
	else if (!strcmp(type, "document"))
		take_document(end, message);
	else
		take_targets(message);
}

static void take_line(struct end *end, const char *line)
{
	autojson json_t *message = channel_parse(line);

	for (const char *at = line; *at; at++)
		end->sum = 31 * end->sum + (unsigned char)*at;
	if (!message)
		return;
	end->messages++;
	take(end, message);
}

static struct end read_in_pieces(const char *bytes, size_t size, size_t step)
{
	struct end end = {0};
	int err = 0;

	for (size_t at = 0; at < size && !err; at += step) {
		err = channel_lines_add(&end.lines, bytes + at,
					size - at < step ? size - at : step);
		for (char *line; !err && (line = channel_lines_take(&end.lines)); free(line))
			take_line(&end, line);
	}
	if (end.scenario) {
		scenario_free(end.scenario);
		options_clear(&end.options);
	}
	plan_inbox_clear(&end.inbox);
	channel_document_clear(&end.document);
	nats_input_clear(&end.lines);
	return end;
}

static void check_payload(const char *bytes, size_t size)
{
	const char *body = NULL;
	size_t length = 0;
	autojson json_t *head = relay_parse(bytes, size, &body, &length);

	require(!head || (body > bytes && body + length == bytes + size));
}

/* Nobody else's seal is taken, and one's own is. */
static void check_record(const char *bytes, size_t size)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";
	autofree char *text = strndup(bytes, size);
	autofree char *sealed = text ? seal_put(secret, text) : NULL;
	const char *opened;

	require(!seal_open(secret, bytes, size));
	require(sealed != NULL);
	opened = seal_open(secret, sealed, strlen(sealed));
	require(opened && !strcmp(opened, text));
	sealed[0] ^= 1;
	require(!seal_open(secret, sealed, strlen(sealed)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;
	struct end whole, pieces;

	if (!size)
		return 0;
	whole = read_in_pieces(bytes, size - 1, size);
	pieces = read_in_pieces(bytes, size - 1, 1 + data[0]);
	require(whole.messages == pieces.messages && whole.documents == pieces.documents &&
		whole.sum == pieces.sum);
	check_payload(bytes, size - 1);
	check_record(bytes, size - 1);
	return 0;
}
