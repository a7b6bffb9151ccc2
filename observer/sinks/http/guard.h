/* SPDX-License-Identifier: MIT */
/* Decide which callers may use the HTTP endpoint, and for which requests. Used by http.c alone. */
#ifndef OBSERVER_SINKS_HTTP_GUARD_H
#define OBSERVER_SINKS_HTTP_GUARD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "routes.h"
#include "http.h"

/* A limit of requests: a bucket of tokens, filled steadily. */
struct http_rate {
	unsigned int per_second; /* 0: no limit */
	uint64_t last_ns;
	uint64_t left_ns; /* a request costs 1 s / per_second */
};

/* Kinds of callers with a bucket each, so that none uses up another's. */
enum http_caller {
	HTTP_CALLER_REFUSED,
	HTTP_CALLER_ANYBODY, /* needs to show nothing */
	HTTP_CALLER_KNOWN,   /* by a token or a certificate */
	HTTP_CALLERS
};

/*
 * Return true if the request may be answered. Otherwise @reply has the reason and the remedy. @fd
 * is the connection's socket, @listened the endpoint's address, @own_token the endpoint's own one
 * if access has it. A probe has no rate unless the caller is refused. Other users of the host could
 * use up its rate, and a refusal costs as much.
 */
bool http_guard_admits(const struct sink_http_access *access, const char *own_token,
		       struct http_rate rates[HTTP_CALLERS], struct MHD_Connection *connection,
		       int fd, const struct sockaddr_storage *listened, const char *method,
		       enum http_probe probe, struct http_reply *reply);

#endif
