/* SPDX-License-Identifier: MIT */
/*
 * One error, one line on standard error: "sojourn: what failed: why". Only the top layer of a
 * program logs; everything below returns -errno.
 */
#ifndef SOJOURN_LOG_H
#define SOJOURN_LOG_H

#include <stdbool.h>

/* The program's name as printed before every line; must outlive the program. */
void log_open(const char *program, bool verbose);

/* Whether log_debug() prints: decides if libraries' own messages are wanted. */
bool log_is_verbose(void);

__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warn(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

/* Logs "…: strerror(-err)" and returns err (a negative errno), so that it can end a function. */
__attribute__((format(printf, 2, 3))) int log_errno(int err, const char *format, ...);

#endif
