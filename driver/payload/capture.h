/* SPDX-License-Identifier: MIT */
/*
 * Values captured from responses, by header name, JSON pointer, regular expression or offset.
 * Engines feed responses to these calls, unless nothing is captured.
 */
#ifndef DRIVER_PAYLOAD_CAPTURE_H
#define DRIVER_PAYLOAD_CAPTURE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "template.h"

#define CAPTURES_MAX	  16U
#define CAPTURE_SIZE	  256U /* default maximum of a variable, in bytes */
#define CAPTURE_SIZE_MAX  4096U
#define CAPTURE_BODY_MAX  (1U << 20) /* maximum of a searched body */
#define CAPTURE_REACH_MAX (1U << 20)

struct capture_kind;

struct capture {
	const struct capture_kind *kind;
	uint32_t variable;
	const char *text; /* the header's name or the pointer; borrowed */
	regex_t regex;	  /* for the kind regex */
	size_t offset;
	size_t length;
};

/* The captures of one kind of request. A zeroed one is valid and empty. */
struct capture_list {
	struct capture list[CAPTURES_MAX];
	size_t count;
	bool headers; /* something is captured from headers */
	bool body;    /* something is captured from the body */
};

/* One client's variables, and its current response. A zeroed one is valid and empty. */
struct capture_store {
	const struct template_variable *variables;
	size_t variable_count;
	struct template_value *values;
	char *body; /* grows to the largest response */
	size_t body_length, body_size;
	uint32_t found; /* bits: captures of the list that have a value */
	bool overflow;	/* the body is too large, or without memory */
};

/* The names of the kinds, for messages. */
extern const char capture_forms[];

/*
 * Append a capture. -EINVAL with @ret_error, without an option's name; -ENOMEM. @text is borrowed.
 */
int capture_add(struct capture_list *list, const char *kind, const char *text, uint32_t variable,
		char **ret_error);
void capture_clear(struct capture_list *list);

/* Make room for all variables of one client, empty at first. -ENOMEM. */
int capture_open(struct capture_store *store, const struct template_variable *variables,
		 size_t count);
void capture_close(struct capture_store *store);

/* Set a variable; false: the value is too long, and the variable is empty. */
bool capture_set(struct capture_store *store, uint32_t variable, const char *bytes, size_t length);

/* Feed a response: its start, its headers one by one, its body piece by piece. */
void capture_begin(struct capture_store *store);
void capture_header(const struct capture_list *list, struct capture_store *store, const char *name,
		    size_t name_length, const char *value, size_t length);
void capture_body(const struct capture_list *list, struct capture_store *store, const char *data,
		  size_t length);
/* Append to the body, whether or not a value is captured from it. */
void capture_append(struct capture_store *store, const char *data, size_t length);
/* After a failed capture_end(), append which value was missing and why to @text. */
void capture_tell(const struct capture_list *list, struct capture_store *store, char *text,
		  size_t size);
/* End the response. Return whether all values were there; missing ones are empty. */
bool capture_end(const struct capture_list *list, struct capture_store *store);

#endif
