// SPDX-License-Identifier: MIT
/* How long connections live, how they are opened and closed, and their sockets' options. */
#include "option_rows.h"

#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define CONNECT_RATE_MAX 1000000000ULL
#define BUFFER_MIN	 1024ULL
#define BUFFER_MAX	 (1ULL << 30)

static int apply_new_connections(struct options *options, const char *value, char **ret_error)
{
	(void)value;
	(void)ret_error;
	options->new_connections = true;
	return 0;
}

static int parse_count(const char *name, const char *value, uint64_t max, uint64_t *ret_count,
		       char **ret_error)
{
	uint64_t count;

	if (units_parse_count(value, &count) || !count || count > max)
		return refuse(ret_error,
			      "--%s: '%s' is not a number above 0; write it like 1, 500 or 20k",
			      name, value);
	*ret_count = count;
	return 0;
}

static int apply_requests(struct options *options, const char *value, char **ret_error)
{
	return parse_count("requests-per-connection", value, UINT64_MAX, &options->policy.requests,
			   ret_error);
}

static int apply_lifetime(struct options *options, const char *value, char **ret_error)
{
	return option_parse_duration("connection-lifetime", value, 1000000,
				     &options->policy.lifetime_ns, ret_error);
}

static int apply_connect_rate(struct options *options, const char *value, char **ret_error)
{
	return parse_count("connect-rate", value, CONNECT_RATE_MAX, &options->policy.connect_rate,
			   ret_error);
}

/* Whether @value is @yes; it must be that or @no. */
static int parse_either(const char *name, const char *value, const char *yes, const char *no,
			bool *ret_is, char **ret_error)
{
	if (strcmp(value, yes) && strcmp(value, no))
		return refuse(ret_error, "--%s: '%s' is not known; use %s or %s", name, value, yes,
			      no);
	*ret_is = !strcmp(value, yes);
	return 0;
}

static int apply_close(struct options *options, const char *value, char **ret_error)
{
	return parse_either("close", value, "rst", "fin", &options->policy.reset, ret_error);
}

static int apply_nodelay(struct options *options, const char *value, char **ret_error)
{
	return parse_either("nodelay", value, "off", "on", &options->policy.delay, ret_error);
}

static int parse_buffer(const char *name, const char *value, uint32_t *ret_size, char **ret_error)
{
	uint64_t size;
	int err = option_parse_number(name, value, BUFFER_MIN, BUFFER_MAX, &size, ret_error);

	if (!err)
		*ret_size = (uint32_t)size;
	return err;
}

static int apply_send_buffer(struct options *options, const char *value, char **ret_error)
{
	return parse_buffer("send-buffer", value, &options->policy.send_buffer, ret_error);
}

static int apply_receive_buffer(struct options *options, const char *value, char **ret_error)
{
	return parse_buffer("receive-buffer", value, &options->policy.receive_buffer, ret_error);
}

/* clang-format off */
static const struct option_row rows[] = {
	{0, "new-connections", NULL,
	 "one connection per request; connecting is timed\nseparately",
	 apply_new_connections},
	{0, "requests-per-connection", "N", "close a connection after N requests", apply_requests},
	{0, "connection-lifetime", "TIME",
	 "close a connection that is older than TIME, between\nrequests", apply_lifetime},
	{0, "connect-rate", "N", "open at most N connections per second", apply_connect_rate},
	{0, "close", "HOW", "fin (default), or rst: leaves no TIME_WAIT", apply_close},
	{0, "nodelay", "on|off", "TCP_NODELAY (default on)", apply_nodelay},
	{0, "send-buffer", "BYTES", "SO_SNDBUF (default: the kernel adapts it)", apply_send_buffer},
	{0, "receive-buffer", "BYTES", "SO_RCVBUF likewise", apply_receive_buffer},
};
/* clang-format on */

const struct option_table option_connection = {"Connections", rows, ARRAY_SIZE(rows)};
