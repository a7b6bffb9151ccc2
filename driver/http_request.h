/* SPDX-License-Identifier: MIT */
/* The bytes of an HTTP/1.1 request, built once per run. */
#ifndef DRIVER_HTTP_REQUEST_H
#define DRIVER_HTTP_REQUEST_H

#include <stddef.h>

struct options;
struct target;

/*
 * Whether users may give it: 0, or -EINVAL with a sentence in @ret_error (freed by the caller) that
 * names the option, the value and what is allowed.
 */
int http_request_check_method(const char *method, char **ret_error);
int http_request_check_header(const char *line, char **ret_error);

/* Header and body in one piece, which the caller frees. -ENOMEM. */
int http_request_build(const struct options *options, const struct target *target, char **ret_bytes,
		       size_t *ret_length);

#endif
