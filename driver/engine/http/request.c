// SPDX-License-Identifier: MIT
/* The bytes of HTTP/1.1 requests (RFC 9112). */
#include "request.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "payload/message.h"
#include "payload/request.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "engine/target.h"

/* RFC 9110's token: the characters of methods and header names. */
static const char token_characters[] = "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789!#$%&'*+-.^_`|~";

/* The driver alone says where a body ends: a wrong header would jam every connection. */
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

bool http_request_name_is(const char *line, const char *name)
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
		if (http_request_name_is(line, reserved_headers[i]))
			return refuse(ret_error,
				      "--header: '%s' cannot be set; any header but "
				      "Content-Length, Transfer-Encoding, Upgrade and Expect can",
				      reserved_headers[i]);
	return 0;
}

static bool given(const struct request *request, const char *name)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (http_request_name_is(request->headers[i], name))
			return true;
	return false;
}

/* Return whether a header's value, a list with commas, has the @word in any case (RFC 9110, 5.6.1 and 7.6.1). */
static bool lists(const char *value, const char *word)
{
	size_t length = strlen(word);

	while (*value) {
		size_t end;

		value += strspn(value, ", \t");
		end = strcspn(value, ", \t");
		if (end == length && !strncasecmp(value, word, length))
			return true;
		value += end;
	}
	return false;
}

bool http_request_closes(const struct request *request)
{
	for (size_t i = 0; i < request->header_count; i++)
		if (http_request_name_is(request->headers[i], "Connection") &&
		    lists(strchr(request->headers[i], ':') + 1, "close"))
			return true;
	return false;
}

/* A message under construction. The first error counts. */
struct builder {
	const struct request *request;
	struct message *message;
	char **ret_error;
	int err;
};

static void add(struct builder *builder, const char *option, enum template_form form,
		const char *text)
{
	if (builder->request->no_template)
		form = TEMPLATE_LITERAL;
	if (!builder->err)
		builder->err =
			template_add(&builder->message->template, option, form, text, strlen(text),
				     &builder->request->rows, builder->ret_error);
}

static void add_text(struct builder *builder, const char *text)
{
	add(builder, "", TEMPLATE_LITERAL, text);
}

static void add_head(struct builder *builder, const struct target *target)
{
	const struct request *request = builder->request;

	add_text(builder, request->method);
	add_text(builder, " ");
	add(builder, "the URL", TEMPLATE_URL, target->path);
	add_text(builder, " HTTP/1.1\r\n");
	if (!given(request, "Host")) {
		add_text(builder, "Host: ");
		add_text(builder, target->authority);
		add_text(builder, "\r\n");
	}
	if (!given(request, "User-Agent"))
		add_text(builder, "User-Agent: sojourn-drive/" SOJOURN_VERSION "\r\n");
	for (size_t i = 0; i < request->header_count; i++) {
		add(builder, "--header", TEMPLATE_LINE, request->headers[i]);
		add_text(builder, "\r\n");
	}
}

/* A body with fields may vary in length, and so may Content-Length. */
static void add_body(struct builder *builder)
{
	const struct request *request = builder->request;
	struct message *message = builder->message;

	add_text(builder, "Content-Length: ");
	if (builder->err)
		return;
	builder->err = template_add(
		&message->body, "--body", request->no_template ? TEMPLATE_LITERAL : TEMPLATE_BYTES,
		request->body, request->body_length, &request->rows, builder->ret_error);
	if (builder->err || message->body.varies)
		return;
	template_clear(&message->body);
	snprintf(message->body_length, sizeof(message->body_length), "%zu\r\n\r\n",
		 request->body_length);
	add_text(builder, message->body_length);
	if (!builder->err)
		builder->err = template_add(&message->template, "", TEMPLATE_LITERAL, request->body,
					    request->body_length, NULL, builder->ret_error);
}

int http_request_build(const struct request *request, const struct target *target,
		       struct message *ret_message, char **ret_error)
{
	struct builder builder = {request, ret_message, ret_error, 0};

	ret_message->template.variables = &request->variables;
	ret_message->body.variables = &request->variables;
	ret_message->numbers = request->numbers;
	add_head(&builder, target);
	if (request->body)
		add_body(&builder);
	else
		add_text(&builder, "\r\n");
	if (!builder.err)
		builder.err = message_settle(ret_message);
	if (builder.err)
		message_clear(ret_message);
	return builder.err;
}
