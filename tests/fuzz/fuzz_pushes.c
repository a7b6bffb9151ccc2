// SPDX-License-Identifier: MIT
/*
 * Any bytes as frames of WebSocket, and as server-sent events, through the kernel's own parsers. The result must not depend
 * on how they are cut. Parsers of another kind, which have all bytes before them, must count the same. The first byte gives
 * the sender and the length of the pieces.
 */
#include <string.h>

#include "fuzz.h"

#include "../../bpf/protocol/events.h"
#include "../../bpf/protocol/websocket.h"

struct counted {
	uint64_t messages, bytes, control;
	bool wrong;
};

/* ---- frames ---- */

static bool feed(struct websocket_side *s, const uint8_t *data, size_t size,
		 struct counted *counted)
{
	for (size_t i = 0; i < size;) {
		uint64_t part = size - i;
		int said;

		if (s->stage == WEBSOCKET_PAYLOAD) {
			require(s->left);
			if (part > s->left)
				part = s->left;
			said = websocket_pass(s, part);
		} else {
			part = 1;
			said = websocket_byte(s, data[i]);
		}
		i += part;
		if (said & WEBSOCKET_MESSAGE) {
			require(!s->open && s->stage == WEBSOCKET_FIRST);
			counted->messages++;
			counted->bytes += s->bytes;
		}
		counted->control += !!(said & WEBSOCKET_CONTROL);
		counted->wrong = said & WEBSOCKET_WRONG;
		if (counted->wrong)
			return false;
	}
	return true;
}

static struct counted in_pieces(bool client, const uint8_t *data, size_t size, size_t piece)
{
	struct websocket_side s = {.masks = client};
	struct counted counted = {0};

	for (size_t i = 0; i < size; i += piece)
		if (!feed(&s, data + i, size - i < piece ? size - i : piece, &counted))
			break;
	return counted;
}

/* Return the length of the frame at the start, 0 if it is not whole or forbidden. *ret_payload: of it, that of the payload. */
static size_t whole_frame(const uint8_t *data, size_t size, bool client, bool open,
			  uint64_t *ret_payload)
{
	uint64_t length;
	size_t header = 2;
	bool control;

	if (size < header || data[0] & 0x30 || (data[1] >= 0x80) != client)
		return 0;
	control = data[0] & 8;
	length = data[1] & 0x7f;
	if (control && ((data[0] & 0xc0) != 0x80 || (data[0] & 7) > 2 || length > 125))
		return 0;
	if (!control && ((data[0] & 7) > 2 || open != !(data[0] & 7) || (open && data[0] & 0x40)))
		return 0;
	if (length > 125) {
		size_t wide = length == 126 ? 2 : 8;

		if (size < header + wide)
			return 0;
		length = 0;
		for (size_t i = 0; i < wide; i++)
			length = length * 256 + data[header + i];
		header += wide;
	}
	header += client ? 4 : 0;
	if (size < header || length > size - header)
		return 0;
	*ret_payload = length;
	return header + (size_t)length;
}

/* As many messages as whole frames have must be counted once these have come. */
static void compare_frames(const uint8_t *data, size_t size, bool client)
{
	struct counted expected = {0}, counted;
	uint64_t payload = 0, sum = 0;
	bool open = false;
	size_t at = 0, length;

	while ((length = whole_frame(data + at, size - at, client, open, &payload))) {
		uint8_t first = data[at];

		at += length;
		if (first & 8) {
			expected.control++;
			continue;
		}
		sum = open ? sum + payload : payload;
		open = !(first & 0x80);
		if (!open) {
			expected.messages++;
			expected.bytes += sum;
		}
	}
	counted = in_pieces(client, data, at, at ? at : 1);
	require(!memcmp(&counted, &expected, sizeof(counted)));
}

/* ---- events ---- */

static uint64_t events_in(const uint8_t *data, size_t size, bool passes)
{
	struct events_side s = {0};
	uint64_t count = 0;

	for (size_t i = 0; i < size; i++) {
		uint64_t word;

		if (passes && size - i >= sizeof(word)) {
			memcpy(&word, data + i, sizeof(word));
			if (events_pass(&s, word)) {
				i += sizeof(word) - 1;
				continue;
			}
		}
		count += (uint64_t)events_byte(&s, data[i]);
	}
	return count;
}

/* Lines as the standard divides them. A mark that is cut short is a line like any other. */
static uint64_t events_by_lines(const uint8_t *data, size_t size)
{
	const uint8_t *at = data, *end = data + size;
	bool has_data = false;
	uint64_t count = 0;

	if (size >= 3 && !memcmp(data, "\xef\xbb\xbf", 3))
		at += 3;
	while (at < end) {
		const uint8_t *line = at;
		size_t length;

		while (at < end && *at != '\r' && *at != '\n')
			at++;
		if (at == end)
			break;
		length = (size_t)(at - line);
		at += *at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1;
		if (!length) {
			count += has_data;
			has_data = false;
		} else if (length >= 4 && !memcmp(line, "data", 4) &&
			   (length == 4 || line[4] == ':')) {
			has_data = true;
		}
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool client = size && data[0] & 1;
	struct counted whole, cut;

	if (size < 2)
		return 0;
	whole = in_pieces(client, data + 1, size - 1, size);
	cut = in_pieces(client, data + 1, size - 1, (data[0] >> 1) + 1U);
	require(!memcmp(&whole, &cut, sizeof(whole)));
	compare_frames(data + 1, size - 1, client);
	require(events_in(data + 1, size - 1, false) == events_by_lines(data + 1, size - 1));
	require(events_in(data + 1, size - 1, true) == events_by_lines(data + 1, size - 1));
	return 0;
}
