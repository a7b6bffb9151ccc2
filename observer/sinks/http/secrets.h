/* SPDX-License-Identifier: MIT */
/*
 * Tokens, the key and certificates of the HTTP endpoint. They are read from files, checked, and read again when the
 * files have changed, so that they can be renewed without a restart.
 */
#ifndef OBSERVER_SINKS_HTTP_SECRETS_H
#define OBSERVER_SINKS_HTTP_SECRETS_H

#include "http.h"

/*
 * Read a file's first line as a token, or a PEM file; @ret_text is to be freed. Return NULL, or what the file should be
 * instead.
 */
const char *http_secrets_read_token(const char *path, char **ret_text);
const char *http_secrets_read_pem(const char *path, char **ret_text);

/* Return whether every user of the host may read the file. */
bool http_secrets_is_public(const char *path);

/* Return whether key, certificate and authority are what TLS needs: 0, -EINVAL, -ENOMEM. */
int http_secrets_check(const struct sink_http_access *access);

struct http_secrets;

/* Watch the files that @access names, and replace its texts when they change. NULL: no memory. */
struct http_secrets *http_secrets_new(struct sink_http_access *access);
/*
 * Check whether a file has changed, at most once a second. True: key or certificates have; tokens are replaced
 * already. A wrong file is reported once, and the old texts stay.
 */
bool http_secrets_renew(struct http_secrets *secrets);
void http_secrets_free(struct http_secrets *secrets);

#endif
