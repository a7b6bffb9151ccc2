// SPDX-License-Identifier: MIT
/* Requests of bytes, for protocols that the driver does not know: tcp:, udp: and unix: targets. */
#include "option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "escape.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

#define PAYLOAD_MAX ((size_t)64 << 20)
#define ROWS_MAX    ((size_t)256 << 20)
#define REPLIES_MAX 1000000

/* There is one request. @bytes are used up. */
static int take_payload(struct options *options, const char *option, char *bytes, size_t length,
			char **ret_error)
{
	const char *before = options->payload_option;

	if (before && strcmp(before, option) != 0) {
		free(bytes);
		return refuse(ret_error, "--%s: --%s is the request already; give one of the two",
			      option, before);
	}
	free(options->payload);
	options->payload_option = option;
	options->payload = bytes;
	options->payload_length = length;
	options->payload_literal = !strcmp(option, "payload-hex");
	return 0;
}

static int apply_payload(struct options *options, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = escape_decode(value, &bytes, &length);

	if (err == -EINVAL)
		return refuse(ret_error, "--payload: '%s' has an unknown escape; allowed: %s",
			      value, ESCAPE_FORMS);
	return err ? err : take_payload(options, "payload", bytes, length, ret_error);
}

static int apply_payload_hex(struct options *options, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = escape_decode_hex(value, &bytes, &length);

	if (err == -EINVAL)
		return refuse(ret_error,
			      "--payload-hex: '%s' is not made of pairs of hexadecimal digits",
			      value);
	return err ? err : take_payload(options, "payload-hex", bytes, length, ret_error);
}

static int apply_payload_file(struct options *options, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = option_read_file("payload-file", value, PAYLOAD_MAX, &bytes, &length, ret_error);

	return err ? err : take_payload(options, "payload-file", bytes, length, ret_error);
}

static int apply_rows(struct options *options, const char *value, char **ret_error)
{
	char *text;
	size_t length;
	int err = option_read_file("rows", value, ROWS_MAX, &text, &length, ret_error);

	if (err)
		return err;
	template_rows_clear(&options->rows);
	err = template_rows_take(text, length, &options->rows);
	if (err == -EINVAL)
		return refuse(ret_error, "--rows: '%s' is empty; it needs a row", value);
	return err;
}

static int apply_no_template(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->no_template = true;
	return 0;
}

static int apply_framing(struct options *options, const char *value, char **ret_error)
{
	uint32_t replies = options->framing.replies;
	int err = framing_parse(value, &options->framing, ret_error);

	options->framing.replies = replies;
	return err;
}

static int apply_replies(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("replies", value, 1, REPLIES_MAX, &number, ret_error);

	if (!err)
		options->framing.replies = (uint32_t)number;
	return err;
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "payload", "TEXT",
	 "the request, with \\r \\n \\t \\0 \\\\ \\xHH, and fields\n"
	 "that differ from request to request: {{counter}}",
	 apply_payload},
	{0, "payload-hex", "HEX", "the request in hexadecimal, without fields", apply_payload_hex},
	{0, "payload-file", "FILE", "the request is a file's content, with fields",
	 apply_payload_file},
	{0, "framing", "HOW",
	 "where a response ends: fixed:SIZE, delimiter:TEXT,\n"
	 "length:WIDTH[,be|le][,offset=N][,adjust=N], ber,\nldap, resp, dns, echo or close; udp: only checks it", apply_framing},
	{0, "replies", "N", "a response is N of these (default 1)", apply_replies},
	{0, "rows", "FILE", "lines for {{row}} and, between commas, {{row:1}} …", apply_rows},
	{0, "no-template", NULL, "{{ is sent as it is", apply_no_template},
};
/* clang-format on */

const struct option_table option_stream = {"Requests of bytes (tcp, udp, unix), and fields", rows,
					   ARRAY_SIZE(rows)};
