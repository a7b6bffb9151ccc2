/* SPDX-License-Identifier: MIT */
/* The command line's rows: one table per file option_NAME.c; options.c walks them all. */
#ifndef DRIVER_OPTION_ROWS_H
#define DRIVER_OPTION_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"

struct option_row {
	char letter; /* the short option; 0: none */
	const char *name;
	const char *argument; /* NULL: takes none */
	const char *help;     /* further lines after \n; NULL: not shown in --help */
	/* 0, -ENOMEM, or -EINVAL with a sentence in @ret_error. */
	int (*apply)(struct options *options, const char *value, char **ret_error);
};

struct option_table {
	const char *title; /* above its rows in --help */
	const struct option_row *rows;
	size_t count;
};

extern const struct option_table option_load;
extern const struct option_table option_request;
extern const struct option_table option_connection;
extern const struct option_table option_stream;
extern const struct option_table option_h2;
extern const struct option_table option_tls;
extern const struct option_table option_datagram;
extern const struct option_table option_observer;
extern const struct option_table option_output;
extern const struct option_table option_sweep;

/* The token from the environment, and what goes only with --observer. -EINVAL with a sentence. */
int option_settle_observer(struct options *options, char **ret_error);

/* What a sweep has for defaults and refuses; nothing for a run. -EINVAL with a sentence. */
int option_settle_sweep(struct options *options, char **ret_error);

/* The words of a command line: options are applied, others are left from optind on. As options_parse(). */
int options_parse_words(int argc, char **argv, struct options *options, char **ret_error);
/* `run FILE.yaml …`: @argv[0] is "run"; @options hold the defaults. */
int options_parse_run(int argc, char **argv, struct options *options, char **ret_error);
/* What no single option can decide, when all have been applied. */
int options_settle(struct options *options, char **ret_error);

/* For values: -EINVAL with a sentence in @ret_error, which names the option @name. */
int option_parse_number(const char *name, const char *value, uint64_t min, uint64_t max,
			uint64_t *ret_number, char **ret_error);
int option_parse_duration(const char *name, const char *value, uint64_t min_ns, uint64_t *ret_ns,
			  char **ret_error);
/* All of a file, of up to @max bytes; the caller frees @ret_bytes. Also -ENOMEM. */
int option_read_file(const char *name, const char *path, size_t max, char **ret_bytes,
		     size_t *ret_length, char **ret_error);

#endif
