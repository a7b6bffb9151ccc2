/* SPDX-License-Identifier: MIT */
/* The bytes of HTTP/1.1 requests: a message with fields, built once per run. */
#ifndef DRIVER_ENGINE_HTTP_REQUEST_H
#define DRIVER_ENGINE_HTTP_REQUEST_H

#include <stdbool.h>

struct message;
struct request;
struct target;

/*
 * Check an option's value. -EINVAL with @ret_error that names the option, the value and what is
 * allowed.
 */
int http_request_check_method(const char *method, char **ret_error);
int http_request_check_header(const char *line, char **ret_error);

/* Return whether the header in @line has this name. */
bool http_request_name_is(const char *line, const char *name);

/* Return whether a header says `Connection: close`: no request may follow (RFC 9112, 9.6). */
bool http_request_closes(const struct request *request);

/*
 * Build header and body. Errors as above, about fields; -ENOMEM. @request and @target must outlive
 * the message. After a failure, message_clear() frees it.
 */
int http_request_build(const struct request *request, const struct target *target,
		       struct message *ret_message, char **ret_error);

#endif
