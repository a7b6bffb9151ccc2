/* SPDX-License-Identifier: MIT */
/* The place of read.c in a run document, so that errors name the path. */
#ifndef LIB_JSON_READER_H
#define LIB_JSON_READER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The place in the document, for messages, and the first error. */
struct reader {
	char path[160];
	size_t length;
	char *error;
};

/*
 * Append to the path. Return its previous length for reader_leave(). Only known names and indices
 * are appended, so that the path always fits.
 */
__attribute__((format(printf, 2, 3))) size_t reader_enter(struct reader *reader, const char *format,
							  ...);
size_t reader_enter_member(struct reader *reader, const char *name);
void reader_leave(struct reader *reader, size_t before);

/* Keep "PATH: is …, must be …" and return -EINVAL; @json is the refused value or NULL. */
__attribute__((format(printf, 3, 4))) int reader_refuse(struct reader *reader, const json_t *json,
							const char *allowed, ...);

/* Read a whole number from 0 to @max; refuse anything else. */
int reader_integer(struct reader *reader, const json_t *json, uint64_t max, uint64_t *ret_value);

/* Read member @name of @object likewise. */
int reader_member(struct reader *reader, const json_t *object, const char *name, uint64_t max,
		  uint64_t *ret_value);

/* Return -EINVAL with @ret_error set if @text is not JSON or too large for a run document. */
int reader_parse(const char *text, size_t length, json_t **ret_document, char **ret_error);

#endif
