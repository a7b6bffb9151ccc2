/* SPDX-License-Identifier: MIT */
/*
 * One error is one line on standard error: "sojourn: what failed: why". Only a program's top layer
 * logs; everything below returns -errno.
 */
#ifndef SOJOURN_LOG_H
#define SOJOURN_LOG_H

#include <stdbool.h>

/* Set the program's name for every line; it must outlive the program. */
void log_open(const char *program, bool verbose);

/* Return whether log_debug() prints, to decide on messages of libraries. */
bool log_is_verbose(void);

__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warn(const char *format, ...);
/* For what a program that serves has done. */
__attribute__((format(printf, 1, 2))) void log_note(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

/* Log "…: strerror(-err)" and return err (a negative errno), so that it can end a function. */
__attribute__((format(printf, 2, 3))) int log_errno(int err, const char *format, ...);

#endif
