/* SPDX-License-Identifier: MIT */
/*
 * TLS by OpenSSL, over bytes in memory: link.c carries them. One context for all connections of a run:
 * certificates are read once. No session is resumed, every handshake is a full one.
 */
#ifndef DRIVER_TRANSPORT_TLS_H
#define DRIVER_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "sojourn/run.h"

#define TLS_PLAINTEXT_SIZE (64U << 10)

/* Strings point into argv; NULL where not given. */
struct tls_options {
	const char *ca_path;	 /* PEM: who is trusted; NULL: the system's authorities */
	const char *cert_path;	 /* PEM: ours, with its chain */
	const char *key_path;	 /* PEM: of that */
	const char *server_name; /* in SNI and expected in the certificate; NULL: the URL's host */
	bool insecure;		 /* any certificate will do */
};

/* The first of them that was given, as "--ca"; NULL: none. */
const char *tls_option_given(const struct tls_options *options);

struct tls_context;

/*
 * @protocol is offered by ALPN, NULL: nothing is. -EINVAL with a sentence in @ret_error (freed by the
 * caller), -ENOMEM. tls_context_free() takes NULL.
 */
int tls_context_new(const struct tls_options *options, const char *host, const char *protocol,
		    struct tls_context **ret_context, char **ret_error);
void tls_context_free(struct tls_context *context);

/* Shared by the connections of a worker. Zeroed, they are fine for tls_buffers_clear(). */
struct tls_buffers {
	char *out; /* to be sent before anything else happens */
	size_t out_length, out_capacity;
	char *plaintext; /* TLS_PLAINTEXT_SIZE */
};

int tls_buffers_init(struct tls_buffers *buffers);
void tls_buffers_clear(struct tls_buffers *buffers);

struct tls;

/* NULL without memory. tls_free() takes NULL. */
struct tls *tls_new(struct tls_context *context, struct tls_buffers *buffers);
void tls_free(struct tls *tls);

/* What was received, which must stay until the calls below have asked for more. */
void tls_feed(struct tls *tls, const char *data, size_t length);

enum tls_verdict {
	TLS_MORE, /* all that was fed is used up */
	TLS_DONE,
	TLS_ENDED,  /* the peer said that it ends here */
	TLS_FAILED, /* tls_failure() says why */
};

/*
 * Each may leave bytes in buffers->out, which are to be sent whatever the verdict is.
 * tls_read() fills buffers->plaintext; DONE: with *@ret_length bytes, and asks to be called again.
 */
enum tls_verdict tls_handshake(struct tls *tls);
enum tls_verdict tls_read(struct tls *tls, size_t *ret_length);
enum tls_verdict tls_write(struct tls *tls, const char *data, size_t length);
void tls_bye(struct tls *tls);

/* Why the last call failed, also in words (a constant). */
enum run_error tls_failure(const struct tls *tls, const char **ret_detail);

#endif
