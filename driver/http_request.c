// SPDX-License-Identifier: MIT
/* The bytes of an HTTP/1.1 request (RFC 9112), built once per run. */
#include "http_request.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "options.h"
#include "refuse.h"
#include "sojourn/cleanup.h"
#include "target.h"

/* RFC 9110's token, of which methods and header names are made. */
static const char token_characters[] = "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789!#$%&'*+-.^_`|~";

/* Headers that say where the body ends are the driver's: a wrong one would jam every connection. */
static const char *const reserved_headers[] = {"Content-Length", "Transfer-Encoding", "Upgrade",
					       "Expect"};

int http_request_check_method(const char *method, char **ret_error)
{
	if (!*method || method[strspn(method, token_characters)])
		return refuse(ret_error,
			      "--method: '%s' is not a method; write it like GET, POST or PUT",
			      method);
	if (!strcmp(method, "CONNECT"))
		return refuse(ret_error,
			      "--method: CONNECT opens a tunnel, which is not supported; any "
			      "other method is");
	return 0;
}

static bool name_is(const char *line, const char *name)
{
	size_t length = strlen(name);

	return !strncasecmp(line, name, length) && line[length] == ':';
}

int http_request_check_header(const char *line, char **ret_error)
{
	size_t name = strspn(line, token_characters);

	if (!name || line[name] != ':')
		return refuse(ret_error,
			      "--header: '%s' is not a header; write it like 'Name: value'", line);
	for (const char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return refuse(ret_error,
				      "--header: '%.*s' contains a control character; printable "
				      "characters are allowed",
				      (int)name, line);
	for (size_t i = 0; i < ARRAY_SIZE(reserved_headers); i++)
		if (name_is(line, reserved_headers[i]))
			return refuse(ret_error,
				      "--header: '%s' cannot be set; any header but "
				      "Content-Length, Transfer-Encoding, Upgrade and Expect can",
				      reserved_headers[i]);
	return 0;
}

static bool given(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->header_count; i++)
		if (name_is(options->headers[i], name))
			return true;
	return false;
}

static void write_request(const struct options *options, const struct target *target, FILE *file)
{
	fprintf(file, "%s %s HTTP/1.1\r\n", options->method, target->path);
	if (!given(options, "Host"))
		fprintf(file, "Host: %s\r\n", target->authority);
	if (!given(options, "User-Agent"))
		fprintf(file, "User-Agent: sojourn-drive/%s\r\n", SOJOURN_VERSION);
	for (size_t i = 0; i < options->header_count; i++)
		fprintf(file, "%s\r\n", options->headers[i]);
	if (!options->body) {
		fputs("\r\n", file);
		return;
	}
	fprintf(file, "Content-Length: %zu\r\n\r\n", options->body_length);
	fwrite(options->body, 1, options->body_length, file);
}

int http_request_build(const struct options *options, const struct target *target, char **ret_bytes,
		       size_t *ret_length)
{
	char *bytes = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&bytes, &length);

	if (!file)
		return -ENOMEM;
	write_request(options, target, file);
	if (fclose(file)) {
		free(bytes);
		return -ENOMEM;
	}
	*ret_bytes = bytes;
	*ret_length = length;
	return 0;
}
