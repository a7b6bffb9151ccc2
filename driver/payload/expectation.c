// SPDX-License-Identifier: MIT
/* Which responses count as good. Neighbours: options/request.c, engine/http/http.c. */
#include "expectation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "detail.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

static int parse_status(const char *item, struct expectation *expectation, char **ret_error)
{
	uint16_t *added;
	uint64_t status;

	if (units_parse_u64(item, 100, 599, &status))
		return refuse(ret_error,
			      "--expect-status: '%s' is not a status from 100 to 599; write them "
			      "like 200,204",
			      item);
	added = ARRAY_APPEND(expectation->statuses, expectation->status_count);
	if (!added)
		return -ENOMEM;
	*added = (uint16_t)status;
	return 0;
}

int expectation_parse_status(struct expectation *expectation, const char *value, char **ret_error)
{
	autofree char *copy = strdup(value);
	char *rest = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	if (expectation->inherited)
		expectation->status_count = 0;
	expectation->inherited = false;
	while (!err && (item = strsep(&rest, ",")))
		err = parse_status(item, expectation, ret_error);
	return err;
}

/* Return how many bytes of the text match after @c, if @matched did before it. */
static size_t step(const struct expectation *expectation, size_t matched, char c)
{
	while (matched && expectation->body[matched] != c)
		matched = expectation->fallback[matched];
	return matched + (expectation->body[matched] == c);
}

int expectation_parse_body(struct expectation *expectation, const char *value, char **ret_error)
{
	size_t length = strlen(value), matched = 0;
	size_t *fallback;

	if (!length)
		return refuse(ret_error, "--expect-body: the text is empty; give a part of the "
					 "body that is expected");
	if (expectation->body && !expectation->body_inherited)
		return refuse(ret_error, "--expect-body: '%s' follows '%s'; one text is allowed",
			      value, expectation->body);
	fallback = calloc(length + 1, sizeof(*fallback));
	if (!fallback)
		return -ENOMEM;
	free(expectation->fallback);
	expectation->fallback = fallback;
	expectation->body_inherited = false;
	expectation->body = value;
	expectation->body_length = length;
	for (size_t i = 1; i < length; i++) {
		matched = step(expectation, matched, value[i]);
		fallback[i + 1] = matched;
	}
	return 0;
}

void expectation_clear(struct expectation *expectation)
{
	free(expectation->statuses);
	free(expectation->fallback);
	*expectation = (struct expectation){0};
}

void expectation_feed(const struct expectation *expectation, struct expectation_search *search,
		      const char *data, size_t length)
{
	if (!expectation->body)
		return;
	for (size_t i = 0; i < length && !search->found; i++) {
		search->matched = step(expectation, search->matched, data[i]);
		search->found = search->matched == expectation->body_length;
	}
}

static bool is_expected_status(const struct expectation *expectation, uint16_t status)
{
	for (size_t i = 0; i < expectation->status_count; i++)
		if (expectation->statuses[i] == status)
			return true;
	return false;
}

enum verdict expectation_judge(const struct expectation *expectation,
			       const struct expectation_search *search, uint16_t status)
{
	if (expectation->status_count && !is_expected_status(expectation, status))
		return VERDICT_UNEXPECTED;
	if (!expectation->status_count && status >= 400)
		return VERDICT_BAD_STATUS;
	return expectation->body && !search->found ? VERDICT_UNEXPECTED : VERDICT_GOOD;
}

int expectation_statuses(const struct expectation *expectation, char **ret_text)
{
	char text[1024] = "";

	for (size_t i = 0; i < expectation->status_count; i++)
		detail_add(text, sizeof(text), "%s%u", i ? "," : "", expectation->statuses[i]);
	*ret_text = *text ? strdup(text) : NULL;
	return *text && !*ret_text ? -ENOMEM : 0;
}

void expectation_tell(const struct expectation *expectation,
		      const struct expectation_search *search, uint16_t status, char *text,
		      size_t size)
{
	bool expected =
		expectation->status_count ? is_expected_status(expectation, status) : status < 400;

	if (!expected) {
		detail_add(text, size, "status %u", status);
		for (size_t i = 0; i < expectation->status_count; i++)
			detail_add(text, size, "%s%u", i ? "," : ", expected ",
				   expectation->statuses[i]);
	} else if (expectation->body && !search->found) {
		detail_add(text, size, "no ");
		detail_add_bytes(text, size, expectation->body, expectation->body_length);
		detail_add(text, size, " in the body");
	}
}
