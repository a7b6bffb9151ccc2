// SPDX-License-Identifier: MIT
/* Parses command lines by table and prints their help; see sojourn/cli.h. */
#include "sojourn/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/suggest.h"
#include "sojourn/units.h"

#define HELP_WIDTH 80

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

/* Print @text in columns @column … HELP_WIDTH, from column @at on. Newlines are kept. */
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

static void print_option(FILE *file, const struct cli_option *option, bool getopt)
{
	size_t column = getopt ? 28 : 27;
	char left[HELP_WIDTH];
	int n;

	if (!option->help)
		return;
	if (option->alias)
		n = snprintf(left, sizeof(left), "  -%c, -%c, --%s", option->letter, option->alias,
			     option->name);
	else if (option->letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s", option->letter, option->name);
	else
		n = snprintf(left, sizeof(left), "      --%s", option->name);
	if (option->argument)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "%c%s", getopt ? '=' : ' ',
			      option->argument);
	fputs(left, file);
	if ((size_t)n > column - 2) {
		fputc('\n', file);
		n = 0;
	}
	fprintf(file, "%*s", (int)column - n, "");
	print_wrapped(file, option->help, column, column);
}

void cli_help_tables(const struct cli_command *command, FILE *file)
{
	for (const struct cli_table *const *table = command->tables; *table; table++) {
		if ((*table)->title)
			fprintf(file, "\n%s:\n", (*table)->title);
		for (size_t i = 0; i < (*table)->count; i++)
			print_option(file, &(*table)->rows[i], command->getopt);
	}
}

static void print_help(const struct cli_command *command, FILE *file)
{
	static const struct cli_option help = {"help", 'h', .help = "Print this help.",
					       .kind = CLI_FLAG};

	fprintf(file, "Usage: %s %s\n\n", command->program, command->usage);
	print_wrapped(file, command->intro, 0, 0);
	cli_help_tables(command, file);
	print_option(file, &help, command->getopt);
	if (command->outro)
		fprintf(file, "\n%s", command->outro);
}

/* ---- values ---- */

static void store_number(void *member, size_t size, uint64_t number)
{
	if (size == sizeof(uint64_t))
		*(uint64_t *)member = number;
	else if (size == sizeof(uint32_t))
		*(uint32_t *)member = (uint32_t)number;
	else if (size == sizeof(uint16_t))
		*(uint16_t *)member = (uint16_t)number;
	else
		*(uint8_t *)member = (uint8_t)number;
}

/* Return whether @number is within the row's minimum and maximum, if it has one. */
static bool is_inside(const struct cli_option *option, uint64_t number)
{
	return number >= option->minimum && (!option->maximum || number <= option->maximum);
}

static const char *parse_duration(const struct cli_option *option, const char *value,
				  uint64_t *ret_ns)
{
	int err = units_parse_duration(value, ret_ns);

	if (!err && is_inside(option, *ret_ns))
		return NULL;
	if (option->allowed)
		return option->allowed;
	if (err == -ERANGE)
		return "is too long; write at most 5000000h";
	return err ? "is not a duration; write it like 500ms, 10s or 2m"
		   : "is too short; at least 1ms is needed";
}

static const char *parse_word(const struct cli_option *option, const char *value,
			      uint64_t *ret_index)
{
	for (uint64_t i = option->minimum; i < option->maximum; i++)
		if (!strcmp(option->words[i], value)) {
			*ret_index = i;
			return NULL;
		}
	return option->allowed;
}

#define WRONG_SIZE 96

/* Store @value in @member. Return NULL, or what is wrong, possibly in @text. */
static const char *store(const struct cli_option *option, void *member, const char *value,
			 char text[static WRONG_SIZE])
{
	const char *wrong = NULL;
	uint64_t number = option->minimum;

	switch (option->kind) {
	case CLI_FLAG:
		number = true;
		break;
	case CLI_CONSTANT:
		break;
	case CLI_TEXT:
		*(const char **)member = value;
		return option->minimum && !*value ? option->allowed : NULL;
	case CLI_NUMBER:
		snprintf(text, WRONG_SIZE, "is not a whole number from %" PRIu64 " to %" PRIu64,
			 option->minimum, option->maximum);
		if (units_parse_u64(value, option->minimum, option->maximum, &number))
			wrong = option->allowed ? option->allowed : text;
		break;
	case CLI_COUNT:
		if (units_parse_count(value, &number) || !is_inside(option, number))
			wrong = option->allowed;
		break;
	case CLI_DURATION:
		wrong = parse_duration(option, value, &number);
		break;
	case CLI_WORD:
		wrong = parse_word(option, value, &number);
		break;
	default:
		return option->set(member, value);
	}
	if (!wrong)
		store_number(member, option->size, number);
	return wrong;
}

