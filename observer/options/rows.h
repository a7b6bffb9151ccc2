/* SPDX-License-Identifier: MIT */
/* The rows of `sojourn observe` that other subcommands take over, so that each is written once. */
#ifndef OBSERVER_OPTIONS_ROWS_H
#define OBSERVER_OPTIONS_ROWS_H

#include "options.h"
#include "sojourn/cli.h"

/* Return the row named @name of `sojourn observe`, for a struct observe_options; NULL: there is none. */
const struct cli_option *options_observe_row(const char *name);

/* Check that the options for what is observed go together; if not, print an error. 0 or -EINVAL. */
int options_check_where(const struct cli_command *command, const struct observe_options *options);

/* Refuse a word that is no option, which may have been meant as a port; @else_: what is allowed. -EINVAL. */
int options_refuse_word(const struct cli_command *command, const char *word, const char *else_);

#endif
