/* SPDX-License-Identifier: MIT */
/*
 * The observer's HTTP endpoint (ARCHITECTURE.md, "Endpoint"): run documents and measured phases.
 */
#ifndef OBSERVER_SINK_HTTP_H
#define OBSERVER_SINK_HTTP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sojourn/cleanup.h"
#include "snapshot.h"

struct sink_http;

struct sink_http_limits {
	unsigned int connections; /* at the same time; further ones wait unaccepted */
	unsigned int idle_s;	  /* a connection without traffic for longer is closed */
	unsigned int request_s;	  /* and one that got no answer for so long, traffic or not */
	size_t connection_memory; /* bytes for a request's head: longer ones get 431 or 414 */
	unsigned int per_second;  /* requests; more get 429. 0: no limit */
};

/* At most so many names of its own. */
#define SINK_HTTP_HOSTS 8

/* Who may ask, besides the limits; zeroed: whoever reaches the address. Texts stay the caller's. */
struct sink_http_access {
	const char *token;	/* bearer token for everything; NULL: none is needed */
	const char *read_token; /* and one for what changes nothing */
	const char *tls_key;	/* PEM; with tls_cert: HTTPS */
	const char *tls_cert;
	const char *tls_client_ca; /* PEM: clients must have a certificate of it */
	const char
		*hosts[SINK_HTTP_HOSTS]; /* names that a Host header may have besides addresses */
	size_t host_count;
};

/* What sink_http_open() uses. */
extern const struct sink_http_limits sink_http_default_limits;

/*
 * Splits "ADDR:PORT", "[ADDR6]:PORT" or "PORT" (then 127.0.0.1). Port 0: any free one.
 * -EINVAL: not such an address.
 */
int sink_http_parse_address(const char *text, struct sockaddr_storage *ret_address);

/*
 * Listens. The caller's loop polls sink_http_fd() for reading and calls sink_http_run() when it is
 * readable or sink_http_timeout_ms() has passed: everything happens in the caller's thread.
 * 0 or -errno of the bind; -EINVAL: the key or a certificate is not what TLS needs.
 */
int sink_http_open(const struct sockaddr_storage *address, const struct snapshot_source *source,
		   const struct sink_http_access *access, struct sink_http **ret_sink);
/* The same with other limits; all but per_second must be positive. */
int sink_http_open_limited(const struct sockaddr_storage *address,
			   const struct snapshot_source *source,
			   const struct sink_http_access *access,
			   const struct sink_http_limits *limits, struct sink_http **ret_sink);
void sink_http_close(struct sink_http *sink);
DEFINE_CLEANUP(struct sink_http *, sink_http_close)

int sink_http_fd(const struct sink_http *sink);
/* Milliseconds until sink_http_run() must be called; -1: no limit. */
int sink_http_timeout_ms(const struct sink_http *sink);
void sink_http_run(struct sink_http *sink);

/* Where it listens, "http://127.0.0.1:9180" (https with TLS); valid as long as the sink. */
const char *sink_http_url(const struct sink_http *sink);

#endif
