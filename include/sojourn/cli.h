/* SPDX-License-Identifier: MIT */
/*
 * Command lines from tables: a row per option has its parsing, help and errors. A wrong option is
 * reported in one line that names it, the value and what is allowed.
 */
#ifndef SOJOURN_CLI_H
#define SOJOURN_CLI_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit code of all programs. */
#define EXIT_USAGE 2

/*
 * Return whether @error (-errno) may be temporary, and no fault of the command line. The exit
 * status is then 1, and a service manager restarts the program.
 */
static inline bool error_is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
	       error == -ENOSPC || error == -EDQUOT || error == -EIO;
}

/* The kind of a value, and the type of the row's member. */
enum cli_kind {
	CLI_FLAG,     /* bool: true; takes no value */
	CLI_CONSTANT, /* an integer: row->minimum; takes no value, and parsing ends there */
	CLI_TEXT,     /* const char *; not empty if row->minimum is set */
	CLI_NUMBER,   /* an integer from minimum to maximum */
	CLI_COUNT,    /* likewise, with k, M or G; a maximum of 0: no limit */
	CLI_DURATION, /* uint64_t, ns; likewise */
	CLI_WORD,     /* an integer: index in words[], from minimum to below maximum */
	CLI_SET,      /* row->set() stores it */
	CLI_APPLY,    /* row->apply() stores it */
};

struct cli_option {
	const char *name;     /* long name, without dashes */
	int letter;	      /* short name, 0 if it has none */
	const char *argument; /* placeholder for its value in --help; NULL: takes none */
	const char *help;     /* NULL: not shown in --help */
	enum cli_kind kind;
	size_t offset, size; /* of the member: CLI_AT() */
	uint64_t minimum, maximum;
	const char *const *words;
	/*
	 * For errors: what is allowed, e.g. "a port from 1 to 65535". In getopt's style: the words
	 * after "--name: 'value'", which say what is wrong. NULL: a default by kind.
	 */
	const char *allowed;
	int alias; /* another short name, from other tools; 0: none */
	/* Its name in other tools, for suggestions only. NULL: none. */
	const char *elsewhere;
	/*
	 * After this mark ("@" or "") the value is the name of a file, whose content is used. NULL:
	 * never.
	 */
	const char *file;
	/* Gets the member's address. Return NULL, or what is allowed, as a constant string. */
	const char *(*set)(void *member, const char *value);
	/* Return 0, -ENOMEM, or -EINVAL with the whole sentence in @ret_error. */
	int (*apply)(void *member, const char *value, char **ret_error);
};

#define CLI_AT(type, member_) \
	.offset = offsetof(type, member_), .size = sizeof(((type *)NULL)->member_)

struct cli_table {
	const char *title; /* above its rows in --help; NULL: continues the table before */
	const struct cli_option *rows;
	size_t count;
	size_t offset; /* of these rows' settings in the target */
};

#define CLI_TABLES 12
#define CLI_GIVEN  128 /* maximum of rows */

struct cli_command {
	const char *program; /* name in messages: "sojourn observe" */
	const char *usage;   /* text after the program's name in --help */
	const char *intro;   /* one paragraph */
	const struct cli_table *tables[CLI_TABLES];
	const char *outro; /* examples, exit codes; may be NULL */
	/*
	 * The style of getopt_long(): abbreviated names, combined letters, and help as a row of the
	 * tables.
	 */
	bool getopt;
};

/* An option as it was applied. */
struct cli_use {
	const struct cli_option *option;
	const char *value; /* NULL: it takes none */
};

/* The words that are not options. */
struct cli_words {
	bool keeps_uses;      /* store every option in @uses, which the caller frees */
	struct cli_use *uses; /* in their order */
	size_t use_count;
	char **list; /* with room for argc; NULL: the first word ends the options */
	int count;   /* of @list; without a list the index of the first word, or argc */
	uint64_t given[CLI_GIVEN / 64]; /* bits: rows given, over all tables */
};

/*
 * Parse argv[1…] into @target. 0; -ECANCELED: --help was printed; -ENOMEM; -EINVAL with @ret_error.
 * Everything after "--" is words.
 */
int cli_walk(const struct cli_command *command, int argc, char **argv, void *target,
	     struct cli_words *words, char **ret_error);

/* Parse likewise with @words as list, its count in *ret_count, and print errors. */
int cli_parse(const struct cli_command *command, int argc, char **argv, void *target, char **words,
	      int *ret_count);

/* Return whether the option @name of @length characters, without --, was given. */
bool cli_was_given(const struct cli_command *command, const struct cli_words *words,
		   const char *name, size_t length);

/* Return the option whose whole name is @name, of @length characters; NULL: there is none. */
const struct cli_option *cli_row(const struct cli_command *command, const char *name,
				 size_t length);

/* Store @value in @settings as if from a command line in getopt's style. Errors as cli_walk(). */
int cli_apply(const struct cli_option *option, void *settings, const char *value, char **ret_error);

/* Print the options, at most 80 columns wide. */
void cli_help_tables(const struct cli_command *command, FILE *file);

/* Print "PROGRAM: MESSAGE" and return -EINVAL: for errors that need all options. */
__attribute__((format(printf, 2, 3))) int cli_error(const struct cli_command *command,
						    const char *format, ...);

#endif
