// SPDX-License-Identifier: MIT
/* lib/base/units.c: durations, sizes and counts as typed and as printed. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"

#define UNTOUCHED 4711

struct parse_case {
	const char *text;
	int err;
	uint64_t value;
};

/* clang-format off */
static const struct parse_case durations[] = {
	{"0", 0, 0}, {"1", 0, NSEC_PER_SEC}, {"1.5s", 0, 1500000000}, {"1.5", 0, 1500000000},
	{"10ms", 0, 10000000}, {"0.25ms", 0, 250000}, {"7us", 0, 7000}, {"7\u00b5s", 0, 7000},
	{"7\u03bcs", 0, 7000}, {"42ns", 0, 42}, {"2m", 0, 120000000000}, {"1h", 0, 3600000000000},
	{".5s", 0, 500000000}, {"007s", 0, 7000000000}, {"0.1s", 0, 100000000},
	{"1.4ns", 0, 1}, {"1.5ns", 0, 2}, {"0.3333333333333333333333333h", 0, 1200000000000},
	{"9223372036854775807ns", 0, INT64_MAX}, {"2562047h", 0, 9223369200000000000},
	{"9223372036854775808ns", -ERANGE, 0}, {"2562048h", -ERANGE, 0},
	{"99999999999h", -ERANGE, 0}, {"99999999999999999999999999s", -ERANGE, 0},
	{"18446744073709551616ns", -ERANGE, 0},
	{"", -EINVAL, 0}, {" ", -EINVAL, 0}, {"s", -EINVAL, 0}, {"5x", -EINVAL, 0},
	{"-1", -EINVAL, 0}, {"+1", -EINVAL, 0}, {"1e9s", -EINVAL, 0}, {"1.s", -EINVAL, 0},
	{".", -EINVAL, 0}, {".s", -EINVAL, 0}, {"1..5s", -EINVAL, 0}, {"1,5s", -EINVAL, 0},
	{" 1s", -EINVAL, 0}, {"1 s", -EINVAL, 0}, {"1s ", -EINVAL, 0}, {"1ss", -EINVAL, 0},
	{"1S", -EINVAL, 0}, {"0x10", -EINVAL, 0}, {"inf", -EINVAL, 0}, {"nan", -EINVAL, 0},
	{"1\xb5s", -EINVAL, 0},
};

static const struct parse_case counts[] = {
	{"0", 0, 0}, {"1000", 0, 1000}, {"1k", 0, 1000}, {"2M", 0, 2000000}, {"3G", 0, 3000000000},
	{"1.5k", 0, 1500}, {"0.001k", 0, 1}, {"1.0", 0, 1},
	{"9223372036854775807", 0, INT64_MAX},
	{"9223372036854775808", -ERANGE, 0}, {"9999999999G", -ERANGE, 0},
	{"1.5", -EINVAL, 0}, {"0.0001k", -EINVAL, 0}, {"", -EINVAL, 0}, {"k", -EINVAL, 0},
	{"1m", -EINVAL, 0}, {"-5", -EINVAL, 0}, {"1 k", -EINVAL, 0}, {"1kk", -EINVAL, 0},
	{"1e3", -EINVAL, 0}, {"x", -EINVAL, 0},
};

static const struct parse_case numbers[] = { /* allowed: 5 … 100 */
	{"5", 0, 5}, {"100", 0, 100}, {"0042", 0, 42},
	{"4", -ERANGE, 0}, {"101", -ERANGE, 0}, {"18446744073709551616", -ERANGE, 0},
	{"99999999999999999999999", -ERANGE, 0},
	{"", -EINVAL, 0}, {"5x", -EINVAL, 0}, {"-6", -EINVAL, 0}, {"6.0", -EINVAL, 0},
	{" 6", -EINVAL, 0}, {"6 ", -EINVAL, 0}, {"+6", -EINVAL, 0}, {"x", -EINVAL, 0},
};
/* clang-format on */

static int parse_number(const char *text, uint64_t *ret_value)
{
	return units_parse_u64(text, 5, 100, ret_value);
}

