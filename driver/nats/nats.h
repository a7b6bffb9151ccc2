/* SPDX-License-Identifier: MIT */
/*
 * A client of a NATS server, on a libuv loop. It serves the fleet, which publishes and subscribes
 * and wants no message that is older than its connection: a lost connection ends it.
 *
 * It is no libnats: Debian has that as a shared library only, which the static driver cannot load,
 * and under another name in each release. Only six operations of the protocol are needed.
 */
#ifndef DRIVER_NATS_NATS_H
#define DRIVER_NATS_NATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "login.h"
#include "transport/tls.h"

#define NATS_PORT 4222

/* A server that carries less is refused; its usual limit is 1 MiB. */
#define NATS_PAYLOAD_LEAST 16384

/* Other servers of its cluster, as the last one named them: HOST:PORT. */
#define NATS_PEERS_MAX 16U

struct nats_peers {
	char *list[NATS_PEERS_MAX];
	size_t count;
	size_t turn; /* connections that failed or ended: 0 is for the URL, then one after the other */
};

/* Texts of @tls are borrowed. nats_settings_clear() frees the rest. */
struct nats_settings {
	char *url; /* NULL: not given */
	char *host;
	uint16_t port;
	bool secure; /* tls://: without TLS there is no connection */
	struct tls_options tls;
	struct nats_login login;
	struct nats_peers *peers; /* NULL: there is no URL */
};

/*
 * Split nats://HOST[:PORT] or tls://HOST[:PORT]. -EINVAL with what is wrong with it in @ret_error,
 * as an end of a sentence; -ENOMEM.
 */
int nats_settings_parse(struct nats_settings *settings, const char *url, char **ret_error);
void nats_settings_clear(struct nats_settings *settings);

struct nats;

struct nats_owner {
	void *user;
	/* The server has let it in. */
	void (*opened)(void *user);
	/* Texts are valid during the call. */
	void (*message)(void *user, const char *subject, const char *payload, size_t length);
	/* It failed or ended, for this reason. Nothing follows; nats_close() is still due. */
	void (*ended)(void *user, const char *reason);
};

/*
 * Begin to connect to the URL, or after a failure to each server of its cluster in turn. Return
 * -EINVAL with a sentence in @ret_error: a file cannot be used; other -errno.
 */
int nats_open(uv_loop_t *loop, const struct nats_settings *settings, const struct nats_owner *owner,
	      struct nats **ret_nats, char **ret_error);
/* Also within its callbacks. It is freed when the loop has closed its handles. Takes NULL. */
void nats_close(struct nats *nats);

/* Once it is open: 0; -EINVAL: no subject; -ENOTCONN, -ENOMEM. */
int nats_subscribe(struct nats *nats, const char *subject);

/*
 * Publish @head and then @body. The answer comes to the subject @reply; NULL: none is wanted. Likewise;
 * -EMSGSIZE: above nats_payload_max().
 */
int nats_ask(struct nats *nats, const char *subject, const char *reply, const char *head,
	     const char *body, size_t body_length);

/* Return whether the server stores messages (JetStream), as it says. */
bool nats_stores(const struct nats *nats);
/* Return how many bytes a payload may have, as the server says. */
size_t nats_payload_max(const struct nats *nats);
/* Return whether all published bytes have left. */
bool nats_is_flushed(const struct nats *nats);

#endif
