/* SPDX-License-Identifier: MIT */
/*
 * Values taken from responses: by a header's name, a JSON pointer, a regular expression, or where they
 * stand. Engines feed a response to the calls below; none is made where nothing is captured.
 */
#ifndef DRIVER_PAYLOAD_CAPTURE_H
#define DRIVER_PAYLOAD_CAPTURE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "template.h"

#define CAPTURES_MAX	  16U
#define CAPTURE_SIZE	  256U /* bytes of a variable, unless the scenario says otherwise */
#define CAPTURE_SIZE_MAX  4096U
#define CAPTURE_BODY_MAX  (1U << 20) /* of a body in which something is looked for */
#define CAPTURE_REACH_MAX (1U << 20)

struct capture_kind;

struct capture {
	const struct capture_kind *kind;
	uint32_t variable;
	const char *text; /* the header's name or the pointer; borrowed */
	regex_t regex;	  /* compiled where the kind says so */
	size_t offset;
	size_t length;
};

/* Of one kind of request. A zeroed one is valid and empty. */
struct capture_list {
	struct capture list[CAPTURES_MAX];
	size_t count;
	bool headers; /* something is taken from them */
	bool body;    /* likewise */
};

/* One client's variables, and the response under way. A zeroed one is valid and empty. */
struct capture_store {
	const struct template_variable *variables;
	size_t variable_count;
	struct template_value *values;
	char *body; /* grows to what the responses need, and stays */
	size_t body_length, body_size;
	uint32_t found; /* bits: of the list's captures, those that have their value */
	bool overflow;	/* the body does not fit, or there is no memory for it */
};

/* Names of the kinds, for messages: "json, regex, header, bytes". */
extern const char capture_forms[];

/*
 * Appends what @kind and @text say. -EINVAL with a sentence in @ret_error (no option's name in it),
 * -ENOMEM. @text is borrowed.
 */
int capture_add(struct capture_list *list, const char *kind, const char *text, uint32_t variable,
		char **ret_error);
void capture_clear(struct capture_list *list);

/* Room for all variables of one client, all empty. -ENOMEM. */
int capture_open(struct capture_store *store, const struct template_variable *variables,
		 size_t count);
void capture_close(struct capture_store *store);

/* Sets a variable; false: the value is longer than it may be, and it is empty. */
bool capture_set(struct capture_store *store, uint32_t variable, const char *bytes, size_t length);

/* A response begins; its headers, one by one, and its body, piece by piece. */
void capture_begin(struct capture_store *store);
void capture_header(const struct capture_list *list, struct capture_store *store, const char *name,
		    size_t name_length, const char *value, size_t length);
void capture_body(const struct capture_list *list, struct capture_store *store, const char *data,
		  size_t length);
/* The next bytes of the body, whether or not something is taken from it. */
void capture_append(struct capture_store *store, const char *data, size_t length);
/* After capture_end() said no: appends which one was not there, and why, to @text. */
void capture_tell(const struct capture_list *list, struct capture_store *store, char *text,
		  size_t size);
/* It is complete: whether all that is captured was there. What was not is empty. */
bool capture_end(const struct capture_list *list, struct capture_store *store);

#endif
