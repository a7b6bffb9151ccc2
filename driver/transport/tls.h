/* SPDX-License-Identifier: MIT */
/*
 * TLS by OpenSSL, over bytes in memory that link.c carries. All connections of a run share a
 * context, so that certificates are read once. No session is resumed: every handshake is a full
 * one.
 */
#ifndef DRIVER_TRANSPORT_TLS_H
#define DRIVER_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "sojourn/run.h"

#define TLS_PLAINTEXT_SIZE (64U << 10)

/* Strings point into argv; NULL: not given. */
struct tls_options {
	const char *ca_path;	 /* PEM: trusted authorities; NULL: the system's */
	const char *cert_path;	 /* PEM: the client's certificate, with its chain */
	const char *key_path;	 /* PEM: the key for it */
	const char *server_name; /* for SNI and the certificate; NULL: the URL's host */
	bool insecure;		 /* accept any certificate */
};

/* Return the first option given, as "--ca"; NULL: none. */
const char *tls_option_given(const struct tls_options *options);

struct tls_context;

/*
 * Make a context. @protocol is offered by ALPN; NULL: none. -EINVAL with @ret_error, -ENOMEM.
 * tls_context_free() takes NULL.
 */
int tls_context_new(const struct tls_options *options, const char *host, const char *protocol,
		    struct tls_context **ret_context, char **ret_error);
void tls_context_free(struct tls_context *context);

/* Shared by the connections of a worker. tls_buffers_clear() takes zeroed ones. */
struct tls_buffers {
	char *out; /* to send before anything else */
	size_t out_length, out_capacity;
	char *plaintext; /* TLS_PLAINTEXT_SIZE */
};

int tls_buffers_init(struct tls_buffers *buffers);
void tls_buffers_clear(struct tls_buffers *buffers);

struct tls;

/* NULL without memory. tls_free() takes NULL. */
struct tls *tls_new(struct tls_context *context, struct tls_buffers *buffers);
void tls_free(struct tls *tls);

/* Pass received bytes, which must stay until the calls below return TLS_MORE. */
void tls_feed(struct tls *tls, const char *data, size_t length);

enum tls_verdict {
	TLS_MORE, /* all fed bytes are used */
	TLS_DONE,
	TLS_ENDED,  /* the peer announced the end */
	TLS_FAILED, /* see tls_failure() */
};

/*
 * After each call send the bytes in buffers->out, whatever it returns. tls_read() fills
 * buffers->plaintext; after DONE with *@ret_length bytes, call it again.
 */
enum tls_verdict tls_handshake(struct tls *tls);
enum tls_verdict tls_read(struct tls *tls, size_t *ret_length);
enum tls_verdict tls_write(struct tls *tls, const char *data, size_t length);
void tls_bye(struct tls *tls);

/* Return why the last call failed, and its description (a constant). */
enum run_error tls_failure(const struct tls *tls, const char **ret_detail);

#endif
