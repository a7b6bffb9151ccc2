/* SPDX-License-Identifier: MIT */
/*
 * Command lines from tables: one row per option gives its parsing, its help and its errors.
 * A wrong option is one line that names it, the value and what is allowed.
 */
#ifndef SOJOURN_CLI_H
#define SOJOURN_CLI_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes shared by all our programs. */
#define EXIT_USAGE 2

/*
 * Whether @error (-errno) may be gone the next time, whatever the command line: then the exit status is 1, and a
 * service's manager tries again.
 */
static inline bool error_is_passing(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN ||
	       error == -ENOSPC || error == -EDQUOT || error == -EIO;
}

/* What a value is, and so what the row's member is. */
enum cli_kind {
	CLI_FLAG,     /* bool: true; there is no value */
	CLI_CONSTANT, /* an integer: row->minimum; there is no value, and nothing after it is read */
	CLI_TEXT,     /* const char *; with row->minimum it may not be empty */
	CLI_NUMBER,   /* an integer from minimum to maximum */
	CLI_COUNT,    /* the same, with k, M or G; a maximum of 0 is none */
	CLI_DURATION, /* uint64_t, ns; the same */
	CLI_WORD,     /* an integer: which of words[], from minimum to below maximum */
	CLI_SET,      /* row->set() stores it */
	CLI_APPLY,    /* row->apply() does */
};

struct cli_option {
	const char *name;     /* long name, without dashes */
	int letter;	      /* short name, 0 if it has none */
	const char *argument; /* placeholder of its value in --help; NULL if it takes none */
	const char *help;     /* NULL: not shown in --help */
	enum cli_kind kind;
	size_t offset, size; /* of the member: CLI_AT() */
	uint64_t minimum, maximum;
	const char *const *words;
	/*
	 * What is said of a wrong value. In our own style what is allowed instead, e.g. "a port from 1 to
	 * 65535"; in that of getopt the rest of the sentence. NULL: a sentence by kind.
	 */
	const char *allowed;
	int alias; /* another short name, as other tools have it; 0: none */
	/* What other tools call the option: only to say what it is called here. NULL: nothing else. */
	const char *elsewhere;
	/* The value behind this mark ("@", "") is a file's name, whose content is what counts. NULL: it is not. */
	const char *file;
	/* Both get the member's address. NULL, or what is allowed, as above: a string that lives on. */
	const char *(*set)(void *member, const char *value);
	/* 0, -ENOMEM, or -EINVAL with the whole sentence in @ret_error. */
	int (*apply)(void *member, const char *value, char **ret_error);
};

#define CLI_AT(type, member_) \
	.offset = offsetof(type, member_), .size = sizeof(((type *)NULL)->member_)

struct cli_table {
	const char *title; /* above its rows in --help; NULL: they go on with those before */
	const struct cli_option *rows;
	size_t count;
	size_t offset; /* in the target: where the members of these rows are */
};

#define CLI_TABLES 12
#define CLI_GIVEN  128 /* rows that words can tell of */

struct cli_command {
	const char *program; /* as in messages: "sojourn observe" */
	const char *usage;   /* what follows the program's name in --help */
	const char *intro;   /* one paragraph */
	const struct cli_table *tables[CLI_TABLES];
	const char *outro; /* examples, exit codes; may be NULL */
	/*
	 * As getopt_long() has it: names may be abbreviated, letters of flags stand together, and help is
	 * a row of the tables.
	 */
	bool getopt;
};

/* An option as it was applied. */
struct cli_use {
	const struct cli_option *option;
	const char *value; /* NULL: it takes none */
};

/* What else there was than options. */
struct cli_words {
	bool keeps_uses;      /* in the list below, which the caller frees */
	struct cli_use *uses; /* in their order */
	size_t use_count;
	char **list; /* has room for argc; NULL: the first word ends the options */
	int count;   /* of @list; without one the index of the first word, argc if there is none */
	uint64_t given[CLI_GIVEN / 64]; /* bits of the rows, over all tables */
};

/*
 * Parses argv[1…] into @target. 0; -ECANCELED: --help was printed; -ENOMEM; -EINVAL with a sentence in
 * @ret_error, freed by the caller. What follows "--" is words.
 */
int cli_walk(const struct cli_command *command, int argc, char **argv, void *target,
	     struct cli_words *words, char **ret_error);

/* The same with @words as list, its count in *ret_count; an error is printed. */
int cli_parse(const struct cli_command *command, int argc, char **argv, void *target, char **words,
	      int *ret_count);

/* Whether the option of these @length characters, without --, was given. */
bool cli_was_given(const struct cli_command *command, const struct cli_words *words,
		   const char *name, size_t length);

/* Stores @value in @member's settings as one of a command line in getopt's style. Errors as cli_walk(). */
int cli_apply(const struct cli_option *option, void *settings, const char *value, char **ret_error);

/* Prints the help, at most 80 columns wide. */
void cli_help(const struct cli_command *command, FILE *file);
/* Only the options. */
void cli_help_tables(const struct cli_command *command, FILE *file);

/* Prints "PROGRAM: MESSAGE" and returns -EINVAL: for what only shows when all options are known. */
__attribute__((format(printf, 2, 3))) int cli_error(const struct cli_command *command,
						    const char *format, ...);

#endif
