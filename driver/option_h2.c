// SPDX-License-Identifier: MIT
/* HTTP/2: how many requests at a time, and gRPC. */
#include "option_rows.h"

#include "sojourn/cleanup.h"

#define STREAMS_MAX 10000

static int apply_streams(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("streams", value, 1, STREAMS_MAX, &number, ret_error);

	if (!err)
		options->streams = (uint32_t)number;
	return err;
}

static int apply_grpc(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->grpc = true;
	return 0;
}

static int apply_expect_grpc_status(struct options *options, const char *value, char **ret_error)
{
	return grpc_parse_expectation(value, &options->grpc_expectation, ret_error);
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "streams", "N", "requests at a time on each connection (default 1)", apply_streams},
	{0, "grpc", NULL,
	 "unary calls of gRPC: the path is /SERVICE/METHOD,\nthe body is the message",
	 apply_grpc},
	{0, "expect-grpc-status", "S[,S]",
	 "good are calls with one of these, and no others, by\nnumber or name (default: ok)",
	 apply_expect_grpc_status},
};
/* clang-format on */

const struct option_table option_h2 = {"HTTP/2 (h2, h2c)", rows, ARRAY_SIZE(rows)};
