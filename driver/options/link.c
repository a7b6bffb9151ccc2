// SPDX-License-Identifier: MIT
/* Options for connections, HTTP/2, TLS and datagram sockets. */
#include "rows.h"

#include "engine/http2/grpc.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

#define CONNECT_RATE_MAX 1000000000ULL
#define BUFFER_MIN	 1024ULL
#define BUFFER_MAX	 (1ULL << 30)

#define ABOVE_ZERO "is not a number above 0; write it like 1, 500 or 20k"

/* Indexed by the policy's @reset and @delay. */
static const char *const closes[] = {"fin", "rst"}, *const switches[] = {"on", "off"};

/* clang-format off */
static const struct cli_option connection_rows[] = {
	{"new-connections", 0, NULL,
	 "one connection per request; connecting is timed\nseparately",
	 CLI_FLAG, AT(link.new_connections)},
	{"requests-per-connection", 0, "N", "close a connection after N requests", CLI_COUNT,
	 AT(link.policy.requests), .minimum = 1, .allowed = ABOVE_ZERO},
	{"connection-lifetime", 0, "TIME",
	 "close a connection that is older than TIME, between\nrequests",
	 CLI_DURATION, AT(link.policy.lifetime_ns), .minimum = NSEC_PER_MSEC},
	{"connect-rate", 0, "N", "open at most N connections per second", CLI_COUNT,
	 AT(link.policy.connect_rate), .minimum = 1, .maximum = CONNECT_RATE_MAX, .allowed = ABOVE_ZERO},
	{"close", 0, "HOW", "fin (default), or rst: leaves no TIME_WAIT", CLI_WORD,
	 AT(link.policy.reset), .words = closes, .maximum = 2, .allowed = "is not known; use rst or fin"},
	{"nodelay", 0, "on|off", "TCP_NODELAY (default on)", CLI_WORD,
	 AT(link.policy.delay), .words = switches, .maximum = 2, .allowed = "is not known; use off or on"},
	{"send-buffer", 0, "BYTES", "SO_SNDBUF (default: the kernel adapts it)", CLI_NUMBER,
	 AT(link.policy.send_buffer), .minimum = BUFFER_MIN, .maximum = BUFFER_MAX},
	{"receive-buffer", 0, "BYTES", "SO_RCVBUF likewise", CLI_NUMBER,
	 AT(link.policy.receive_buffer), .minimum = BUFFER_MIN, .maximum = BUFFER_MAX},
};
/* clang-format on */

const struct cli_table option_connection = {"Connections", connection_rows,
					    ARRAY_SIZE(connection_rows), 0};

#define STREAMS_MAX 10000

static int apply_expect_grpc_status(void *expectation, const char *value, char **ret_error)
{
	return grpc_parse_expectation(value, expectation, ret_error);
}

static int apply_grpc_replies(void *expectation, const char *value, char **ret_error)
{
	return grpc_parse_replies(value, expectation, ret_error);
}

/* clang-format off */
static const struct cli_option h2_rows[] = {
	{"streams", 0, "N", "requests at a time on each connection (default 1)", CLI_NUMBER,
	 AT(link.streams), .minimum = 1, .maximum = STREAMS_MAX},
	{"grpc", 0, NULL,
	 "calls of gRPC: the path is /SERVICE/METHOD,\nthe body is the message",
	 CLI_FLAG, AT(request.grpc)},
	{"grpc-messages", 0, "N", "send the message N times in each call (default 1)",
	 CLI_NUMBER, AT(request.grpc_messages.count), .minimum = 1, .maximum = GRPC_MESSAGES_MAX},
	{"grpc-interval", 0, "TIME",
	 "from one message of a call to the next (default: as\nfast as the server takes them)",
	 CLI_DURATION, AT(request.grpc_messages.interval_ns), .minimum = NSEC_PER_MSEC},
	{"grpc-replies", 0, "N|any", "messages of a good response with status OK (default 1)",
	 CLI_APPLY, AT(request.grpc_expectation), .apply = apply_grpc_replies},
	{"expect-grpc-status", 0, "S[,S]",
	 "good are calls with one of these, and no others, by\nnumber or name (default: ok)",
	 CLI_APPLY, AT(request.grpc_expectation), .apply = apply_expect_grpc_status},
};
/* clang-format on */

const struct cli_table option_h2 = {"HTTP/2 (h2, h2c)", h2_rows, ARRAY_SIZE(h2_rows), 0};

/* clang-format off */
static const struct cli_option tls_rows[] = {
	{"ca", 0, "FILE",
	 "trust the certificates in FILE (PEM), and no others\n(default: the system's authorities)",
	 CLI_TEXT, AT(link.tls.ca_path), .file = ""},
	{"insecure", 'k', NULL, "accept any certificate", CLI_FLAG, AT(link.tls.insecure)},
	{"server-name", 0, "NAME",
	 "ask for NAME (SNI), and expect it in the certificate\n(default: the URL's host)",
	 CLI_TEXT, AT(link.tls.server_name)},
	{"cert", 0, "FILE", "present this certificate, with its chain (PEM)",
	 CLI_TEXT, AT(link.tls.cert_path), .file = ""},
	{"key", 0, "FILE", "its private key (default: in the same file)",
	 CLI_TEXT, AT(link.tls.key_path), .file = ""},
};
/* clang-format on */

const struct cli_table option_tls = {"TLS (https, h2)", tls_rows, ARRAY_SIZE(tls_rows), 0};

#define OUTSTANDING_MAX 4096

static int apply_match(void *match, const char *value, char **ret_error)
{
	return match_parse(value, match, ret_error);
}

/* clang-format off */
static const struct cli_option datagram_rows[] = {
	{"match", 0, "HOW",
	 "which request a reply answers: order (default),\n"
	 "id:WIDTH[,be|le][,offset=N][,reply-offset=N] (the\n"
	 "driver writes it), or echo", CLI_APPLY, AT(request.match), .apply = apply_match},
	{"outstanding", 0, "N", "requests at a time on each socket (default 1)", CLI_NUMBER,
	 AT(link.datagrams.outstanding), .minimum = 1, .maximum = OUTSTANDING_MAX},
	{"retransmit", 0, "TIME", "send a request again after each TIME without a reply",
	 CLI_DURATION,
	 AT(link.datagrams.retransmit_ns), .minimum = NSEC_PER_MSEC},
};
/* clang-format on */

const struct cli_table option_datagram = {"Datagrams (udp)", datagram_rows,
					  ARRAY_SIZE(datagram_rows), 0};
