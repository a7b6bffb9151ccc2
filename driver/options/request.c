// SPDX-License-Identifier: MIT
/* Options for requests: over HTTP, and as bytes for other protocols. Reads the files that options name. */
#include "rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/http/request.h"
#include "payload/framing/escape.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

#define BODY_MAX (64U << 20)

/* Grow while reading: a pipe has no known length. */
static int read_all(FILE *file, size_t max, char **ret_bytes, size_t *ret_length)
{
	autofree char *bytes = NULL;
	size_t length = 0, size = 4096;

	while (length <= max) {
		char *grown = realloc(bytes, size *= 2);

		if (!grown)
			return -ENOMEM;
		bytes = grown;
		length += fread(bytes + length, 1, size - length, file);
		if (length < size)
			break;
	}
	if (ferror(file))
		return -EIO;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return length > max ? -EFBIG : 0;
}

int option_read_file(const char *name, const char *path, size_t max, char **ret_bytes,
		     size_t *ret_length, char **ret_error)
{
	autofclose FILE *file = fopen(path, "re");
	autofree char *bytes = NULL;
	size_t length;
	int err;

	if (!file)
		return refuse(ret_error, "--%s: cannot open '%s': %s", name, path, strerror(errno));
	err = read_all(file, max, &bytes, &length);
	if (err == -EFBIG)
		return refuse(ret_error, "--%s: '%s' is larger than %zu MiB", name, path,
			      max >> 20);
	if (err == -EIO)
		return refuse(ret_error, "--%s: cannot read '%s': %s", name, path, strerror(errno));
	if (err)
		return err;
	*ret_bytes = TAKE_PTR(bytes);
	*ret_length = length;
	return 0;
}

static int apply_method(void *settings, const char *value, char **ret_error)
{
	struct request *request = settings;

	request->method = value;
	request->method_given = true;
	return http_request_check_method(value, ret_error);
}

static int apply_header(void *settings, const char *value, char **ret_error)
{
	struct request *request = settings;
	int err = http_request_check_header(value, ret_error);
	const char **added;

	if (err)
		return err;
	added = ARRAY_APPEND(request->headers, request->header_count);
	if (!added)
		return -ENOMEM;
	*added = value;
	return 0;
}

static int apply_body(void *settings, const char *value, char **ret_error)
{
	struct request *request = settings;
	char *body;
	size_t length;
	int err;

	if (value[0] == '@') {
		err = option_read_file("body", value + 1, BODY_MAX, &body, &length, ret_error);
	} else {
		body = strdup(value);
		length = strlen(value);
		err = body ? 0 : -ENOMEM;
	}
	if (err)
		return err;
	free(request->body);
	request->body = body;
	request->body_length = length;
	return 0;
}

static int apply_expect_status(void *expectation, const char *value, char **ret_error)
{
	return expectation_parse_status(expectation, value, ret_error);
}

static int apply_expect_body(void *expectation, const char *value, char **ret_error)
{
	return expectation_parse_body(expectation, value, ret_error);
}

/* clang-format off */
static const struct cli_option http_rows[] = {
	{"method", 'm', "METHOD", "request method (default GET; POST with --body)",
	 CLI_APPLY, .apply = apply_method, .alias = 'X'},
	{"header", 'H', "LINE", "add a header, 'Name: value'; may be repeated",
	 CLI_APPLY, .apply = apply_header},
	{"body", 0, "TEXT", "request body; @FILE sends a file's content",
	 CLI_APPLY, .apply = apply_body, .elsewhere = "data", .file = "@"},
	{"expect-status", 0, "N[,N]",
	 "good are responses with one of these, and no others\n(default: all below 400)",
	 CLI_APPLY, CLI_AT(struct request, expectation), .apply = apply_expect_status},
	{"expect-body", 0, "TEXT", "good are only responses whose body contains TEXT",
	 CLI_APPLY, CLI_AT(struct request, expectation), .apply = apply_expect_body},
};
/* clang-format on */

const struct cli_table option_request = {"Requests over HTTP", http_rows, ARRAY_SIZE(http_rows),
					 offsetof(struct options, request)};

