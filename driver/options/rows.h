/* SPDX-License-Identifier: MIT */
/* The rows of the command line: tables in the files here, all listed in options.c. */
#ifndef DRIVER_OPTIONS_ROWS_H
#define DRIVER_OPTIONS_ROWS_H

#include <stddef.h>

#include "options.h"
#include "sojourn/cli.h"

/* The place of a row's member. */
#define AT(member) CLI_AT(struct options, member)

extern const struct cli_table option_load;
extern const struct cli_table option_request;
extern const struct cli_table option_connection;
extern const struct cli_table option_stream;
extern const struct cli_table option_h2;
extern const struct cli_table option_tls;
extern const struct cli_table option_datagram;
extern const struct cli_table option_observer;
extern const struct cli_table option_output;
extern const struct cli_table option_sweep;

/* Return the option with exactly this name, of @length characters, without --; NULL: none. */
const struct cli_option *options_row(const char *name, size_t length);

/* Take the token from the environment; refuse options that need --observer. -EINVAL. */
int option_settle_observer(struct options *options, char **ret_error);

/* Likewise for an access alone. */
int option_settle_access(struct observer_access *access, char **ret_error);
void option_clear_observers(struct observer_access *access);
/* Apply a value of --observer, --observer-token-file, or --observer-ca; rows of others use them. */
int option_apply_observer(void *access, const char *value, char **ret_error);
int option_apply_observer_token(void *access, const char *value, char **ret_error);
int option_apply_observer_ca(void *path, const char *value, char **ret_error);

/* Apply a sweep's defaults and refuse options against it; do nothing for a run. -EINVAL. */
int option_settle_sweep(struct options *options, char **ret_error);

/* Apply options; other words go to @options->words. Errors as options_parse(). */
int options_parse_words(int argc, char **argv, struct options *options, char **ret_error);
/* Check combinations after all options have been applied. */
int options_settle(struct options *options, char **ret_error);

/*
 * Read a file of up to @max bytes into @ret_bytes. -EINVAL with @ret_error that names the option
 * @name; -ENOMEM.
 */
int option_read_file(const char *name, const char *path, size_t max, char **ret_bytes,
		     size_t *ret_length, char **ret_error);

#endif
