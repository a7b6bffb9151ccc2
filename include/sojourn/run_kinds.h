/* SPDX-License-Identifier: MIT */
/*
 * The kinds of things that a run document counts, with names and explanations: closes, losses,
 * errors, datagrams. Neighbours: run.h (the document), lib/run/names.c.
 */
#ifndef SOJOURN_RUN_KINDS_H
#define SOJOURN_RUN_KINDS_H

#include <stdbool.h>

#include "wire/stage.h"

/* How a connection ended, seen from the service. */
enum run_close {
	RUN_CLOSE_BY_SERVER, /* the server's FIN came first */
	RUN_CLOSE_BY_CLIENT, /* the client's FIN came first */
	RUN_RESET_BY_SERVER,
	RUN_RESET_BY_CLIENT,
	RUN_TIMED_OUT,
	RUN_CLOSE_COUNT
};

/* Events not seen, or not in a stage: measurement.md's list, per service. */
enum run_loss {
	RUN_LOSS_OVERLAPPED,
	RUN_LOSS_UNSOLICITED,
	RUN_LOSS_UNANSWERED,
	RUN_LOSS_PREEXISTING,
	RUN_LOSS_CUT_OFF,
	RUN_LOSS_UNTIMED,
	RUN_LOSS_ACCEPT_UNSEEN,
	RUN_LOSS_MULTIPLEXED,
	RUN_LOSS_DROPPED,
	RUN_LOSS_UNMATCHED,
	RUN_LOSS_TRANSMIT_UNSEEN,
	RUN_LOSS_ACK_UNSEEN,
	RUN_LOSS_STORAGE_FAILED,
	RUN_LOSS_ONEWAY,
	RUN_LOSS_GOODBYES,
	RUN_LOSS_TRAILING,
	RUN_LOSS_INCONSISTENT,
	RUN_LOSS_UNSEEN_READS,
	RUN_LOSS_BLOCKED,
	RUN_LOSS_MPTCP,
	RUN_LOSS_CARRIED,
	RUN_LOSS_TIME_WAIT_UNSURE,
	RUN_LOSS_AMBIGUOUS_REPLIES,
	RUN_LOSS_UNTRACKED,
	RUN_LOSS_TLS_UNKNOWN,
	RUN_LOSS_UNRECOGNISED,
	RUN_LOSS_PERHAPS_WEBSOCKET,
	RUN_LOSS_COUNT
};

/* Age classes of open requests, in the order of wire/config.h. */
#define RUN_AGE_COUNT 7

/* The driver's errors. */
enum run_error {
	RUN_ERROR_REFUSED,	       /* connect: ECONNREFUSED */
	RUN_ERROR_ADDRESS_UNAVAILABLE, /* connect: EADDRNOTAVAIL, no source port left */
	RUN_ERROR_TOO_MANY_FILES,      /* socket: EMFILE or ENFILE */
	RUN_ERROR_CONNECT_TIMEOUT,
	RUN_ERROR_CONNECT_OTHER,
	RUN_ERROR_TLS_TIMEOUT,	  /* TLS: the handshake took too long */
	RUN_ERROR_TLS,		  /* TLS: it failed in another way */
	RUN_ERROR_CERTIFICATE,	  /* TLS: the server's certificate was refused */
	RUN_ERROR_NOT_NEGOTIATED, /* TLS: the server does not speak the requested protocol */
	RUN_ERROR_RESET,	  /* ECONNRESET or EPIPE during a request */
	RUN_ERROR_TRANSFER_OTHER, /* any other errno during a request */
	RUN_ERROR_CLOSED_EARLY,	  /* FIN before the response was complete */
	RUN_ERROR_STREAM_RESET,	  /* HTTP/2: the server reset the stream; the connection stays */
	RUN_ERROR_UNPROCESSED,	  /* HTTP/2: not processed, according to the server */
	RUN_ERROR_TIMEOUT,	  /* no complete response in time */
	RUN_ERROR_MALFORMED,	  /* a response against the protocol or framing */
	RUN_ERROR_STATUS,	  /* complete response that reports failure: HTTP 400 and above */
	RUN_ERROR_UNEXPECTED,	  /* complete response against the user's expectation */
	RUN_ERROR_COUNT
};

#define RUN_NO_ERROR RUN_ERROR_COUNT

