// SPDX-License-Identifier: MIT
/* What is asked of the server. */
#include "option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http_request.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

#define BODY_MAX (64U << 20)

static int apply_method(struct options *options, const char *value, char **ret_error)
{
	options->method = value;
	options->method_given = true;
	return http_request_check_method(value, ret_error);
}

static int apply_header(struct options *options, const char *value, char **ret_error)
{
	size_t size = (options->header_count + 1) * sizeof(*options->headers);
	int err = http_request_check_header(value, ret_error);
	const char **headers;

	if (err)
		return err;
	headers = realloc(options->headers, size);
	if (!headers)
		return -ENOMEM;
	headers[options->header_count++] = value;
	options->headers = headers;
	return 0;
}

static int apply_body(struct options *options, const char *value, char **ret_error)
{
	char *body;
	size_t length;
	int err;

	if (value[0] == '@') {
		err = option_read_file("body", value + 1, BODY_MAX, &body, &length, ret_error);
		if (err)
			return err;
		free(options->body);
		options->body = body;
		options->body_length = length;
		return 0;
	}
	free(options->body);
	options->body = strdup(value);
	options->body_length = strlen(value);
	return options->body ? 0 : -ENOMEM;
}

static int apply_expect_status(struct options *options, const char *value, char **ret_error)
{
	return expectation_parse_status(&options->expectation, value, ret_error);
}

static int apply_expect_body(struct options *options, const char *value, char **ret_error)
{
	return expectation_parse_body(&options->expectation, value, ret_error);
}

/* clang-format off */
static const struct option_row rows[] = {
	{'m', "method", "METHOD", "request method (default GET; POST with --body)", apply_method},
	{'H', "header", "LINE", "add a header, 'Name: value'; may be repeated", apply_header},
	{0, "body", "TEXT", "request body; @FILE sends a file's content", apply_body},
	{0, "expect-status", "N[,N]",
	 "good are responses with one of these, and no others\n(default: all below 400)",
	 apply_expect_status},
	{0, "expect-body", "TEXT", "good are only responses whose body contains TEXT",
	 apply_expect_body},
};
/* clang-format on */

const struct option_table option_request = {"Requests over HTTP", rows, ARRAY_SIZE(rows)};