int cli_apply(const struct cli_option *option, void *settings, const char *value, char **ret_error)
{
	void *member = (char *)settings + option->offset;
	const char *wrong;
	char text[WRONG_SIZE];

	if (option->kind == CLI_APPLY)
		return option->apply(member, value, ret_error);
	wrong = store(option, member, value, text);
	if (!wrong)
		return 0;
	if (option->kind == CLI_TEXT)
		return refuse(ret_error, "--%s: %s", option->name, wrong);
	return refuse(ret_error, "--%s: '%s' %s", option->name, value, wrong);
}

/* ---- parsing ---- */

/* The state of parsing. */
struct walk {
	const struct cli_command *command;
	int argc, at;
	char **argv;
	void *target;
	struct cli_words *words;
	bool over; /* a CLI_CONSTANT was found */
	char **ret_error;
};

/* A row and its place. */
struct found {
	const struct cli_option *option;
	size_t offset; /* of its settings in the target */
	size_t index;  /* among the rows of all tables */
};

/* Find rows by @letter, or if that is 0 by @name, of @length characters. Return how many match. */
static size_t find(const struct cli_command *command, const char *name, size_t length, int letter,
		   struct found *ret_found)
{
	size_t index = 0, abbreviated = 0;

	for (const struct cli_table *const *table = command->tables; *table; table++)
		for (size_t i = 0; i < (*table)->count; i++, index++) {
			const struct cli_option *option = &(*table)->rows[i];
			bool same = letter ? option->letter == letter || option->alias == letter
					   : !strncmp(option->name, name, length);
			bool whole = letter || (same && !option->name[length]);

			if (!same || (!whole && !command->getopt))
				continue;
			*ret_found = (struct found){option, (*table)->offset, index};
			if (whole)
				return 1;
			abbreviated++;
		}
	return abbreviated;
}

const struct cli_option *cli_row(const struct cli_command *command, const char *name, size_t length)
{
	struct found found;

	return find(command, name, length, 0, &found) == 1 && !found.option->name[length]
		       ? found.option
		       : NULL;
}

bool cli_was_given(const struct cli_command *command, const struct cli_words *words,
		   const char *name, size_t length)
{
	struct found found;

	return find(command, name, length, 0, &found) == 1 && !found.option->name[length] &&
	       (words->given[found.index / 64] >> found.index % 64 & 1);
}

/* Return the option that @typed, of @length characters, may have meant; NULL: none is close. */
static const char *nearest(const struct cli_command *command, const char *typed, size_t length)
{
	struct suggestion suggestion = {0};

	for (const struct cli_table *const *table = command->tables; *table; table++)
		for (size_t i = 0; i < (*table)->count; i++) {
			const struct cli_option *option = &(*table)->rows[i];
			const char *elsewhere = option->elsewhere;

			if (elsewhere && strlen(elsewhere) == length &&
			    !strncmp(elsewhere, typed, length))
				return option->name;
			if (option->help)
				suggest_try(&suggestion, typed, length, option->name);
		}
	return suggestion.best;
}

static int keep_use(struct cli_words *words, const struct cli_option *option, const char *value)
{
	struct cli_use *use = ARRAY_APPEND(words->uses, words->use_count);

	if (!use)
		return -ENOMEM;
	*use = (struct cli_use){option, value};
	return 0;
}

/* @shown: the option as typed. */
static int apply(struct walk *walk, const struct found *found, const char *shown, const char *value)
{
	const struct cli_option *option = found->option;
	void *settings = (char *)walk->target + found->offset;
	const char *wrong;
	char text[WRONG_SIZE];

	walk->words->given[found->index / 64] |= UINT64_C(1) << found->index % 64;
	walk->over = option->kind == CLI_CONSTANT;
	if (walk->words->keeps_uses && keep_use(walk->words, option, value))
		return -ENOMEM;
	if (walk->command->getopt || option->kind == CLI_APPLY)
		return cli_apply(option, settings, value, walk->ret_error);
	wrong = store(option, (char *)settings + option->offset, value, text);
	if (!wrong)
		return 0;
	if (!value)
		return refuse(walk->ret_error, "%s: %s", shown, wrong);
	return refuse(walk->ret_error, "%s: '%s' is not allowed: give %s", shown, value, wrong);
}

/* More than the longest help of an option. */
#define HELP_LINE 800

/* Print the help of an option in one line into @ret_line. */
static void one_line(const char *help, char *ret_line, size_t size)
{
	size_t length = 0;

	for (; *help && length < size - 1; help++) {
		if (*help != '\n')
			ret_line[length++] = *help;
		else if (length && ret_line[length - 1] != '-') /* a word that goes on */
			ret_line[length++] = ' ';
	}
	ret_line[length] = '\0';
}