/* gRPC's statuses 0 to 16, and all others. */
#define RUN_GRPC_STATUS_COUNT 18
/* Beyond these, of the observer: responses that ended without a status, and those not known. */
#define RUN_GRPC_MISSING   18
#define RUN_GRPC_NOT_KNOWN 19
#define RUN_GRPC_COUNT	   20

/* Kinds of gRPC's calls, by the messages of both directions. */
enum run_grpc_kind {
	RUN_GRPC_UNARY,
	RUN_GRPC_CLIENT_STREAMING,
	RUN_GRPC_SERVER_STREAMING,
	RUN_GRPC_BIDIRECTIONAL,
	RUN_GRPC_UNDECIDED,	 /* over before it could show whether it streams */
	RUN_GRPC_KIND_NOT_KNOWN, /* not all messages could be counted */
	RUN_GRPC_KIND_COUNT
};

/* Error codes of RST_STREAM: 0 to 13, and all others. */
#define RUN_RESET_COUNT 15

/* Reasons why the route of a request is not known, with --route. */
enum run_routeless {
	RUN_ROUTELESS_UNSEEN,	 /* its first bytes were not seen */
	RUN_ROUTELESS_TLS,	 /* they are encrypted */
	RUN_ROUTELESS_HTTP2,	 /* its headers are compressed */
	RUN_ROUTELESS_CUT,	 /* it was answered before its method and path were complete */
	RUN_ROUTELESS_STRANGE,	 /* it begins with no method and target */
	RUN_ROUTELESS_PIPELINED, /* it came together with others */
	RUN_ROUTELESS_COUNT
};

/* The stages that routes have: all of a residence but accept_queue. */
#define RUN_ROUTE_STAGES 4

/* Datagrams that are no exchange. */
enum run_datagram {
	RUN_DATAGRAM_LATE,	    /* a reply to a request already given up */
	RUN_DATAGRAM_DUPLICATE,	    /* a reply to a request already answered */
	RUN_DATAGRAM_UNMATCHED,	    /* a reply to no known request */
	RUN_DATAGRAM_DROPPED,	    /* dropped, as the driver's receive buffer was full */
	RUN_DATAGRAM_RETRANSMITTED, /* a request sent again */
	RUN_DATAGRAM_COUNT
};

/* The parts of the stage service, by the state of the serving thread. */
enum run_cpu {
	RUN_CPU_RUNNING,  /* on a CPU */
	RUN_CPU_RUNNABLE, /* ready to run, waiting for a CPU */
	RUN_CPU_BLOCKED,  /* waiting for something else */
	RUN_CPU_COUNT
};

/* The properties that distinguish a driver's requests, a list of rows each. */
enum run_rows_by {
	RUN_ROWS_STEP,	 /* of a scenario */
	RUN_ROWS_TARGET, /* of several URLs */
	RUN_ROWS_STATUS, /* of HTTP */
	RUN_ROWS_COUNT
};

/* Names in the document, e.g. "socket_queue", "closed_by_server", "address_unavailable". */
extern const char *const run_stage_names[STAGE_COUNT];
extern const char *const run_cpu_names[RUN_CPU_COUNT];
extern const char *const run_close_names[RUN_CLOSE_COUNT];
extern const char *const run_loss_names[RUN_LOSS_COUNT];
extern const char *const run_age_names[RUN_AGE_COUNT];
extern const char *const run_error_names[RUN_ERROR_COUNT];
extern const char *const run_grpc_status_names[RUN_GRPC_COUNT];
extern const char *const run_reset_names[RUN_RESET_COUNT];
extern const char *const run_grpc_kind_names[RUN_GRPC_KIND_COUNT];
extern const char *const run_routeless_names[RUN_ROUTELESS_COUNT];
extern const char *const run_routeless_help[RUN_ROUTELESS_COUNT];
extern const char *const run_datagram_names[RUN_DATAGRAM_COUNT];
extern const char *const run_rows_names[RUN_ROWS_COUNT]; /* of the lists: "steps" … */
extern const char *const run_row_names[RUN_ROWS_COUNT];	 /* of one row: "step" … */

/* True for missed events; false for seen ones that are not timed, or are no exchange. */
extern const bool run_loss_is_lost[RUN_LOSS_COUNT];

/* Explanations for people, a clause each, e.g. "request readable before the previous response". */
extern const char *const run_loss_help[RUN_LOSS_COUNT];
extern const char *const run_error_help[RUN_ERROR_COUNT];
extern const char *const run_datagram_help[RUN_DATAGRAM_COUNT];

#endif
