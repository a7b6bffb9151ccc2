/* SPDX-License-Identifier: MIT */
/* Texts that may be missing, or come from elsewhere, such as a process's own name. */
#ifndef SOJOURN_TEXT_H
#define SOJOURN_TEXT_H

#include <stdarg.h>
#include <stdbool.h>

/* Return a text as asprintf() makes it, which the caller frees; NULL: no memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_format_args(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Return whether two texts are equal, or both missing (NULL). */
bool text_same(const char *a, const char *b);

/* Return whether @text begins with @start. */
bool text_begins(const char *text, const char *start);

/*
 * Replace dangerous characters by @substitute: those that end the line, control a terminal (C0,
 * C1), or reverse or hide text (bidirectional and invisible marks). Replace bytes that are not
 * UTF-8. The text gets no longer. Other UTF-8 stays.
 */
void text_make_printable(char *text, char substitute);

/* Replace bytes that are not UTF-8 by '?', in place: JSON and metrics require UTF-8. */
void text_make_utf8(char *text);

/* Replace underscores of a name by blanks, in place: "socket queue". Return @text. */
char *text_words(char *text);

/* Return the number of characters; none of ours is wide. */
unsigned int text_columns(const char *text);

#endif
