// SPDX-License-Identifier: MIT
/*
 * A mistyped argument that was ignored would give another answer than the client asked for, with nothing that says so.
 */
#include "query.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "sojourn/cleanup.h"

#define NOT_TAKEN "is no argument of this route; GET / lists them"

static const struct {
	const char *name;
	enum http_argument argument;
	size_t at;
} arguments[] = {
	{"lease", HTTP_LEASE, offsetof(struct http_query, lease)},
	{"last", HTTP_LAST, offsetof(struct http_query, last)},
	{"step", HTTP_STEP, offsetof(struct http_query, step)},
	{"port", HTTP_PORT, offsetof(struct http_query, port)},
};

static const char **value_of(struct http_query *query, size_t i)
{
	return (const char **)((char *)query + arguments[i].at);
}

/* Copy a client's text, so that it needs no escaping in JSON. */
static void show(const char *name, char shown[HTTP_ARGUMENT_SHOWN])
{
	size_t i = 0;

	if (!*name)
		name = "?";
	for (; name[i] && i + 1 < HTTP_ARGUMENT_SHOWN; i++)
		shown[i] =
			isalnum((unsigned char)name[i]) || strchr("_-.[]", name[i]) ? name[i] : '?';
	shown[i] = '\0';
}

void http_query_take(struct http_query *query, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(arguments); i++) {
		if (strcmp(arguments[i].name, name) != 0)
			continue;
		query->twice |= query->given & arguments[i].argument;
		query->given |= arguments[i].argument;
		*value_of(query, i) = value ? value : "";
		return;
	}
	if (!*query->unknown)
		show(name, query->unknown);
}

const char *http_query_refusal(const struct http_query *query, unsigned int takes,
			       const char **ret_name)
{
	unsigned int untaken = query->given & ~takes, wrong = untaken | query->twice;

	if (takes & HTTP_ANY)
		return NULL;
	*ret_name = query->unknown;
	for (size_t i = 0; !*query->unknown && i < ARRAY_SIZE(arguments); i++) {
		*ret_name = arguments[i].name;
		if (wrong & arguments[i].argument)
			return untaken & arguments[i].argument ? NOT_TAKEN : "is given twice";
	}
	return *query->unknown ? NOT_TAKEN : NULL;
}
