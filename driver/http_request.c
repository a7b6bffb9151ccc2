// SPDX-License-Identifier: MIT
/* The bytes of HTTP/1.1 requests (RFC 9112). */
#include "http_request.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "message.h"
#include "options.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
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

/* A message that is being built. The first error counts. */
struct builder {
	const struct options *options;
	struct message *message;
	char **ret_error;
	int err;
};

static void add(struct builder *builder, const char *option, enum template_form form,
		const char *text)
{
	if (builder->options->no_template)
		form = TEMPLATE_LITERAL;
	if (!builder->err)
		builder->err =
			template_add(&builder->message->template, option, form, text, strlen(text),
				     &builder->options->rows, builder->ret_error);
}

static void add_text(struct builder *builder, const char *text)
{
	add(builder, "", TEMPLATE_LITERAL, text);
}

static void add_head(struct builder *builder, const struct target *target)
{
	const struct options *options = builder->options;

	add_text(builder, options->method);
	add_text(builder, " ");
	add(builder, "the URL", TEMPLATE_URL, target->path);
	add_text(builder, " HTTP/1.1\r\n");
	if (!given(options, "Host")) {
		add_text(builder, "Host: ");
		add_text(builder, target->authority);
		add_text(builder, "\r\n");
	}
	if (!given(options, "User-Agent"))
		add_text(builder, "User-Agent: sojourn-drive/" SOJOURN_VERSION "\r\n");
	for (size_t i = 0; i < options->header_count; i++) {
		add(builder, "--header", TEMPLATE_LINE, options->headers[i]);
		add_text(builder, "\r\n");
	}
}

/* A body that varies may vary in length, too: that is told request by request. */
static void add_body(struct builder *builder)
{
	const struct options *options = builder->options;
	struct message *message = builder->message;

	add_text(builder, "Content-Length: ");
	if (builder->err)
		return;
	builder->err = template_add(
		&message->body, "--body", options->no_template ? TEMPLATE_LITERAL : TEMPLATE_BYTES,
		options->body, options->body_length, &options->rows, builder->ret_error);
	if (builder->err || message->body.varies)
		return;
	template_clear(&message->body);
	snprintf(message->body_length, sizeof(message->body_length), "%zu\r\n\r\n",
		 options->body_length);
	add_text(builder, message->body_length);
	if (!builder->err)
		builder->err = template_add(&message->template, "", TEMPLATE_LITERAL, options->body,
					    options->body_length, NULL, builder->ret_error);
}

int http_request_build(const struct options *options, const struct target *target,
		       struct message *ret_message, char **ret_error)
{
	struct builder builder = {options, ret_message, ret_error, 0};

	ret_message->template.variables = &options->variables;
	ret_message->body.variables = &options->variables;
	add_head(&builder, target);
	if (options->body)
		add_body(&builder);
	else
		add_text(&builder, "\r\n");
	if (!builder.err)
		builder.err = message_settle(ret_message);
	if (builder.err)
		message_clear(ret_message);
	return builder.err;
}
