/* SPDX-License-Identifier: MIT */
/*
 * Credentials for a NATS server, as read from a file: an nkey's seed, a .creds file (JWT and seed),
 * USER:PASSWORD, or a token. No I/O.
 */
#ifndef DRIVER_NATS_LOGIN_H
#define DRIVER_NATS_LOGIN_H

#include <stdbool.h>
#include <stddef.h>

/* A zeroed one is valid: no credentials. */
struct nats_login {
	char *user, *password;
	char *token;
	char *jwt;
	char *seed;
};

/*
 * Read the content of a credentials file. -EINVAL with a reason in @ret_error, which quotes no
 * secret; -ENOMEM.
 */
int nats_login_parse(const char *text, size_t length, struct nats_login *ret_login,
		     char **ret_error);
void nats_login_clear(struct nats_login *login);
/* Return whether a file was read. */
bool nats_login_is_given(const struct nats_login *login);

/*
 * Return the JSON of a CONNECT. @nonce is the server's, which a seed signs; NULL: it sent none.
 * -EINVAL with a reason in @ret_error; -ENOMEM.
 */
int nats_login_connect(const struct nats_login *login, const char *nonce, bool tls, char **ret_json,
		       char **ret_error);

#endif
