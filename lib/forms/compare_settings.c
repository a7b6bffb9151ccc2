// SPDX-License-Identifier: MIT
/*
 * Settings that differ between two runs: members of the documents, and words of the command lines
 * that no member represents.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/print.h"
#include "sojourn/cleanup.h"
#include "sojourn/compare.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

#define DURATION_APART 0.05 /* share: runs with a given number of requests vary in length */

enum place {
	OF_RUN,
	OF_DRIVER,
	OF_SWEEP,
};

enum kind {
	TEXT,
	FLAG,
	COUNT_32,
	COUNT_64,
	TIME,
	PORT,
};

static const struct setting {
	const char *name;
	enum kind kind;
	enum place place;
	size_t offset;
	/* Of a document with a sweep: the member of that instead. */
	bool in_sweep;
	size_t sweep_offset;
} settings[] = {
#define DRIVER(member) OF_DRIVER, offsetof(struct run_driver, member)
#define SWEEP(member)  true, offsetof(struct run_sweep, member)
	{"target", TEXT, DRIVER(target), SWEEP(target)},
	{"method", TEXT, DRIVER(method), SWEEP(method)},
	{"scenario", TEXT, DRIVER(scenario), false, 0},
	{"sweep over", TEXT, OF_SWEEP, offsetof(struct run_sweep, over), false, 0},
	{"service", PORT, OF_RUN, 0, false, 0},
	{"connections", COUNT_32, DRIVER(connections), SWEEP(connections)},
	{"streams", COUNT_32, DRIVER(streams), false, 0},
	{"one connection per request", FLAG, DRIVER(new_connections), false, 0},
	{"arrival", TEXT, DRIVER(arrival), false, 0},
	{"requests/s asked for", COUNT_64, DRIVER(rate), false, 0},
	{"think time", TIME, DRIVER(think_ns), false, 0},
	{"threads", COUNT_32, DRIVER(threads), false, 0},
	{"warm-up", TIME, DRIVER(warmup_ns), false, 0},
	{"interval", TIME, DRIVER(interval_ns), false, 0},
	{"driver's host", TEXT, DRIVER(host), false, 0},
	{"host", TEXT, OF_RUN, offsetof(struct run, host), false, 0},
	{"kernel", TEXT, OF_RUN, offsetof(struct run, kernel), false, 0},
	{"program", TEXT, OF_RUN, offsetof(struct run, tool), false, 0},
};

/* Only without a driver, whose target includes the port. */
static const char *port_of(const struct run *run, char text[static SHORT_TEXT])
{
	const struct run_service *service = run->driver ? NULL : compare_service(run);

	if (!service)
		return NULL;
	snprintf(text, SHORT_TEXT, "%s %u", service->protocol, service->port);
	return text;
}

/* Return the setting as text, perhaps in @text; NULL: @run has none. */
static const char *text_of(const struct setting *setting, const struct run *run,
			   char text[static SHORT_TEXT])
{
	const void *const places[] = {run, run->driver, run->sweep};
	bool in_sweep = run->sweep && setting->in_sweep;
	const char *structure = places[in_sweep ? OF_SWEEP : setting->place];
	uint64_t number;
	const void *at;

	if (!structure)
		return NULL;
	at = structure + (in_sweep ? setting->sweep_offset : setting->offset);
	switch (setting->kind) {
	case TEXT:
		return *(const char *const *)at;
	case FLAG:
		return *(const bool *)at ? "yes" : "no";
	case PORT:
		return port_of(run, text);
	default:
		number = setting->kind == COUNT_32 ? *(const uint32_t *)at : *(const uint64_t *)at;
		if (!number)
			return NULL;
		return setting->kind == TIME ? units_format_time((double)number, text, SHORT_TEXT)
					     : units_format_count(number, text, SHORT_TEXT);
	}
}

static void begin(FILE *file)
{
	fputs(ftell(file) > 0 ? "; " : "", file);
}

static const char *or_none(const char *text)
{
	return text ? text : "none";
}

static void put_members(const struct run *first, const struct run *other, FILE *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const char *a = text_of(&settings[i], first, UNITS_ROOM),
			   *b = text_of(&settings[i], other, UNITS_ROOM);

		if (text_same(a, b))
			continue;
		begin(file);
		fprintf(file, "%s %s \u2192 %s", settings[i].name, or_none(a), or_none(b));
	}
}

