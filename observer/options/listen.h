/* SPDX-License-Identifier: MIT */
/* The rows that `observe`, `serve` and `record` share about their HTTP endpoint. */
#ifndef OBSERVER_OPTIONS_LISTEN_H
#define OBSERVER_OPTIONS_LISTEN_H

#include "options.h"
#include "sojourn/cli.h"

extern const struct cli_table options_listen;

/* Set @pem, the member of a row, to the text of the PEM file @path; the text is never freed. */
const char *options_set_pem(void *pem, const char *path);

/* Check for options that conflict or are not safe: -EINVAL, an error was printed. */
int options_listen_check(const struct cli_command *command, const struct observe_options *options);

/* Return whether the endpoint makes a token of its own. */
bool options_own_token(const struct observe_options *options);

#endif
