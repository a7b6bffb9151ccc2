/* SPDX-License-Identifier: MIT */
/* The rows that `observe` and `serve` share about their HTTP endpoint. */
#ifndef OBSERVER_OPTIONS_LISTEN_H
#define OBSERVER_OPTIONS_LISTEN_H

#include "options.h"
#include "sojourn/cli.h"

#define OPTIONS_LISTEN_ROWS 7

extern const struct cli_option options_listen_rows[OPTIONS_LISTEN_ROWS];

/* All of a PEM file, which lives as long as the process. NULL, or what would have been allowed. */
const char *options_read_pem(const char *path, const char **ret_text);

/* What cannot go together, or is not safe: -EINVAL, an error was printed. */
int options_listen_check(const struct cli_command *command, const struct observe_options *options);

#endif
