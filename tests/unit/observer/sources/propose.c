// SPDX-License-Identifier: MIT
/* Routes proposed for a sample of paths: prefixes, shares, and words that must never be in one. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sources/propose.h"

static struct route_path paths[ROUTE_PATHS];
static size_t count;

static void add(const char *text)
{
	struct route_path *path = &paths[count++];
	size_t length = strlen(text);

	assert_true(count <= ROUTE_PATHS);
	path->whole = length <= ROUTE_PATH_BYTES;
	path->length = (uint8_t)(path->whole ? length : ROUTE_PATH_BYTES);
	memcpy(path->text, text, path->length);
}

/* Add @number paths, in which a "#" of @form is a number that differs. */
static void add_many(const char *form, unsigned int number)
{
	char text[256];

	for (unsigned int i = 0; i < number; i++) {
		const char *mark = strchr(form, '#');

		if (mark)
			snprintf(text, sizeof(text), "%.*s%u%s", (int)(mark - form), form,
				 7919 * (i + 1), mark + 1);
		else
			snprintf(text, sizeof(text), "%s", form);
		add(text);
	}
}

/* Check the proposals, each with its paths: "/slow 10". */
static void assert_proposed(const char *expected)
{
	struct run_proposed proposed = {0};
	char text[1024] = "";
	size_t used = 0;

	assert_int_equal(propose_routes(paths, count, &proposed), 0);
	for (size_t i = 0; i < proposed.count; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %ju",
					 used ? ", " : "", proposed.list[i].route,
					 (uintmax_t)proposed.list[i].paths);
		free(proposed.list[i].route);
	}
	free(proposed.list);
	memset(paths, 0, sizeof(paths));
	count = 0;
	assert_string_equal(text, expected);
}

static void prefixes_are_as_long_as_they_are_frequent(void **state)
{
	add_many("/api/users/#/orders", 60);
	add_many("/static/app.js", 20);
	add_many("/static/#.js", 15);
	add_many("/", 10);
	add_many("/rare", 3);
	assert_proposed("/api/users/* 60, /static/app.js 20, /static/* 15, / 10");
	add_many("/api/v1/users/#", 50);
	add_many("/api/v1/orders/#", 40);
	add_many("/api/v1", 10);
	assert_proposed("/api/v1/users/* 50, /api/v1/orders/* 40, /api/v1 10");
}

static void too_few_paths_propose_nothing(void **state)
{
	assert_proposed("");
	add_many("/a", PROPOSE_PATHS_LEAST - 1);
	assert_proposed("");
	add_many("/a", PROPOSE_PATHS_LEAST);
	assert_proposed("/a 20");
	add_many("/#", 100);
	assert_proposed("");
}

/* Each of these is the only path, and yet no part of it but "a" is proposed. */
static void identifiers_are_never_proposed(void **state)
{
	static const char *const parts[] = {
		"17",
		"2024-05-01",
		"f47ac10b-58cc-4372-a567-0e02b2c3d479",
		"deadbeef0123",
		"user123",
		"averyveryverylongtokenwithoutdigits",
		"a'; rm -rf ~",
		"%41",
		"a$b",
		"alice@a.example",
		"\"x\"",
		"<b>",
		"a*",
		"\x1b[2J",
		"token=secret",
	};
	char text[256];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		snprintf(text, sizeof(text), "/a/%s", parts[i]);
		add_many(text, 100);
		assert_proposed("/a/* 100");
		snprintf(text, sizeof(text), "/a/%s/b/c", parts[i]);
		add_many(text, 100);
		assert_proposed("/a/* 100");
		snprintf(text, sizeof(text), "/%s", parts[i]);
		add_many(text, 100);
		assert_proposed("");
	}
}

/* Some names are frequent, but most are not: they are names. */
static void names_are_no_prefixes(void **state)
{
	char text[64];

	add_many("/users/alice", 20);
	add_many("/users/bob/photos", 20);
	for (int letter = 'c'; letter <= 'z'; letter++) {
		snprintf(text, sizeof(text), "/users/%cat", letter);
		add(text);
		add(text);
	}
	assert_proposed("/users/* 88");
}

/* Those of gRPC: a package may be long, a word of it may not. */
static void services_of_grpc_are_words(void **state)
{
	add_many("/opentelemetry.proto.collector.trace.v1.TraceService/Send", 30);
	add_many("/test.Echo/Get", 30);
	add_many("/test.Echo/Set", 10);
	assert_proposed(
		"/opentelemetry.proto.collector.trace.v1.TraceService/Send 30, /test.Echo/Get 30, "
		"/test.Echo/Set 10");
	add_many("/a/eyJhbGciOiJub25lIn.eyJzdWIiOiJhbGljZSIsImEiOiJi", 30);
	add_many("/a/b.averyveryverylongtokenwithoutdigits.c", 30);
	assert_proposed("/a/* 60");
}

/* At most eight, and their shares are those of the longest that matches. */
static void proposals_are_few(void **state)
{
	char text[64];

	for (unsigned int i = 0; i < 12; i++) {
		snprintf(text, sizeof(text), "/%c/#", (int)('a' + i));
		add_many(text, 12 + i);
	}
	assert_proposed("/l/* 23, /k/* 22, /j/* 21, /i/* 20, /h/* 19, /g/* 18, /f/* 17, /e/* 16");
}

/* Of a cut path the last part is not known. */
static void a_cut_path_is_a_prefix(void **state)
{
	add_many("/api/abcdefghijklmnopqrstuvwx/abcdefghijklmnopqrstuvwx/abcdefghijk", 30);
	assert_proposed("/api/abcdefghijklmnopqrstuvwx/abcdefghijklmnopqrstuvwx/* 30");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_are_as_long_as_they_are_frequent),
		cmocka_unit_test(too_few_paths_propose_nothing),
		cmocka_unit_test(identifiers_are_never_proposed),
		cmocka_unit_test(names_are_no_prefixes),
		cmocka_unit_test(services_of_grpc_are_words),
		cmocka_unit_test(proposals_are_few),
		cmocka_unit_test(a_cut_path_is_a_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
