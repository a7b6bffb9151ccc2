// SPDX-License-Identifier: MIT
/*
 * Converts an HTTP/1.1 request to HTTP/2's headers, so that payload/message.c alone renders fields.
 * Neighbours: engine/http/request.c (the bytes), session.c (sends them).
 */
#include "request.h"

#include <ctype.h>
#include <string.h>

#include "engine/http/request.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

/* Headers of HTTP/1.1 connections (RFC 9113, 8.2.2). */
static const char *const foreign[] = {"Connection", "Keep-Alive", "Proxy-Connection", "TE"};

int h2_request_check(const struct request *request, char **ret_error)
{
	if (request->header_count + 10 > H2_HEADERS_MAX)
		return refuse(ret_error,
			      "--header: %zu headers are more than the %d that an HTTP/2 "
			      "request may have here",
			      request->header_count, H2_HEADERS_MAX - 10);
	for (size_t i = 0; i < request->header_count; i++)
		for (size_t j = 0; j < ARRAY_SIZE(foreign); j++)
			if (http_request_name_is(request->headers[i], foreign[j]))
				return refuse(ret_error,
					      "--header: HTTP/2 has no '%s'; any header but "
					      "Connection, Keep-Alive, Proxy-Connection and TE "
					      "goes with it",
					      foreign[j]);
	return 0;
}

static nghttp2_nv pair(const char *name, size_t name_length, const char *value, size_t value_length)
{
	return (nghttp2_nv){
		.name = (uint8_t *)name,
		.value = (uint8_t *)value,
		.namelen = name_length,
		.valuelen = value_length,
	};
}

static void add(struct h2_request *request, const char *name, const char *value)
{
	request->headers[request->header_count++] = pair(name, strlen(name), value, strlen(value));
}

/* Return the end of the line at @line, before its CR LF. */
static char *line_end(char *line, const char *end)
{
	char *found = memmem(line, (size_t)(end - line), "\r\n", 2);

	return found ? found : (char *)end;
}

/* "GET /path HTTP/1.1": a rendered path has no spaces. */
static void split_first(struct h2_request *request, const char *line, const char *end,
			const char *scheme)
{
	const char *path = memchr(line, ' ', (size_t)(end - line));
	const char *version = memrchr(line, ' ', (size_t)(end - line));

	request->headers[0] = pair(":method", 7, line, (size_t)(path - line));
	request->headers[1] = pair(":scheme", 7, scheme, strlen(scheme));
	request->headers[2] = pair(":authority", 10, "", 0);
	request->headers[3] = pair(":path", 5, path + 1, (size_t)(version - path - 1));
	request->header_count = 4;
}

static void split_header(struct h2_request *request, char *line, char *end, bool grpc)
{
	char *colon = memchr(line, ':', (size_t)(end - line));
	const char *value = colon + 1;

	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	if (http_request_name_is(line, "Host")) {
		request->headers[2] = pair(":authority", 10, value, (size_t)(end - value));
		return;
	}
	if (grpc && http_request_name_is(line, "Content-Length"))
		return;
	for (char *c = line; c < colon; c++)
		*c = (char)tolower((unsigned char)*c);
	if (request->header_count < H2_HEADERS_MAX)
		request->headers[request->header_count++] =
			pair(line, (size_t)(colon - line), value, (size_t)(end - value));
}

static bool has(const struct h2_request *request, const char *name)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (request->headers[i].namelen == strlen(name) &&
		    !memcmp(request->headers[i].name, name, strlen(name)))
			return true;
	return false;
}

void h2_request_split(char *bytes, size_t length, const char *scheme, bool grpc,
		      struct h2_request *ret_request)
{
	char *end = bytes + length, *line = bytes, *stop = line_end(line, end);

	ret_request->body = NULL;
	ret_request->body_length = 0;
	split_first(ret_request, line, stop, scheme);
	for (line = stop + 2; line < end; line = stop + 2) {
		stop = line_end(line, end);
		if (stop == line)
			break;
		split_header(ret_request, line, stop, grpc);
	}
	if (grpc)
		add(ret_request, "te", "trailers");
	if (grpc && !has(ret_request, "content-type"))
		add(ret_request, "content-type", "application/grpc");
	if (line + 2 < end) {
		ret_request->body = line + 2;
		ret_request->body_length = (size_t)(end - line - 2);
	}
}