static uint64_t duration_of(const struct run *run)
{
	return run->driver ? run->driver->duration_ns : run->sweep ? 0 : run->duration_ns;
}

static void put_duration(const struct run *first, const struct run *other, FILE *file)
{
	double a = (double)duration_of(first), b = (double)duration_of(other);

	if (!(a > 0 && b > 0) || fabs(a - b) <= DURATION_APART * fmax(a, b))
		return;
	begin(file);
	fprintf(file, "duration %s \u2192 %s", as_time(a), as_time(b));
}

/* Options with values shown above, or about output; short forms next to long ones. */
static const struct {
	const char *name;
	bool has_value;
} named[] = {
	{"-c", true},
	{"--connections", true},
	{"-t", true},
	{"--threads", true},
	{"-d", true},
	{"--duration", true},
	{"--rate", true},
	{"--arrival", true},
	{"--think", true},
	{"--warmup", true},
	{"-m", true},
	{"--method", true},
	{"--new-connections", false},
	{"--streams", true},
	{"--interval", true},
	{"-i", true},
	{"-p", true},
	{"--port", true},
	{"--for", true},
	{"--json", true},
	{"-j", true},
	{"--csv", true},
	{"--hlog", true},
	{"--trace", true},
	{"--quiet", false},
	{"-q", false},
	{"--observer", true},
	{"--samples", true},
	{"--slowest", true},
	{"--keep-samples", false},
	{"--listen", true},
	{"-l", true},
	{"--wait-for", true},
	{"--start-at", true},
	{"--assert", true},
	{"--observer-token-file", true},
};

/* Return how many words from @at on are shown elsewhere: 0, or an option and its value. */
static size_t count_named(char *const *at)
{
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		size_t length = strlen(named[i].name);

		if (strncmp(*at, named[i].name, length))
			continue;
		if (!(*at)[length])
			return 1 + (named[i].has_value && at[1]);
		if ((*at)[length] == '=' || (length == 2 && (*at)[1] != '-'))
			return 1;
	}
	return 0;
}

/* Return 2 for an option and its value, unless it is the last word or another option follows. */
static size_t count_together(char *const *at)
{
	bool alone =
		**at != '-' || strchr(*at, '=') || !at[1] || *at[1] == '-' || strstr(at[1], "://");

	return alone ? 1 : 2;
}

static bool has_words(char *const *command, char *const *words, size_t count)
{
	for (; *command; command++) {
		size_t same = 0;

		while (same < count && command[same] && !strcmp(command[same], words[same]))
			same++;
		if (same == count)
			return true;
	}
	return false;
}

/* Write the words only in @run's command line, or "nothing". */
static size_t put_words_of(const struct run *run, const struct run *other, FILE *file)
{
	const char *target = run->sweep	   ? run->sweep->target
			     : run->driver ? run->driver->target
					   : NULL;
	size_t found = 0, count;

	for (char *const *at = run->command + 1; *at; at += count) {
		count = count_named(at);
		if (count || (target && !strcmp(*at, target))) {
			count = count ? count : 1;
			continue;
		}
		count = count_together(at);
		if (has_words(other->command, at, count))
			continue;
		for (size_t i = 0; i < count; i++)
			fprintf(file, "%s%s", found++ ? " " : "", at[i]);
	}
	fputs(found ? "" : "nothing", file);
	return found;
}

static int put_words(const struct run *first, const struct run *other, FILE *file)
{
	autofree char *text = NULL;
	size_t size, found;
	FILE *words;

	if (!first->command || !other->command || !first->command[0] || !other->command[0])
		return 0;
	words = open_memstream(&text, &size);
	if (!words)
		return -1;
	found = put_words_of(first, other, words);
	fputs(" \u2192 ", words);
	found += put_words_of(other, first, words);
	if (fclose(words))
		return -1;
	if (found) {
		begin(file);
		fprintf(file, "options %s", text);
	}
	return 0;
}

char *compare_settings(const struct compare *compare, size_t side)
{
	const struct run *first = compare->groups[0].runs[0],
			 *other = compare->groups[side + 1].runs[0];
	autofree char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int err;

	if (!file)
		return NULL;
	put_members(first, other, file);
	put_duration(first, other, file);
	err = put_words(first, other, file);
	return fclose(file) || err ? NULL : TAKE_PTR(text);
}
