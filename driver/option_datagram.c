// SPDX-License-Identifier: MIT
/* What datagrams need besides a payload: udp: targets. */
#include "option_rows.h"

#include "sojourn/cleanup.h"

#define OUTSTANDING_MAX	  4096
#define RETRANSMIT_MIN_NS 1000000

static int apply_match(struct options *options, const char *value, char **ret_error)
{
	options->datagrams.given = true;
	return match_parse(value, &options->datagrams.match, ret_error);
}

static int apply_outstanding(struct options *options, const char *value, char **ret_error)
{
	uint64_t number;
	int err = option_parse_number("outstanding", value, 1, OUTSTANDING_MAX, &number, ret_error);

	if (err)
		return err;
	options->datagrams.given = true;
	options->datagrams.outstanding = (uint32_t)number;
	return 0;
}

static int apply_retransmit(struct options *options, const char *value, char **ret_error)
{
	options->datagrams.given = true;
	return option_parse_duration("retransmit", value, RETRANSMIT_MIN_NS,
				     &options->datagrams.retransmit_ns, ret_error);
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "match", "HOW",
	 "which request a reply answers: order (default),\n"
	 "id:WIDTH[,be|le][,offset=N][,reply-offset=N] (the\n"
	 "driver writes it), or echo", apply_match},
	{0, "outstanding", "N", "requests at a time on each socket (default 1)", apply_outstanding},
	{0, "retransmit", "TIME", "send a request again after each TIME without a reply",
	 apply_retransmit},
};
/* clang-format on */

const struct option_table option_datagram = {"Datagrams (udp)", rows, ARRAY_SIZE(rows)};
