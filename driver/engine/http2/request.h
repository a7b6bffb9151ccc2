/* SPDX-License-Identifier: MIT */
/* An HTTP/1.1 request's bytes as HTTP/2 wants them: a list of names and values, and a body. */
#ifndef DRIVER_ENGINE_HTTP2_REQUEST_H
#define DRIVER_ENGINE_HTTP2_REQUEST_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>

#include "payload/request.h"

#define H2_HEADERS_MAX 128

struct h2_request {
	nghttp2_nv headers[H2_HEADERS_MAX];
	size_t header_count;
	const char *body; /* NULL: none */
	size_t body_length;
};

/*
 * Whether HTTP/2 can carry the options' headers. 0, or -EINVAL with a sentence in @ret_error (freed by
 * the caller).
 */
int h2_request_check(const struct request *request, char **ret_error);

/*
 * Takes @bytes apart, which engine/http/request.c made: @ret_request points into it, and names become lower
 * case in it. @grpc: with the headers of gRPC, and no length, which counts the prefix too.
 */
void h2_request_split(char *bytes, size_t length, const char *scheme, bool grpc,
		      struct h2_request *ret_request);

#endif
