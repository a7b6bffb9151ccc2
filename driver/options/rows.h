/* SPDX-License-Identifier: MIT */
/* The command line's rows: a table in each file of this folder; options.c has them all. */
#ifndef DRIVER_OPTIONS_ROWS_H
#define DRIVER_OPTIONS_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "sojourn/cli.h"

/* Where the member of a row is. */
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

/* The token from the environment, and what goes only with --observer. -EINVAL with a sentence. */
int option_settle_observer(struct options *options, char **ret_error);

/* What a sweep has for defaults and refuses; nothing for a run. -EINVAL with a sentence. */
int option_settle_sweep(struct options *options, char **ret_error);

/* The words of a command line: options are applied, others are in @options->words. As options_parse(). */
int options_parse_words(int argc, char **argv, struct options *options, char **ret_error);
/* What no single option can decide, when all have been applied. */
int options_settle(struct options *options, char **ret_error);

/*
 * All of a file, of up to @max bytes; the caller frees @ret_bytes. -EINVAL with a sentence in @ret_error,
 * which names the option @name; -ENOMEM.
 */
int option_read_file(const char *name, const char *path, size_t max, char **ret_bytes,
		     size_t *ret_length, char **ret_error);

#endif
