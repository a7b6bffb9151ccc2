/* SPDX-License-Identifier: MIT */
/* An HTTP/1.1 request in the form that HTTP/2 needs: names, values and a body. */
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

/* Check whether HTTP/2 can carry the options' headers. -EINVAL with @ret_error. */
int h2_request_check(const struct request *request, char **ret_error);

/*
 * Split @bytes, made by engine/http/request.c. @ret_request points into them; names become lower
 * case. @grpc: add gRPC's headers and omit the length, which would have to count the prefix.
 */
void h2_request_split(char *bytes, size_t length, const char *scheme, bool grpc,
		      struct h2_request *ret_request);

#endif
