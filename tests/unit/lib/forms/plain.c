// SPDX-License-Identifier: MIT
/*
 * A document may come from anybody, with any text in each of its members. No form of the report has bytes that a
 * terminal obeys, or that hide or reverse other text.
 */
#include "unit.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/autojson.h"
#include "sojourn/report.h"
#include "support/runs.h"

/* ESC and BEL, CSI as one character (C1), right-to-left, DEL. */
#define EVIL "\033]0;x\007\033[31m\302\23331m\342\200\256evil\177"

enum form {
	FORM_TEXT,
	FORM_CSV,
	FORM_COUNT,
};

static char *render(struct run *run, enum form form)
{
	const struct report_options options = {.verbose = true};
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	if (form == FORM_CSV)
		(void)report_csv(run, file); /* some documents have no figures */
	else
		assert_int_equal(report_text(run, &options, file), 0);
	fclose(file);
	return text;
}

static void check_plain(const char *text, const char *member, enum form form)
{
	static const char *const forbidden[] = {"\302\233", "\342\200\256", "\177"};

	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' && *c != '\n' && !(*c == '\r' && c[1] == '\n'))
			fail_msg("form %d prints byte %d of %s", form, *c, member);
	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
		if (strstr(text, forbidden[i]))
			fail_msg("form %d prints a control of %s", form, member);
}

/* Return whether the document is accepted with this text. */
static bool check_document(const json_t *document, const char *member)
{
	autofree char *text = json_dumps(document, 0), *error = NULL;
	autorun struct run *run = NULL;

	assert_non_null(text);
	if (run_from_json(text, strlen(text), &run, &error))
		return false;
	for (enum form form = 0; form < FORM_COUNT; form++) {
		autofree char *shown = render(run, form);

		check_plain(shown, member, form);
	}
	return true;
}

/* Put the text into each place that has one, or none, and return how many documents are accepted. */
static size_t try_each(const json_t *document, json_t *place)
{
	static const char evil[] = EVIL;
	const char *name;
	json_t *value;
	size_t count = 0, i;
	void *next;

	json_object_foreach_safe(place, next, name, value)
	{
		autojson json_t *before = json_incref(value);

		if (!json_is_string(value) && !json_is_null(value)) {
			count += try_each(document, value);
			continue;
		}
		json_object_set_new(place, name, json_string(evil));
		count += check_document(document, name);
		json_object_set(place, name, before);
	}
	for (i = 0; i < json_array_size(place) && i < 2; i++) {
		autojson json_t *before = json_incref(json_array_get(place, i));

		if (!json_is_string(before)) {
			count += try_each(document, json_array_get(place, i));
			continue;
		}
		json_array_set_new(place, i, json_string(evil));
		count += check_document(document, "a list");
		json_array_set(place, i, before);
	}
	return count;
}

static void no_form_prints_controls(void **state)
{
	autorun struct run *run = support_full_run();
	autofree char *text = run_to_json(run);
	autojson json_t *document = json_loads(text, 0, NULL);

	assert_non_null(document);
	assert_true(try_each(document, document) > 100);
}

/* A proposed route is offered as an option to be copied into a shell. */
static void only_plain_routes_are_offered(void **state)
{
	autorun struct run *run = support_full_run();
	struct run_proposed *proposed = &run->services[0].proposed;
	autofree char *text = NULL;

	assert_true(proposed->count > 0);
	free(proposed->list[0].route);
	proposed->list[0].route = strdup("/x'; reboot; '");
	text = render(run, FORM_TEXT);
	assert_null(strstr(text, "--route '/x"));
	free(proposed->list[0].route);
	proposed->list[0].route = strdup("/api/v1_a/*");
	free(text);
	text = render(run, FORM_TEXT);
	assert_non_null(strstr(text, "--route '/api/v1_a/*'"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_form_prints_controls),
		cmocka_unit_test(only_plain_routes_are_offered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
