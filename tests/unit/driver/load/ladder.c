// SPDX-License-Identifier: MIT
/* Ladders as typed, valid and invalid. */
#include "driver/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "load/ladder.h"
#include "sojourn/cleanup.h"

static void test_ladders(void **state)
{
	static const struct {
		const char *text;
		bool of_rates;
		size_t count;
		uint64_t loads[8];
	} ladders[] = {
		{"1..64", false, 7, {1, 2, 4, 8, 16, 32, 64}},
		{"1..50", false, 7, {1, 2, 4, 8, 16, 32, 50}},
		{"1..8x1.5", false, 5, {1, 2, 3, 5, 8}},
		{"100..900+400", false, 3, {100, 500, 900}},
		{"rate:1k..4k+1k", true, 4, {1000, 2000, 3000, 4000}},
		{"connections:1,2,8", false, 3, {1, 2, 8}},
		{"rate:1..1G", true, 31, {1, 2, 4, 8, 16, 32, 64, 128}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ladders); i++) {
		autofree char *error = NULL;
		struct ladder ladder;

		assert_int_equal(ladder_parse(ladders[i].text, &ladder, &error), 0);
		assert_int_equal(ladder.of_rates, ladders[i].of_rates);
		assert_int_equal(ladder.count, ladders[i].count);
		for (size_t j = 0; j < 8 && j < ladders[i].count && ladders[i].loads[j]; j++)
			assert_int_equal(ladder.loads[j], ladders[i].loads[j]);
	}
}

static void test_refusals(void **state)
{
	static const char *const texts[] = {
		"",	"1",	  "1,2",   "1,2,2",    "4,2,8",	  "1..2",	"0..8",
		"8..1", "1..8x1", "1..8x", "1..8+0",   "1..8x-2", "1..8xnan",	"1..2000000",
		"a..b", "1,,3",	  "rate:", "1..8 x 2", "1..80+1", "rate:1..2G", "rates:1..8",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		autofree char *error = NULL;
		struct ladder ladder;

		assert_int_equal(ladder_parse(texts[i], &ladder, &error), -EINVAL);
		assert_non_null(strstr(error, "--ladder: '"));
		assert_non_null(strstr(error, "1..512x1.5"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ladders),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
