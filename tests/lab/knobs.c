// SPDX-License-Identifier: MIT
/* The table of injections, and reading them from "name=value&name=value". */
#include "knobs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "sojourn/cleanup.h"

#define AT(member) offsetof(struct knobs, member)

/* clang-format off */
const struct knob knob_table[] = {
	{"service", KNOB_DURATION, AT(service_ns), 0, KNOB_MAX_DURATION_NS, "DUR",
	 "wait DUR between reading the request and\nwriting the response"},
	{"mode", KNOB_MODE, AT(spin), 0, 1, "sleep|spin",
	 "how `service` waits (default sleep); spin keeps\na CPU busy, in the event model the whole loop"},
	{"block", KNOB_FLAG, AT(block), 0, 1, NULL,
	 "event model: sleep in the loop itself, so that\nevery other connection waits too"},
	{"pieces", KNOB_NUMBER, AT(pieces), 1, KNOB_MAX_PIECES, "N",
	 "write the response in N writes (at most one\nper byte of its body)"},
	{"pause", KNOB_DURATION, AT(pause_ns), 0, KNOB_MAX_DURATION_NS, "DUR",
	 "wait DUR between those writes"},
	{"size", KNOB_NUMBER, AT(size), 0, KNOB_MAX_SIZE, "BYTES",
	 "answer with a body of BYTES (up to 64 MiB; udp:\n65507 per datagram)"},
	{"chunked", KNOB_FLAG, AT(chunked), 0, 1, NULL,
	 "http: a chunked response, one chunk per piece"},
	{"early-close", KNOB_FLAG, AT(early_close), 0, 1, NULL,
	 "close after half of the response's bytes"},
	{"leak", KNOB_FLAG, AT(leak), 0, 1, NULL,
	 "open a descriptor and never close it"},
	{"ignore-fin", KNOB_FLAG, AT(ignore_fin), 0, 1, NULL,
	 "never close this connection after the peer's\nFIN: it stays in CLOSE_WAIT"},
	{"reset", KNOB_FLAG, AT(reset), 0, 1, NULL,
	 "reset the connection instead of answering"},
	{"close", KNOB_FLAG, AT(close), 0, 1, NULL,
	 "close after the response"},
};
/* clang-format on */

const size_t knob_count = ARRAY_SIZE(knob_table);

void knobs_init(struct knobs *knobs)
{
	*knobs = (struct knobs){.pieces = 1, .size = KNOB_SIZE_OF_PROTOCOL};
}

static int parse_mode(const char *value, size_t length, uint64_t *ret_spin)
{
	bool spin = length == 4 && !memcmp(value, "spin", 4);

	if (!spin && (length != 5 || memcmp(value, "sleep", 5)))
		return -EINVAL;
	*ret_spin = spin;
	return 0;
}

static int parse_value(const struct knob *knob, const char *value, size_t length, uint64_t *ret)
{
	int err;

	if (knob->kind == KNOB_DURATION)
		return number_parse_duration(value, length, knob->max, ret);
	if (knob->kind == KNOB_MODE)
		return parse_mode(value, length, ret);
	err = number_parse(value, length, knob->max, ret);
	return !err && *ret < knob->min ? -ERANGE : err;
}

static void describe_allowed(const struct knob *knob, char *buffer, size_t size)
{
	if (knob->kind == KNOB_DURATION)
		snprintf(buffer, size, "a duration from 0 to 60s, as 5ms");
	else if (knob->kind == KNOB_MODE)
		snprintf(buffer, size, "sleep or spin");
	else
		snprintf(buffer, size, "a number from %llu to %llu", (unsigned long long)knob->min,
			 (unsigned long long)knob->max);
}

int knobs_set(struct knobs *knobs, const struct knob *knob, const char *value, size_t length,
	      struct complaint *ret_complaint)
{
	char allowed[64];
	uint64_t parsed;

	if (!parse_value(knob, value, length, &parsed)) {
		*(uint64_t *)((char *)knobs + knob->offset) = parsed;
		return 0;
	}
	describe_allowed(knob, allowed, sizeof(allowed));
	snprintf(ret_complaint->text, sizeof(ret_complaint->text), "%s: '%.*s' is not %s",
		 knob->name, length > 40 ? 40 : (int)length, value, allowed);
	return -EINVAL;
}

static const struct knob *find_knob(const char *name, size_t length)
{
	for (size_t i = 0; i < knob_count; i++)
		if (strlen(knob_table[i].name) == length &&
		    !memcmp(knob_table[i].name, name, length))
			return &knob_table[i];
	return NULL;
}

static int set_pair(struct knobs *knobs, const char *pair, size_t length,
		    struct complaint *ret_complaint)
{
	const char *equals = memchr(pair, '=', length);
	size_t name_length = equals ? (size_t)(equals - pair) : length;
	const struct knob *knob = find_knob(pair, name_length);

	if (knob && equals)
		return knobs_set(knobs, knob, equals + 1, length - name_length - 1, ret_complaint);
	snprintf(ret_complaint->text, sizeof(ret_complaint->text), "%s '%.*s'",
		 knob ? "no value for" : "unknown key", name_length > 40 ? 40 : (int)name_length,
		 pair);
	return -EINVAL;
}

int knobs_parse(struct knobs *knobs, const char *text, size_t length, enum knob_scope scope,
		struct complaint *ret_complaint)
{
	while (length) {
		const char *end = memchr(text, '&', length);
		size_t pair = end ? (size_t)(end - text) : length;
		int err = pair ? set_pair(knobs, text, pair, ret_complaint) : 0;

		if (err)
			return err;
		pair += !!end;
		text += pair;
		length -= pair;
	}
	return knobs_check(knobs, scope, ret_complaint);
}

int knobs_check(const struct knobs *knobs, enum knob_scope scope, struct complaint *ret_complaint)
{
	const char *wrong = NULL;

	if ((knobs->pieces - 1) * knobs->pause_ns > KNOB_MAX_DURATION_NS)
		wrong = "pause: all pauses together are longer than 60s";
	else if (knobs->chunked && scope != KNOB_SCOPE_HTTP)
		wrong = "chunked: only http has chunked responses";
	else if (scope != KNOB_SCOPE_DATAGRAM)
		wrong = NULL;
	else if (knobs->early_close || knobs->ignore_fin || knobs->reset || knobs->close)
		wrong = "early-close, ignore-fin, reset, close: udp has no connections";
	else if (knobs->size != KNOB_SIZE_OF_PROTOCOL &&
		 (knobs->size + knobs->pieces - 1) / knobs->pieces > KNOB_MAX_DATAGRAM)
		wrong = "size: a piece would be longer than 65507 bytes, the most a datagram holds";
	if (!wrong)
		return 0;
	snprintf(ret_complaint->text, sizeof(ret_complaint->text), "%s", wrong);
	return -EINVAL;
}
