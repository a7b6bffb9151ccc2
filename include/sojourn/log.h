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

__attribute__((format(printf, 2, 3))) void log_print(const char *severity, const char *format, ...);
#define log_error(...) log_print("", __VA_ARGS__)
#define log_warn(...)  log_print("warning: ", __VA_ARGS__)
/* For what a program that serves has done. */
#define log_note(...) log_print("", __VA_ARGS__)
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);

/* Log "…: strerror(-err)" and return err (a negative errno), so that it can end a function. */
__attribute__((format(printf, 2, 3))) int log_errno(int err, const char *format, ...);

#endif
