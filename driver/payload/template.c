// SPDX-License-Identifier: MIT
/* Parses and renders templates. */
#include "template.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/refuse.h"
#include "template_field.h"

#define FIELD_MAX 64U /* between the braces */

static int append(struct template *template, const struct template_part *part, size_t max)
{
	if (ARRAY_GROW(template->parts, template->count))
		return -ENOMEM;
	template->parts[template->count++] = *part;
	template->max += max;
	return 0;
}

static int append_bytes(struct template *template, const char *bytes, size_t length)
{
	struct template_part part = {.bytes = bytes, .length = length};

	template->min += length;
	return length ? append(template, &part, length) : 0;
}

static int refuse_field(const char *option, const char *text, char **ret_error)
{
	return refuse(ret_error,
		      "%s: '{{%s}}' is not a field; allowed in double braces: %s (row needs "
		      "--rows); or --no-template",
		      option, text, template_forms);
}

static int refuse_variable(const struct template *template, const char *option, const char *text,
			   char **ret_error)
{
	const struct template_variables *variables = template->variables;

	if (!variables || !variables->count)
		return refuse(ret_error,
			      "%s: '{{%s}}' is a variable, which only the steps of a scenario "
			      "have",
			      option, text);
	return refuse(ret_error,
		      "%s: '{{%s}}' has no value here; a step before it, or its own 'set', must "
		      "give it one",
		      option, text);
}

static int append_field(struct template *template, const char *option, enum template_form form,
			const char *text, const struct template_rows *rows, char **ret_error)
{
	size_t name = strcspn(text, ":");
	struct template_part part = {.field = template_field_find(text, name),
				     .rows = rows,
				     .variables = template->variables,
				     .encoded = form == TEMPLATE_URL,
				     .line = form == TEMPLATE_LINE};
	size_t max;
	int err;

	if (!part.field)
		return refuse_field(option, text, ret_error);
	err = part.field->parse(text[name] ? text + name + 1 : NULL, &part);
	if (err == -ENODATA)
		return refuse_variable(template, option, text, ret_error);
	if (err)
		return refuse_field(option, text, ret_error);
	if (part.field->binary && form != TEMPLATE_BYTES)
		return refuse(ret_error, "%s: '{{%s}}' gives any bytes and cannot stand here",
			      option, text);
	template->varies = true;
	template->unique |= part.field->unique;
	max = part.field->size ? part.field->size : part.field->max(&part);
	part.variables = NULL;
	return append(template, &part, part.encoded ? 3 * max : max);
}

static int add_field(struct template *template, const char *option, enum template_form form,
		     const char **at, const char *end, const struct template_rows *rows,
		     char **ret_error)
{
	const char *begin = *at + 2, *close = memmem(begin, (size_t)(end - begin), "}}", 2);
	char text[FIELD_MAX + 1];
	size_t length = close ? (size_t)(close - begin) : (size_t)(end - begin);

	if (!close || length > FIELD_MAX)
		return refuse(ret_error,
			      "%s: '{{%.*s' is not closed by '}}'; --no-template sends it as it is",
			      option, (int)(length < FIELD_MAX ? length : FIELD_MAX), begin);
	memcpy(text, begin, length);
	text[length] = '\0';
	*at = close + 2;
	return append_field(template, option, form, text, rows, ret_error);
}

int template_add(struct template *template, const char *option, enum template_form form,
		 const char *text, size_t length, const struct template_rows *rows,
		 char **ret_error)
{
	const char *end = text + length;
	int err = 0;

	if (form == TEMPLATE_LITERAL)
		return append_bytes(template, text, length);
	while (!err && text < end) {
		const char *braces = memmem(text, (size_t)(end - text), "{{", 2);

		err = append_bytes(template, text, (size_t)((braces ? braces : end) - text));
		text = braces;
		if (!braces)
			break;
		if (!err)
			err = add_field(template, option, form, &text, end, rows, ret_error);
	}
	return err;
}

void template_clear(struct template *template)
{
	free(template->parts);
	*template = (struct template){0};
}

/* RFC 3986's unreserved characters stay. */
static bool is_plain(unsigned char byte)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	return byte && strchr(plain, byte);
}

/* Encode in place, backwards: @buffer has room for three times the length. */
static size_t encode(char *buffer, size_t length)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t encoded = length;

	for (size_t i = 0; i < length; i++)
		encoded += is_plain((unsigned char)buffer[i]) ? 0 : 2;
	for (size_t from = length, to = encoded; from && to > from;) {
		unsigned char byte = (unsigned char)buffer[--from];

		if (is_plain(byte)) {
			buffer[--to] = (char)byte;
			continue;
		}
		buffer[--to] = digits[byte & 0xf];
		buffer[--to] = digits[byte >> 4];
		buffer[--to] = '%';
	}
	return encoded;
}

/* Values from a server or file must not end their line. */
static void keep_on_line(char *buffer, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (((unsigned char)buffer[i] < ' ' && buffer[i] != '\t') || buffer[i] == 0x7f)
			buffer[i] = '?';
}

static size_t render_part(const struct template_part *part, const struct template_turn *turn,
			  char *buffer)
{
	size_t length;

	if (!part->field) {
		memcpy(buffer, part->bytes, part->length);
		return part->length;
	}
	length = part->field->render(part, turn, buffer);
	if (part->line)
		keep_on_line(buffer, length);
	return part->encoded ? encode(buffer, length) : length;
}

size_t template_render(const struct template *template, const struct template_turn *turn,
		       char *buffer)
{
	size_t length = 0;

	for (size_t i = 0; i < template->count; i++)
		length += render_part(&template->parts[i], turn, buffer + length);
	return length;
}

static int add_row(struct template_rows *rows, const char *begin, size_t length)
{
	if (ARRAY_GROW(rows->list, rows->count))
		return -ENOMEM;
	if (length && begin[length - 1] == '\r')
		length--;
	rows->list[rows->count++] = (struct template_row){begin, length};
	return 0;
}

static int split_rows(struct template_rows *rows, size_t length)
{
	const char *begin = rows->text, *end = begin + length;
	int err = 0;

	while (!err && begin < end) {
		const char *newline = memchr(begin, '\n', (size_t)(end - begin));

		if (!newline)
			newline = end;
		err = add_row(rows, begin, (size_t)(newline - begin));
		begin = newline + 1;
	}
	return err;
}

int template_rows_take(char *text, size_t length, struct template_rows *ret_rows)
{
	struct template_rows rows = {.text = text};
	int err = split_rows(&rows, length);

	if (!err && !rows.count)
		err = -EINVAL;
	if (err)
		template_rows_clear(&rows);
	else
		*ret_rows = rows;
	return err;
}

void template_rows_clear(struct template_rows *rows)
{
	free(rows->text);
	free(rows->list);
	*rows = (struct template_rows){0};
}
