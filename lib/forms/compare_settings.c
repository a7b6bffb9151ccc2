/* SPDX-License-Identifier: MIT */
/*
 * Settings that differ between two runs: members of the documents, and words of the command lines
 * that no member represents.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/print.h"
#include "sojourn/cleanup.h"
#include "sojourn/compare.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

#define DURATION_APART 0.05 /* share: runs with a given number of requests vary in length */

struct texts {
	char number[SHORT_TEXT];
};

static const char *number(uint64_t value, struct texts *texts)
{
	return value ? page_count(value, texts->number) : NULL;
}

static const char *duration(uint64_t ns, struct texts *texts)
{
	return ns ? page_time((double)ns, texts->number) : NULL;
}

static const char *get_tool(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->tool;
}

static const char *get_host(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->host;
}

static const char *get_kernel(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->kernel;
}

static const char *get_driver_host(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->driver ? run->driver->host : NULL;
}

static const char *get_target(const struct run *run, struct texts *texts)
{
	(void)texts;
	if (run->sweep)
		return run->sweep->target;
	return run->driver ? run->driver->target : NULL;
}

static const char *get_method(const struct run *run, struct texts *texts)
{
	(void)texts;
	if (run->sweep)
		return run->sweep->method;
	return run->driver ? run->driver->method : NULL;
}

static const char *get_scenario(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->driver ? run->driver->scenario : NULL;
}

static const char *get_over(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->sweep ? run->sweep->over : NULL;
}

static const char *get_connections(const struct run *run, struct texts *texts)
{
	if (run->sweep)
		return number(run->sweep->connections, texts);
	return run->driver ? number(run->driver->connections, texts) : NULL;
}

static const char *get_streams(const struct run *run, struct texts *texts)
{
	return run->driver ? number(run->driver->streams, texts) : NULL;
}

static const char *get_threads(const struct run *run, struct texts *texts)
{
	return run->driver ? number(run->driver->threads, texts) : NULL;
}

static const char *get_new_connections(const struct run *run, struct texts *texts)
{
	(void)texts;
	if (!run->driver)
		return NULL;
	return run->driver->new_connections ? "yes" : "no";
}

static const char *get_arrival(const struct run *run, struct texts *texts)
{
	(void)texts;
	return run->driver ? run->driver->arrival : NULL;
}

static const char *get_rate(const struct run *run, struct texts *texts)
{
	return run->driver ? number(run->driver->rate, texts) : NULL;
}

static const char *get_think(const struct run *run, struct texts *texts)
{
	return run->driver ? duration(run->driver->think_ns, texts) : NULL;
}

static const char *get_warmup(const struct run *run, struct texts *texts)
{
	return run->driver ? duration(run->driver->warmup_ns, texts) : NULL;
}

static const char *get_interval(const struct run *run, struct texts *texts)
{
	return run->driver ? duration(run->driver->interval_ns, texts) : NULL;
}

/* Only without a driver, whose target includes the port. */
static const char *get_port(const struct run *run, struct texts *texts)
{
	const struct run_service *service = run->driver ? NULL : compare_service(run);

	if (!service)
		return NULL;
	snprintf(texts->number, sizeof(texts->number), "%s %u", service->protocol, service->port);
	return texts->number;
}

static const struct setting {
	const char *name;
	const char *(*get)(const struct run *run, struct texts *texts);
} settings[] = {
	{"target", get_target},
	{"method", get_method},
	{"scenario", get_scenario},
	{"sweep over", get_over},
	{"service", get_port},
	{"connections", get_connections},
	{"streams", get_streams},
	{"one connection per request", get_new_connections},
	{"arrival", get_arrival},
	{"requests/s asked for", get_rate},
	{"think time", get_think},
	{"threads", get_threads},
	{"warm-up", get_warmup},
	{"interval", get_interval},
	{"driver's host", get_driver_host},
	{"host", get_host},
	{"kernel", get_kernel},
	{"program", get_tool},
};

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
		struct texts of_first, of_other;
		const char *a = settings[i].get(first, &of_first),
			   *b = settings[i].get(other, &of_other);

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
	char before[SHORT_TEXT], after[SHORT_TEXT];

	if (!(a > 0 && b > 0) || fabs(a - b) <= DURATION_APART * fmax(a, b))
		return;
	begin(file);
	fprintf(file, "duration %s \u2192 %s", page_time(a, before), page_time(b, after));
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
	const char *target = get_target(run, &(struct texts){""});
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
	const struct run *first = compare->runs[0], *other = compare->runs[side + 1];
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
