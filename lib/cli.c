// SPDX-License-Identifier: MIT
/* Parses command lines by table and prints their help; see sojourn/cli.h. */
#include "sojourn/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define HELP_COLUMN 27
#define HELP_WIDTH  80

int cli_error(const struct cli_command *command, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", command->program);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -EINVAL;
}

/* ---- help ---- */

/* Prints @text in columns @column … HELP_WIDTH; the cursor stands at @at. Newlines are kept. */
static void print_wrapped(FILE *file, const char *text, size_t at, size_t column)
{
	while (*text) {
		size_t word = strcspn(text, " \n");

		if (at > column && at + 1 + word > HELP_WIDTH) {
			fprintf(file, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			fputc(' ', file);
			at++;
		}
		fwrite(text, 1, word, file);
		at += word;
		text += word;
		if (*text == '\n') {
			fprintf(file, "\n%*s", text[1] ? (int)column : 0, "");
			at = column;
		}
		text += *text != 0;
	}
	fputc('\n', file);
}

static void print_option(FILE *file, const struct cli_option *option)
{
	char left[HELP_WIDTH];
	int n;

	if (option->letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s", option->letter, option->name);
	else
		n = snprintf(left, sizeof(left), "      --%s", option->name);
	if (option->argument)
		n += snprintf(left + n, sizeof(left) - (size_t)n, " %s", option->argument);
	fputs(left, file);
	if (n > HELP_COLUMN - 2) {
		fputc('\n', file);
		n = 0;
	}
	fprintf(file, "%*s", HELP_COLUMN - n, "");
	print_wrapped(file, option->help, HELP_COLUMN, HELP_COLUMN);
}

void cli_help(const struct cli_command *command, FILE *file)
{
	static const struct cli_option help = {"help", 'h', NULL, "Print this help.", NULL};

	fprintf(file, "Usage: %s %s\n\n", command->program, command->usage);
	print_wrapped(file, command->intro, 0, 0);
	fputs("\nOptions:\n", file);
	for (size_t i = 0; i < command->option_count; i++) {
		if (command->options[i].help)
			print_option(file, &command->options[i]);
	}
	print_option(file, &help);
	if (command->outro)
		fprintf(file, "\n%s", command->outro);
}

/* ---- parsing ---- */

/* What stands in argv at one place: the option, as it was written, and a value glued to it. */
struct match {
	const struct cli_option *option;
	char shown[64];
	const char *value;
};

static const struct cli_option *find(const struct cli_command *command, const char *name,
				     size_t length, int letter)
{
	for (size_t i = 0; i < command->option_count; i++) {
		const struct cli_option *option = &command->options[i];

		if (letter ? option->letter == letter
			   : strlen(option->name) == length && !strncmp(option->name, name, length))
			return option;
	}
	return NULL;
}

static int match_word(const struct cli_command *command, const char *word, struct match *ret_match)
{
	size_t length = strcspn(word, "=");

	*ret_match = (struct match){};
	if (word[1] == '-') {
		ret_match->option = find(command, word + 2, length - 2, 0);
		ret_match->value = word[length] ? word + length + 1 : NULL;
		snprintf(ret_match->shown, sizeof(ret_match->shown), "%.*s", (int)length, word);
	} else {
		ret_match->option = find(command, NULL, 0, word[1]);
		ret_match->value = word[2] ? word + 2 : NULL;
		snprintf(ret_match->shown, sizeof(ret_match->shown), "-%c", word[1]);
	}
	if (!ret_match->option)
		return cli_error(command, "%s: unknown option, see --help", ret_match->shown);
	if (ret_match->value && !ret_match->option->argument)
		return cli_error(command, "%s: takes no value, got '%s'", ret_match->shown,
				 ret_match->value);
	return 0;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* Parses the option at argv[*at] and its value, and moves *at behind them. */
static int parse_one(const struct cli_command *command, int argc, char **argv, int *at,
		     void *target)
{
	struct match match;
	const char *allowed;
	int r = match_word(command, argv[(*at)++], &match);

	if (r < 0)
		return r;
	if (match.option->argument && !match.value) {
		if (*at >= argc)
			return cli_error(command, "%s: needs a value: %s", match.shown,
					 match.option->argument);
		match.value = argv[(*at)++];
	}
	allowed = match.option->set(target, match.value);
	if (!allowed)
		return 0;
	if (!match.value)
		return cli_error(command, "%s: %s", match.shown, allowed);
	return cli_error(command, "%s: '%s' is not allowed: give %s", match.shown, match.value,
			 allowed);
}

int cli_parse(const struct cli_command *command, int argc, char **argv, void *target, int *ret_next)
{
	int at = 1;

	while (at < argc && argv[at][0] == '-' && argv[at][1]) {
		int r;

		if (!strcmp(argv[at], "--")) {
			at++;
			break;
		}
		if (is_help(argv[at]) && !find(command, "help", 4, 0)) {
			cli_help(command, stdout);
			return -ECANCELED;
		}
		r = parse_one(command, argc, argv, &at, target);
		if (r < 0)
			return r;
	}
	*ret_next = at;
	return 0;
}
