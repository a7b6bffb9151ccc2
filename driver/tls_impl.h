/* SPDX-License-Identifier: MIT */
/* What tls.c (a connection) and tls_context.c (what all share) know of each other. */
#ifndef DRIVER_TLS_IMPL_H
#define DRIVER_TLS_IMPL_H

#include <openssl/ssl.h>

#include "tls.h"

struct tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *method;
	const char *protocol; /* a constant */
	const char *sni;      /* borrowed; NULL: the server is an address */
};

/* NULL without memory. */
BIO_METHOD *tls_bio_method_new(void);

#endif
