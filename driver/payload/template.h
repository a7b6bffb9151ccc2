/* SPDX-License-Identifier: MIT */
/*
 * Bytes with fields like {{counter}} in them, rendered anew for every request. Knows no protocol.
 * Neighbour: template_field.c, the table of fields.
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
		size_t length; /* without the line's end */
	} *list;
	size_t count;
};

/* Takes @text, which malloc() gave, whatever becomes of it. -EINVAL if there is no row, -ENOMEM. */
int template_rows_take(char *text, size_t length, struct template_rows *ret_rows);
void template_rows_clear(struct template_rows *rows);

enum template_form {
	TEMPLATE_LITERAL, /* nothing in it is a field */
	TEMPLATE_BYTES,	  /* any field */
	TEMPLATE_LINE,	  /* no field of arbitrary bytes: it must stay one line of text */
	TEMPLATE_URL,	  /* what a field gives is percent-encoded */
};

/* What a scenario's steps keep from each other: {{var:NAME}}. */
struct template_variable {
	const char *name;
	size_t max; /* bytes of its value */
};

struct template_value {
	char *bytes;
	size_t length;
};

struct template_variables {
	const struct template_variable *list;
	size_t count;	  /* at most 64 */
	uint64_t visible; /* bits: those that have a value when the template is rendered */
};

/* A zeroed one is valid and empty. */
struct template
{
	const struct template_variables *variables; /* template_add() looks there; NULL: none */
	struct template_part *parts;
	size_t count;
	size_t max;  /* bytes that template_render() writes at most */
	size_t min;  /* and at least: those outside of fields */
	bool varies; /* has a field */
	bool unique; /* has one that no two requests have in common */
};

/*
 * Appends @text. @rows may be NULL; it and @text are borrowed. -EINVAL with a sentence in @ret_error that
 * begins with @option, or -ENOMEM.
 */
int template_add(struct template *template, const char *option, enum template_form form,
		 const char *text, size_t length, const struct template_rows *rows,
		 char **ret_error);
void template_clear(struct template *template);

/* What the fields of one request have in common. */
struct template_turn {
	uint64_t number;		     /* of the request, from 1: {{counter}} */
	uint64_t client;		     /* which connection sends it, from 1: {{client}} */
	uint64_t *random;		     /* state of a generator, see random.h */
	const struct template_value *values; /* of the variables, if there are any */
};

/* Writes the bytes of one request to @buffer, of at least template.max, and returns their number. */
size_t template_render(const struct template *template, const struct template_turn *turn,
		       char *buffer);

/* What may stand between the braces, for --help and messages. */
extern const char template_forms[];

#endif
