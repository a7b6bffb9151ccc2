// SPDX-License-Identifier: MIT
/* The names of stages, closes, losses and errors: a table each, in the order of its enum. */
#include "sojourn/run.h"

#include <string.h>

/* Refuse a table with a gap at its end, which is shorter than its enum. */
#define CHECK_LAST(table, count, last) \
	_Static_assert((last) + 1 == (count), #table " lacks a name for the last of its enum")

const char *const run_stage_names[STAGE_COUNT] = {
	[STAGE_ACCEPT_QUEUE] = "accept_queue",
	[STAGE_SOCKET_QUEUE] = "socket_queue",
	[STAGE_RECEIVE] = "receive",
	[STAGE_SERVICE] = "service",
	[STAGE_RESPOND] = "respond",
	[STAGE_TRANSMIT_QUEUE] = "transmit_queue",
	[STAGE_ACK] = "ack",
};
CHECK_LAST(run_stage_names, STAGE_COUNT, STAGE_ACK);

bool run_accept_is_inferred(const struct run_stage *stages)
{
	const struct run_stage *accept = &stages[STAGE_ACCEPT_QUEUE];

	return accept->measured && accept->source && !strcmp(accept->source, "inferred");
}

const char *run_stage_label(const struct run_stage *stages, enum stage which)
{
	if (which == STAGE_ACCEPT_QUEUE && run_accept_is_inferred(stages))
		return "accept or socket queue";
	return run_stage_names[which];
}

const char *const run_cpu_names[RUN_CPU_COUNT] = {
	[RUN_CPU_RUNNING] = "running",
	[RUN_CPU_RUNNABLE] = "runnable",
	[RUN_CPU_BLOCKED] = "blocked",
};
CHECK_LAST(run_cpu_names, RUN_CPU_COUNT, RUN_CPU_BLOCKED);

const char *const run_close_names[RUN_CLOSE_COUNT] = {
	[RUN_CLOSE_BY_SERVER] = "closed_by_server",
	[RUN_CLOSE_BY_CLIENT] = "closed_by_client",
	[RUN_RESET_BY_SERVER] = "reset_by_server",
	[RUN_RESET_BY_CLIENT] = "reset_by_client",
	[RUN_TIMED_OUT] = "timed_out",
};
CHECK_LAST(run_close_names, RUN_CLOSE_COUNT, RUN_TIMED_OUT);

const char *const run_loss_names[RUN_LOSS_COUNT] = {
	[RUN_LOSS_OVERLAPPED] = "overlapped",
	[RUN_LOSS_UNSOLICITED] = "unsolicited",
	[RUN_LOSS_UNANSWERED] = "unanswered",
	[RUN_LOSS_PREEXISTING] = "preexisting",
	[RUN_LOSS_CUT_OFF] = "cut_off",
	[RUN_LOSS_UNTIMED] = "untimed",
	[RUN_LOSS_ACCEPT_UNSEEN] = "accept_unseen",
	[RUN_LOSS_MULTIPLEXED] = "multiplexed",
	[RUN_LOSS_DROPPED] = "dropped",
	[RUN_LOSS_UNMATCHED] = "unmatched",
	[RUN_LOSS_TRANSMIT_UNSEEN] = "transmit_unseen",
	[RUN_LOSS_ACK_UNSEEN] = "ack_unseen",
	[RUN_LOSS_STORAGE_FAILED] = "storage_failed",
	[RUN_LOSS_ONEWAY] = "oneway",
	[RUN_LOSS_GOODBYES] = "goodbyes",
	[RUN_LOSS_TRAILING] = "trailing",
	[RUN_LOSS_INCONSISTENT] = "inconsistent",
	[RUN_LOSS_UNSEEN_READS] = "unseen_reads",
	[RUN_LOSS_BLOCKED] = "blocked",
	[RUN_LOSS_MPTCP] = "mptcp",
	[RUN_LOSS_CARRIED] = "carried",
	[RUN_LOSS_TIME_WAIT_UNSURE] = "time_wait_unsure",
	[RUN_LOSS_AMBIGUOUS_REPLIES] = "ambiguous_replies",
	[RUN_LOSS_UNTRACKED] = "untracked",
	[RUN_LOSS_TLS_UNKNOWN] = "tls_unknown",
	[RUN_LOSS_UNRECOGNISED] = "unrecognised",
	[RUN_LOSS_PERHAPS_WEBSOCKET] = "perhaps_websocket",
};
CHECK_LAST(run_loss_names, RUN_LOSS_COUNT, RUN_LOSS_PERHAPS_WEBSOCKET);

const char *const run_loss_help[RUN_LOSS_COUNT] = {
	[RUN_LOSS_OVERLAPPED] = "request readable before the previous response was complete",
	[RUN_LOSS_UNSOLICITED] = "writes with no request before them",
	[RUN_LOSS_UNANSWERED] = "no response before the connection (UDP: the period) ended",
	[RUN_LOSS_PREEXISTING] = "connections older than the observation",
	[RUN_LOSS_CUT_OFF] = "exchanges under way when the observation began: not timed",
	[RUN_LOSS_UNTIMED] = "requests whose arrival (UDP: whose reply) is not known: not timed",
	[RUN_LOSS_ACCEPT_UNSEEN] = "connections whose accept queue wait could not be inferred",
	[RUN_LOSS_MULTIPLEXED] = "HTTP/2 connections, whose requests overlap: not timed",
	[RUN_LOSS_DROPPED] = "UDP datagrams that found the receive buffer full",
	[RUN_LOSS_UNMATCHED] = "UDP datagrams whose arrival and read could not be matched",
	[RUN_LOSS_TRANSMIT_UNSEEN] = "responses followed whose last byte was not seen to leave",
	[RUN_LOSS_ACK_UNSEEN] = "responses followed whose acknowledgement was not seen",
	[RUN_LOSS_STORAGE_FAILED] = "connections not observed: the kernel had no memory for them",
	[RUN_LOSS_ONEWAY] = "messages that got no response before the client sent the next one",
	[RUN_LOSS_GOODBYES] =
		"messages that the client's FIN followed at once: they want no response",
	[RUN_LOSS_TRAILING] = "late writes, a pause after their response: not part of it",
	[RUN_LOSS_INCONSISTENT] = "times that contradict each other: not recorded",
	[RUN_LOSS_UNSEEN_READS] =
		"exchanges that were read where no program sees it (splice): not timed",
	[RUN_LOSS_BLOCKED] =
		"first writes that waited for room: their start is known to a tick of the kernel",
	[RUN_LOSS_MPTCP] = "MPTCP connections, whose data passes another socket: not seen",
	[RUN_LOSS_CARRIED] =
		"responses that went on when a phase began: their respond began before it",
	[RUN_LOSS_TIME_WAIT_UNSURE] =
		"closes in a namespace full of TIME_WAIT sockets: perhaps without one",
	[RUN_LOSS_AMBIGUOUS_REPLIES] =
		"UDP replies that may answer any of several requests: not timed",
	[RUN_LOSS_UNTRACKED] = "UDP requests beyond those that are remembered until their reply",
	[RUN_LOSS_TLS_UNKNOWN] = "TLS connections whose protocol is not known: not timed",
	[RUN_LOSS_UNRECOGNISED] =
		"connections read by io_uring: times are right unless they speak TLS or HTTP/2",
	[RUN_LOSS_PERHAPS_WEBSOCKET] = ("connections older than the observation, whose exchanges "
					"may be messages of WebSocket"),
};
CHECK_LAST(run_loss_help, RUN_LOSS_COUNT, RUN_LOSS_PERHAPS_WEBSOCKET);

const char *const run_uncut_names[RUN_UNCUT_COUNT] = {
	[RUN_UNCUT_HTTP2] = "http2",	       [RUN_UNCUT_PERHAPS_HTTP2] = "perhaps_http2",
	[RUN_UNCUT_OVERLAPPED] = "overlapped", [RUN_UNCUT_TUNNELS] = "tunnels",
	[RUN_UNCUT_UNSEEN] = "unseen",
};
CHECK_LAST(run_uncut_names, RUN_UNCUT_COUNT, RUN_UNCUT_UNSEEN);

const char *const run_uncut_help[RUN_UNCUT_COUNT] = {
	[RUN_UNCUT_HTTP2] = "speak HTTP/2, whose requests overlap",
	[RUN_UNCUT_PERHAPS_HTTP2] = "may speak HTTP/2 in TLS",
	[RUN_UNCUT_OVERLAPPED] =
		"carried a request before the previous response was complete, or may have done so",
	[RUN_UNCUT_TUNNELS] = "became tunnels (CONNECT, status 101)",
	[RUN_UNCUT_UNSEEN] =
		"carry bytes that cannot be read (io_uring, sendfile, TLS in the kernel, MPTCP)",
};
CHECK_LAST(run_uncut_help, RUN_UNCUT_COUNT, RUN_UNCUT_UNSEEN);

const bool run_loss_is_lost[RUN_LOSS_COUNT] = {
	[RUN_LOSS_STORAGE_FAILED] = true,
};

const char *const run_age_names[RUN_AGE_COUNT] = {
	"below_1ms", "below_10ms", "below_100ms", "below_1s", "below_10s", "below_100s", "longer",
};
CHECK_LAST(run_age_names, RUN_AGE_COUNT, 6);

const char *const run_error_names[RUN_ERROR_COUNT] = {
	[RUN_ERROR_REFUSED] = "refused",
	[RUN_ERROR_ADDRESS_UNAVAILABLE] = "address_unavailable",
	[RUN_ERROR_TOO_MANY_FILES] = "too_many_files",
	[RUN_ERROR_CONNECT_TIMEOUT] = "connect_timeout",
	[RUN_ERROR_CONNECT_OTHER] = "connect_other",
	[RUN_ERROR_TLS_TIMEOUT] = "tls_timeout",
	[RUN_ERROR_TLS] = "tls",
	[RUN_ERROR_CERTIFICATE] = "certificate",
	[RUN_ERROR_NOT_NEGOTIATED] = "not_negotiated",
	[RUN_ERROR_RESET] = "reset",
	[RUN_ERROR_TRANSFER_OTHER] = "transfer_other",
	[RUN_ERROR_CLOSED_EARLY] = "closed_early",
	[RUN_ERROR_STREAM_RESET] = "stream_reset",
	[RUN_ERROR_UNPROCESSED] = "unprocessed",
	[RUN_ERROR_TIMEOUT] = "timeout",
	[RUN_ERROR_MALFORMED] = "malformed",
	[RUN_ERROR_STATUS] = "status",
	[RUN_ERROR_UNEXPECTED] = "unexpected",
};
CHECK_LAST(run_error_names, RUN_ERROR_COUNT, RUN_ERROR_UNEXPECTED);

const char *const run_datagram_names[RUN_DATAGRAM_COUNT] = {
	[RUN_DATAGRAM_LATE] = "late",
	[RUN_DATAGRAM_DUPLICATE] = "duplicate",
	[RUN_DATAGRAM_UNMATCHED] = "unmatched",
	[RUN_DATAGRAM_DROPPED] = "dropped",
	[RUN_DATAGRAM_RETRANSMITTED] = "retransmitted",
};
CHECK_LAST(run_datagram_names, RUN_DATAGRAM_COUNT, RUN_DATAGRAM_RETRANSMITTED);

const char *const run_datagram_help[RUN_DATAGRAM_COUNT] = {
	[RUN_DATAGRAM_LATE] = "replies after the time limit",
	[RUN_DATAGRAM_DUPLICATE] = "replies to requests that were answered before",
	[RUN_DATAGRAM_UNMATCHED] = "datagrams that answer no request that is known",
	[RUN_DATAGRAM_DROPPED] =
		"replies that found the driver's receive buffer full (--receive-buffer)",
	[RUN_DATAGRAM_RETRANSMITTED] = "requests sent again (--retransmit)",
};
CHECK_LAST(run_datagram_help, RUN_DATAGRAM_COUNT, RUN_DATAGRAM_RETRANSMITTED);

const char *const run_rows_names[RUN_ROWS_COUNT] = {
	[RUN_ROWS_STEP] = "steps",
	[RUN_ROWS_TARGET] = "targets",
	[RUN_ROWS_STATUS] = "statuses",
};
CHECK_LAST(run_rows_names, RUN_ROWS_COUNT, RUN_ROWS_STATUS);

const char *const run_row_names[RUN_ROWS_COUNT] = {
	[RUN_ROWS_STEP] = "step",
	[RUN_ROWS_TARGET] = "target",
	[RUN_ROWS_STATUS] = "status",
};
CHECK_LAST(run_row_names, RUN_ROWS_COUNT, RUN_ROWS_STATUS);

const char *const run_error_help[RUN_ERROR_COUNT] = {
	[RUN_ERROR_REFUSED] = "nothing listens at the target (ECONNREFUSED; unix: ENOENT, too)",
	[RUN_ERROR_ADDRESS_UNAVAILABLE] =
		"no source port was left on the driver's host (EADDRNOTAVAIL)",
	[RUN_ERROR_TOO_MANY_FILES] = "the driver ran out of file descriptors (EMFILE, ENFILE)",
	[RUN_ERROR_CONNECT_TIMEOUT] = "no connection was established in time",
	[RUN_ERROR_CONNECT_OTHER] = "connecting failed in another way",
	[RUN_ERROR_TLS_TIMEOUT] = "no TLS handshake was finished in time",
	[RUN_ERROR_TLS] = "TLS failed, mostly its handshake",
	[RUN_ERROR_CERTIFICATE] = "the server's certificate is not accepted",
	[RUN_ERROR_NOT_NEGOTIATED] = "the server does not speak the protocol asked for (ALPN)",
	[RUN_ERROR_RESET] = "connection reset while a request was outstanding (ECONNRESET, EPIPE)",
	[RUN_ERROR_TRANSFER_OTHER] =
		"connection failed in another way while a request was outstanding",
	[RUN_ERROR_CLOSED_EARLY] = "connection closed before the response was complete",
	[RUN_ERROR_STREAM_RESET] = "the server ended a stream (RST_STREAM) before the response did",
	[RUN_ERROR_UNPROCESSED] = "the server did not process the request (GOAWAY, REFUSED_STREAM)",
	[RUN_ERROR_TIMEOUT] = "no complete response in time",
	[RUN_ERROR_MALFORMED] = "responses that are not what the protocol or framing allows",
	[RUN_ERROR_STATUS] = "responses that say failure (HTTP: a status of 400 or above)",
	[RUN_ERROR_UNEXPECTED] = "responses that are not what was expected (--expect-..., capture)",
};
CHECK_LAST(run_error_help, RUN_ERROR_COUNT, RUN_ERROR_UNEXPECTED);

const char *const run_grpc_status_names[RUN_GRPC_COUNT] = {
	[0] = "ok",
	[1] = "cancelled",
	[2] = "unknown",
	[3] = "invalid_argument",
	[4] = "deadline_exceeded",
	[5] = "not_found",
	[6] = "already_exists",
	[7] = "permission_denied",
	[8] = "resource_exhausted",
	[9] = "failed_precondition",
	[10] = "aborted",
	[11] = "out_of_range",
	[12] = "unimplemented",
	[13] = "internal",
	[14] = "unavailable",
	[15] = "data_loss",
	[16] = "unauthenticated",
	[17] = "other",
	[RUN_GRPC_MISSING] = "missing",
	[RUN_GRPC_NOT_KNOWN] = "not_known",
};
CHECK_LAST(run_grpc_status_names, RUN_GRPC_COUNT, RUN_GRPC_NOT_KNOWN);

const char *const run_reset_names[RUN_RESET_COUNT] = {
	[0] = "no_error",
	[1] = "protocol_error",
	[2] = "internal_error",
	[3] = "flow_control_error",
	[4] = "settings_timeout",
	[5] = "stream_closed",
	[6] = "frame_size_error",
	[7] = "refused_stream",
	[8] = "cancel",
	[9] = "compression_error",
	[10] = "connect_error",
	[11] = "enhance_your_calm",
	[12] = "inadequate_security",
	[13] = "http_1_1_required",
	[14] = "other",
};
CHECK_LAST(run_reset_names, RUN_RESET_COUNT, 14);

const char *const run_grpc_kind_names[RUN_GRPC_KIND_COUNT] = {
	[RUN_GRPC_UNARY] = "unary",
	[RUN_GRPC_CLIENT_STREAMING] = "client_streaming",
	[RUN_GRPC_SERVER_STREAMING] = "server_streaming",
	[RUN_GRPC_BIDIRECTIONAL] = "bidirectional",
	[RUN_GRPC_UNDECIDED] = "undecided",
	[RUN_GRPC_KIND_NOT_KNOWN] = "not_known",
};
CHECK_LAST(run_grpc_kind_names, RUN_GRPC_KIND_COUNT, RUN_GRPC_KIND_NOT_KNOWN);

const char *const run_routeless_names[RUN_ROUTELESS_COUNT] = {
	[RUN_ROUTELESS_UNSEEN] = "unseen",   [RUN_ROUTELESS_TLS] = "tls",
	[RUN_ROUTELESS_HTTP2] = "http2",     [RUN_ROUTELESS_CUT] = "cut",
	[RUN_ROUTELESS_STRANGE] = "strange", [RUN_ROUTELESS_PIPELINED] = "pipelined",
};
CHECK_LAST(run_routeless_names, RUN_ROUTELESS_COUNT, RUN_ROUTELESS_PIPELINED);

const char *const run_routeless_help[RUN_ROUTELESS_COUNT] = {
	[RUN_ROUTELESS_UNSEEN] = "their first bytes were not seen (splice, io_uring)",
	[RUN_ROUTELESS_TLS] = "TLS",
	[RUN_ROUTELESS_HTTP2] = "a compressed field of HTTP/2 is not known",
	[RUN_ROUTELESS_CUT] = "answered before their method and path were complete",
	[RUN_ROUTELESS_STRANGE] = "they begin with no method and target",
	[RUN_ROUTELESS_PIPELINED] = "read together with others",
};
CHECK_LAST(run_routeless_help, RUN_ROUTELESS_COUNT, RUN_ROUTELESS_PIPELINED);
