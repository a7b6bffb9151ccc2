// SPDX-License-Identifier: MIT
/* Listens to libbpf, whose last word becomes the reason of a refusal; see message.h. */
#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "sojourn/cleanup.h"
#include "sojourn/log.h"

/* A longer text is a verifier's log, whose end has the reason. */
#define LONGEST_SHOWN 1900

static char message[256];

/* The verifier's verdict: the line before its count of instructions, at the end of a long log. */
static void keep_verdict(char *text)
{
	char *end = strstr(text, "\nprocessed ");
	char *verdict;
	size_t used = strlen(message);

	if (!end)
		return;
	*end = 0;
	verdict = strrchr(text, '\n');
	snprintf(message + used, sizeof(message) - used, " (%s)", verdict ? verdict + 1 : text);
}

static void keep_first(const char *text)
{
	const char *begin = strncmp(text, "libbpf: ", 8) ? text : text + 8;

	if (!message[0])
		snprintf(message, sizeof(message), "%.*s", (int)strcspn(begin, "\n"), begin);
}

__attribute__((format(printf, 2, 0))) static int keep_message(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	autofree char *text = NULL;

	/* Thousands of messages of a start are for --verbose alone. */
	if (level != LIBBPF_WARN && !log_is_verbose())
		return 0;
	if (vasprintf(&text, format, args) < 0)
		return 0;
	if (*text)
		text[strlen(text) - 1] = 0; /* the newline that ends every message of libbpf */
	log_debug("%s", text + (strlen(text) > LONGEST_SHOWN ? strlen(text) - LONGEST_SHOWN : 0));
	if (level != LIBBPF_WARN)
		return 0;
	if (strstr(text, "-- BEGIN PROG LOAD LOG"))
		keep_verdict(text);
	else
		keep_first(text);
	return 0;
}

void loader_message_begin(void)
{
	libbpf_set_print(keep_message);
	message[0] = 0;
}

const char *loader_message(void)
{
	return message;
}

bool loader_message_blames(const char *program)
{
	char begin[64];
	int length = snprintf(begin, sizeof(begin), "prog '%s': ", program);

	return !strncmp(message, begin, (size_t)length);
}
