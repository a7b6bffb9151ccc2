/* SPDX-License-Identifier: MIT */
/* The bytes of HTTP/1.1 requests: a message built once per run, in which fields may differ. */
#ifndef DRIVER_ENGINE_HTTP_REQUEST_H
#define DRIVER_ENGINE_HTTP_REQUEST_H

struct message;
struct request;
struct target;

/*
 * Whether users may give it: 0, or -EINVAL with a sentence in @ret_error (freed by the caller) that
 * names the option, the value and what is allowed.
 */
int http_request_check_method(const char *method, char **ret_error);
int http_request_check_header(const char *line, char **ret_error);

/*
 * Header and body as a message. Errors as above, about fields; -ENOMEM. @request and @target must outlive
 * it, message_clear() takes what is left of a failure.
 */
int http_request_build(const struct request *request, const struct target *target,
		       struct message *ret_message, char **ret_error);

#endif