/* Apply an option with its attached value, or with the next word. */
static int take(struct walk *walk, const struct found *found, const char *shown, const char *glued)
{
	const struct cli_option *option = found->option;
	char help[HELP_LINE];

	if (!option->argument || glued)
		return apply(walk, found, shown, glued);
	if (walk->at < walk->argc)
		return apply(walk, found, shown, walk->argv[walk->at++]);
	if (walk->command->getopt) {
		one_line(option->help ? option->help : "", help, sizeof(help));
		return refuse(walk->ret_error, "--%s needs a value: --%s=%s (%s)", option->name,
			      option->name, option->argument, help);
	}
	return refuse(walk->ret_error, "%s: needs a value: %s", shown, option->argument);
}

/* Refuse an unknown or ambiguous option. */
static int refuse_name(struct walk *walk, const char *shown, size_t found)
{
	const char *name = nearest(walk->command, shown + 2, strlen(shown + 2));
	const char *what = found ? "ambiguous" : "unknown";

	if (name && walk->command->getopt)
		return refuse(walk->ret_error,
			      "%s option '%s': did you mean --%s? --help lists the options", what,
			      shown, name);
	if (name)
		return refuse(walk->ret_error, "%s: unknown option: did you mean --%s? See --help",
			      shown, name);
	return walk->command->getopt
		       ? refuse(walk->ret_error, "%s option '%s'; --help lists the options", what,
				shown)
		       : refuse(walk->ret_error, "%s: unknown option, see --help", shown);
}

static int take_long(struct walk *walk, const char *word)
{
	bool getopt = walk->command->getopt;
	size_t length = strcspn(word, "="), count;
	struct found found;
	char shown[64];

	snprintf(shown, sizeof(shown), "%.*s", (int)length, word);
	count = find(walk->command, word + 2, length - 2, 0, &found);
	if (count != 1)
		return refuse_name(walk, shown, count);
	if (!word[length])
		return take(walk, &found, shown, NULL);
	if (found.option->argument)
		return take(walk, &found, shown, word + length + 1);
	return getopt ? refuse(walk->ret_error, "--%s takes no value: '%s'", found.option->name,
			       word)
		      : refuse(walk->ret_error, "%s: takes no value, got '%s'", shown,
			       word + length + 1);
}

/* Take the letters of "-abc"; the first with a value takes the rest. */
static int take_letters(struct walk *walk, const char *word)
{
	struct found found;
	int err = 0;

	for (const char *c = word + 1; *c && !err && !walk->over; c++) {
		const char shown[] = {'-', *c, '\0'};

		if (!find(walk->command, NULL, 0, *c, &found))
			return walk->command->getopt
				       ? refuse(walk->ret_error,
						"unknown option '-%c'; --help lists the options",
						*c)
				       : refuse(walk->ret_error, "%s: unknown option, see --help",
						shown);
		if (found.option->argument)
			return take(walk, &found, shown, c[1] ? c + 1 : NULL);
		if (c[1] && !walk->command->getopt)
			return refuse(walk->ret_error, "%s: takes no value, got '%s'", shown,
				      c + 1);
		err = take(walk, &found, shown, NULL);
	}
	return err;
}

int cli_walk(const struct cli_command *command, int argc, char **argv, void *target,
	     struct cli_words *words, char **ret_error)
{
	struct walk walk = {.command = command,
			    .argc = argc,
			    .at = 1,
			    .argv = argv,
			    .target = target,
			    .words = words,
			    .ret_error = ret_error};
	int err = 0;

	words->count = 0;
	while (walk.at < argc && !err && !walk.over) {
		char *word = argv[walk.at];

		if (word[0] != '-' || !word[1]) {
			if (!words->list)
				break;
			words->list[words->count++] = word;
			walk.at++;
			continue;
		}
		walk.at++;
		if (!strcmp(word, "--"))
			break;
		if (!command->getopt && (!strcmp(word, "--help") || !strcmp(word, "-h"))) {
			print_help(command, stdout);
			return -ECANCELED;
		}
		err = word[1] == '-' ? take_long(&walk, word) : take_letters(&walk, word);
	}
	while (words->list && walk.at < argc)
		words->list[words->count++] = argv[walk.at++];
	if (!words->list)
		words->count = walk.at;
	return err;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, void *target, char **list,
	      int *ret_count)
{
	struct cli_words words = {.list = list};
	autofree char *error = NULL;
	int err = cli_walk(command, argc, argv, target, &words, &error);

	*ret_count = words.count;
	return error ? cli_error(command, "%s", error) : err;
}
