/* SPDX-License-Identifier: MIT */
/* Where in a run document read.c is, so that what it refuses is named by its path. */
#ifndef LIB_JSON_READER_H
#define LIB_JSON_READER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Where in the document the reader is, for messages, and the first complaint. */
struct reader {
	char path[160];
	size_t length;
	char *error;
};

/*
 * Appends to the path; returns what reader_leave() takes it back to. Only known names and indices
 * are entered, so that it always fits.
 */
__attribute__((format(printf, 2, 3))) size_t reader_enter(struct reader *reader, const char *format,
							  ...);
size_t reader_enter_member(struct reader *reader, const char *name);
void reader_leave(struct reader *reader, size_t before);

/* Keeps "PATH: is …, must be …" and returns -EINVAL; @json is what stands there, may be NULL. */
__attribute__((format(printf, 3, 4))) int reader_refuse(struct reader *reader, const json_t *json,
							const char *allowed, ...);

/* A whole number from 0 to @max, or the refusal of anything else. */
int reader_integer(struct reader *reader, const json_t *json, uint64_t max, uint64_t *ret_value);

/* The same of member @name of @object. */
int reader_member(struct reader *reader, const json_t *object, const char *name, uint64_t max,
		  uint64_t *ret_value);

/* -EINVAL with @ret_error set if @text is not JSON, or too large to be a run document. */
int reader_parse(const char *text, size_t length, json_t **ret_document, char **ret_error);

#endif
