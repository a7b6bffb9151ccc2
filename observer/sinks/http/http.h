/* SPDX-License-Identifier: MIT */
/*
 * The observer's HTTP endpoint: run documents and measured phases.
 */
#ifndef OBSERVER_SINKS_HTTP_HTTP_H
#define OBSERVER_SINKS_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "sinks/sink.h"
#include "sojourn/metrics.h"

struct sink_http_limits {
	/*
	 * Maximum of open connections, in all and from one address. Beyond it a new connection
	 * replaces the oldest one that was not admitted. If all are admitted it replaces the oldest
	 * one that waits for its next request.
	 */
	unsigned int connections;
	unsigned int per_peer;
	unsigned int head_s;	  /* a request's head must be complete within, handshake included */
	unsigned int idle_s;	  /* a connection without traffic for longer is closed */
	unsigned int request_s;	  /* and one without an answer for longer, traffic or not */
	size_t connection_memory; /* bytes for a request's head: longer ones get 431 or 414 */
	unsigned int per_second;  /* requests of a kind of caller; more get 429. 0: no limit */
};

/* Maximum of names in sink_http_access.hosts. */
#define SINK_HTTP_HOSTS 8

/*
 * Callers and their rights, besides the limits; zeroed: everybody who reaches the address. Texts stay the caller's.
 */
struct sink_http_access {
	const char *token;	/* bearer token for everything; NULL: none is needed */
	const char *read_token; /* and one for requests that change nothing */
	/*
	 * Without a token: make one (sojourn/own_token.h), needed for all changes. Reading is for
	 * all.
	 */
	bool own_token;
	uid_t user;	     /* the user that removes the own token's file */
	const char *tls_key; /* PEM; with tls_cert: HTTPS */
	const char *tls_cert;
	const char *tls_client_ca; /* PEM: clients must have a certificate of it */
	const char
		*hosts[SINK_HTTP_HOSTS]; /* names that a Host header may have besides addresses */
	size_t host_count;
	/*
	 * The files of the texts above, if they are to be read again when these change; NULL: they
	 * stay.
	 */
	struct {
		const char *token, *read_token, *tls_key, *tls_cert, *tls_client_ca;
	} files;
	/*
	 * Called for a file that has changed. @wrong is NULL, or what the file should be; the old
	 * text then stays.
	 */
	void (*say)(const char *path, const char *wrong);
	enum metrics_buckets buckets; /* of /metrics */
};

/* Settings of sink_http_open(). */
extern const struct sink_http_limits sink_http_default_limits;

/*
 * Split "ADDR:PORT", "[ADDR6]:PORT" or "PORT" (then 127.0.0.1). Port 0: any free one.
 * -EINVAL: not such an address.
 */
int sink_http_parse_address(const char *text, struct sockaddr_storage *ret_address);

/*
 * Listen. Everything happens in the caller's thread, when it calls sink_run(): when sink_fd() is readable, or
 * sink_timeout_ms() has passed. The sink's url is the listening address, "http://127.0.0.1:9180" (https with TLS).
 * Return 0 or -errno of the bind; -EINVAL: the key or a certificate does not suit TLS.
 */
int sink_http_open(const struct sockaddr_storage *address, const struct snapshot_source *source,
		   const struct sink_http_access *access, struct sink **ret_sink);
/* The same with other limits; all but per_second must be positive. */
int sink_http_open_limited(const struct sockaddr_storage *address,
			   const struct snapshot_source *source,
			   const struct sink_http_access *access,
			   const struct sink_http_limits *limits, struct sink **ret_sink);
#endif
