/* SPDX-License-Identifier: MIT */
/*
 * Bytes with fields like {{counter}}, rendered for every request. Knows no protocol. Neighbour:
 * template_field.c, the table of fields.
 */
#ifndef DRIVER_PAYLOAD_TEMPLATE_H
#define DRIVER_PAYLOAD_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The lines of a file; a zeroed one is valid and empty. */
struct template_rows {
	char *text;
	struct template_row {
		const char *begin;
		size_t length; /* without the end of the line */
	} *list;
	size_t count;
};

/* Take over @text, from malloc(), even on failure. -EINVAL if it has no row, -ENOMEM. */
int template_rows_take(char *text, size_t length, struct template_rows *ret_rows);
void template_rows_clear(struct template_rows *rows);

enum template_form {
	TEMPLATE_LITERAL, /* no fields */
	TEMPLATE_BYTES,	  /* any field */
	TEMPLATE_LINE,	  /* no binary field: stays one line of text */
	TEMPLATE_URL,	  /* values are percent-encoded */
};

/* Variables that a scenario's steps share: {{var:NAME}}. */
struct template_variable {
	const char *name;
	size_t max; /* maximum of a value, in bytes */
};

struct template_value {
	char *bytes;
	size_t length;
};

struct template_variables {
	const struct template_variable *list;
	size_t count;	  /* at most 64 */
	uint64_t visible; /* bits: variables with a value when the template is rendered */
};

/* A zeroed one is valid and empty. */
struct template
{
	const struct template_variables *variables; /* known to template_add(); NULL: none */
	struct template_part *parts;
	size_t count;
	size_t max;  /* maximum of rendered bytes */
	size_t min;  /* minimum: those outside of fields */
	bool varies; /* has a field */
	bool unique; /* has a field that differs in every request */
};

/*
 * Append @text. @rows may be NULL; both are borrowed. -EINVAL with @ret_error that begins with
 * @option, or -ENOMEM.
 */
int template_add(struct template *template, const char *option, enum template_form form,
		 const char *text, size_t length, const struct template_rows *rows,
		 char **ret_error);
void template_clear(struct template *template);

/* Shared by the fields of one request. */
struct template_turn {
	uint64_t number;		     /* of the request, from 1: {{counter}} */
	uint64_t client;		     /* its connection, from 1: {{client}} */
	uint64_t *random;		     /* state of a generator, see random.h */
	const struct template_value *values; /* of the variables, if any */
};

/* Render one request into @buffer, of at least template.max bytes. Return its length. */
size_t template_render(const struct template *template, const struct template_turn *turn,
		       char *buffer);

/* The fields, for --help and messages. */
extern const char template_forms[];

#endif