#define PAYLOAD_MAX ((size_t)64 << 20)
#define ROWS_MAX    ((size_t)256 << 20)
#define REPLIES_MAX 1000000

/* Set the one payload, which takes over @bytes. */
static int take_payload(struct request *request, const char *option, char *bytes, size_t length,
			char **ret_error)
{
	const char *before = request->payload_option;

	if (before && strcmp(before, option) != 0) {
		free(bytes);
		return refuse(ret_error, "--%s: --%s is the request already; give one of the two",
			      option, before);
	}
	free(request->payload);
	request->payload_option = option;
	request->payload = bytes;
	request->payload_length = length;
	request->payload_literal = !strcmp(option, "payload-hex");
	return 0;
}

static int apply_payload(void *settings, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = escape_decode(value, &bytes, &length);

	if (err == -EINVAL)
		return refuse(ret_error, "--payload: '%s' has an unknown escape; allowed: %s",
			      value, ESCAPE_FORMS);
	return err ? err : take_payload(settings, "payload", bytes, length, ret_error);
}

static int apply_payload_hex(void *settings, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = escape_decode_hex(value, &bytes, &length);

	if (err == -EINVAL)
		return refuse(ret_error,
			      "--payload-hex: '%s' is not made of pairs of hexadecimal digits",
			      value);
	return err ? err : take_payload(settings, "payload-hex", bytes, length, ret_error);
}

static int apply_payload_file(void *settings, const char *value, char **ret_error)
{
	char *bytes;
	size_t length;
	int err = option_read_file("payload-file", value, PAYLOAD_MAX, &bytes, &length, ret_error);

	return err ? err : take_payload(settings, "payload-file", bytes, length, ret_error);
}

static int apply_rows(void *rows_, const char *value, char **ret_error)
{
	char *text;
	size_t length;
	int err = option_read_file("rows", value, ROWS_MAX, &text, &length, ret_error);

	if (err)
		return err;
	template_rows_clear(rows_);
	err = template_rows_take(text, length, rows_);
	if (err == -EINVAL)
		return refuse(ret_error, "--rows: '%s' is empty; it needs a row", value);
	return err;
}

static int apply_framing(void *settings, const char *value, char **ret_error)
{
	struct framing *framing = settings;
	uint32_t replies = framing->replies;
	int err = framing_parse(value, framing, ret_error);

	framing->replies = replies;
	return err;
}

/* clang-format off */
static const struct cli_option bytes_rows[] = {
	{"payload", 0, "TEXT",
	 "the request, with \\r \\n \\t \\0 \\\\ \\xHH, and fields\n"
	 "that differ from request to request: {{counter}}", CLI_APPLY, .apply = apply_payload},
	{"payload-hex", 0, "HEX", "the request in hexadecimal, without fields",
	 CLI_APPLY, .apply = apply_payload_hex},
	{"payload-file", 0, "FILE", "the request is a file's content, with fields",
	 CLI_APPLY, .apply = apply_payload_file, .file = ""},
	{"framing", 0, "HOW",
	 "where a response ends: fixed:SIZE, delimiter:TEXT,\n"
	 "length:WIDTH[,be|le][,offset=N][,adjust=N], ber,\nldap, resp, dns, echo or close; udp: only checks it",
	 CLI_APPLY, CLI_AT(struct request, framing), .apply = apply_framing},
	{"replies", 0, "N", "a response is N of these (default 1)", CLI_NUMBER,
	 CLI_AT(struct request, framing.replies), .minimum = 1, .maximum = REPLIES_MAX},
	{"rows", 0, "FILE", "lines for {{row}} and, between commas, {{row:1}} …", CLI_APPLY,
	 CLI_AT(struct request, rows), .apply = apply_rows, .file = ""},
	{"no-template", 0, NULL, "{{ is sent as it is",
	 CLI_FLAG, CLI_AT(struct request, no_template)},
};
/* clang-format on */

const struct cli_table option_stream = {"Requests of bytes (tcp, udp, unix), and fields",
					bytes_rows, ARRAY_SIZE(bytes_rows),
					offsetof(struct options, request)};
