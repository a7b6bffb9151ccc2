/* SPDX-License-Identifier: MIT */
/*
 * Command lines from tables: one row per option gives its parsing, its help and its errors.
 * A wrong option is one line on standard error that names it, the value and what is allowed.
 */
#ifndef SOJOURN_CLI_H
#define SOJOURN_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit codes shared by all our programs. */
#define EXIT_USAGE 2

struct cli_option {
	const char *name;     /* long name, without dashes */
	int letter;	      /* short name, 0 if it has none */
	const char *argument; /* placeholder of its value in --help; NULL if it takes none */
	const char *help;     /* NULL: not shown in --help */
	/*
	 * Stores @value (NULL without argument) in @target. NULL, or what is allowed instead, e.g.
	 * "a port from 1 to 65535": a string that lives on.
	 */
	const char *(*set)(void *target, const char *value);
};

struct cli_command {
	const char *program; /* as in messages: "sojourn observe" */
	const char *usage;   /* what follows the program's name in --help */
	const char *intro;   /* one paragraph */
	const struct cli_option *options;
	size_t option_count;
	const char *outro; /* examples, exit codes; may be NULL */
};

/*
 * Parses argv[1…] into @target, up to the first word that is no option, or "--".
 * 0: *ret_next is the index of the first word left (argc if none). -ECANCELED: --help was printed.
 * -EINVAL: an error was printed. "--help" and "-h" are understood without a row.
 */
int cli_parse(const struct cli_command *command, int argc, char **argv, void *target,
	      int *ret_next);

/* Prints the help, at most 80 columns wide. */
void cli_help(const struct cli_command *command, FILE *file);

/* Prints "PROGRAM: MESSAGE" and returns -EINVAL: for what only shows when all options are known. */
__attribute__((format(printf, 2, 3))) int cli_error(const struct cli_command *command,
						    const char *format, ...);

#endif