static void check_cases(const struct parse_case *cases, size_t count,
			int (*parse)(const char *, uint64_t *))
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = UNTOUCHED;
		int err = parse(cases[i].text, &value);

		if (err != cases[i].err || value != (err ? UNTOUCHED : cases[i].value))
			fail_msg("\"%s\": error %d, value %ju; not %d, %ju", cases[i].text, err,
				 (uintmax_t)value, cases[i].err, (uintmax_t)cases[i].value);
	}
}

static void durations_are_parsed(void **state)
{
	check_cases(durations, ARRAY_SIZE(durations), units_parse_duration);
}

static void counts_are_parsed(void **state)
{
	check_cases(counts, ARRAY_SIZE(counts), units_parse_count);
}

static void numbers_are_parsed(void **state)
{
	uint64_t value = 0;

	check_cases(numbers, ARRAY_SIZE(numbers), parse_number);
	assert_int_equal(units_parse_u64("18446744073709551615", 0, UINT64_MAX, &value), 0);
	assert_true(value == UINT64_MAX);
}

struct format_case {
	double value;
	const char *text;
};

/* clang-format off */
static const struct format_case formatted_durations[] = {
	{0, "0 ns"}, {1, "1 ns"}, {0.5, "0.5 ns"}, {999, "999 ns"}, {999.6, "1 \u00b5s"},
	{6100, "6.1 \u00b5s"}, {406000, "406 \u00b5s"}, {275149, "275 \u00b5s"},
	{999499, "999 \u00b5s"}, {999501, "1 ms"}, {20e6, "20 ms"}, {1.5e9, "1.5 s"},
	{59.94e9, "59.9 s"}, {999.96e9, "1000 s"}, {12345e9, "12345 s"}, {-12300, "-12.3 \u00b5s"},
};

static const struct format_case formatted_times[] = {
	{0, "0 ns"}, {-0.4, "0 ns"}, {1, "1 ns"}, {999, "999 ns"}, {999.6, "1.00 \u00b5s"},
	{6100, "6.10 \u00b5s"}, {9994, "9.99 \u00b5s"}, {9996, "10.0 \u00b5s"}, {99949, "99.9 \u00b5s"},
	{99951, "100 \u00b5s"}, {999501, "1.00 ms"}, {2e9, "2.00 s"}, {12345e9, "12345 s"}, {-12300, "-12.3 \u00b5s"},
};
/* clang-format on */

static void check_formats(const struct format_case *cases, size_t count,
			  char *(*format)(double, char *, size_t))
{
	char buffer[64], small[4];

	for (size_t i = 0; i < count; i++) {
		assert_ptr_equal(format(cases[i].value, buffer, sizeof(buffer)), buffer);
		assert_string_equal(buffer, cases[i].text);
		assert_true(strlen(format(cases[i].value, small, sizeof(small))) < sizeof(small));
	}
}

static void durations_are_formatted(void **state)
{
	check_formats(formatted_durations, ARRAY_SIZE(formatted_durations), units_format_duration);
	check_formats(formatted_times, ARRAY_SIZE(formatted_times), units_format_time);
}

static void counts_are_formatted(void **state)
{
	static const struct {
		uint64_t count;
		const char *text;
	} cases[] = {
		{0, "0"},
		{7, "7"},
		{999, "999"},
		{1000, "1,000"},
		{116785, "116,785"},
		{1234567, "1,234,567"},
		{UINT64_MAX, "18,446,744,073,709,551,615"},
	};
	char buffer[64], small[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_string_equal(units_format_count(cases[i].count, buffer, sizeof(buffer)),
				    cases[i].text);
		assert_true(strlen(units_format_count(cases[i].count, small, sizeof(small))) <
			    sizeof(small));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_are_parsed), cmocka_unit_test(counts_are_parsed),
		cmocka_unit_test(numbers_are_parsed),	cmocka_unit_test(durations_are_formatted),
		cmocka_unit_test(counts_are_formatted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
