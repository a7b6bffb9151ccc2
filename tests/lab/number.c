// SPDX-License-Identifier: MIT
/* Numbers and durations in options and requests; exact, without floating point. */
#include "number.h"

#include <errno.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

int number_parse(const char *text, size_t length, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!length)
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return -ERANGE;
	}
	if (value > max)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static const struct {
	const char *name;
	uint64_t ns;
} duration_units[] = {
	{"", NSEC_PER_SEC},    {"s", NSEC_PER_SEC}, {"ms", NSEC_PER_MSEC},
	{"us", NSEC_PER_USEC}, {"ns", 1},
};

static uint64_t unit_ns(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(duration_units); i++)
		if (strlen(duration_units[i].name) == length &&
		    !memcmp(duration_units[i].name, text, length))
			return duration_units[i].ns;
	return 0;
}

/* Parse the digits after the point into ns; finer digits are cut off. -EINVAL: no digits. */
static int parse_fraction(const char *digits, size_t count, uint64_t unit, uint64_t *ret_ns)
{
	uint64_t ns = 0;

	if (!count)
		return -EINVAL;
	for (size_t i = 0; i < count && unit >= 10; i++) {
		unit /= 10;
		ns += (uint64_t)(digits[i] - '0') * unit;
	}
	*ret_ns = ns;
	return 0;
}

static size_t count_digits(const char *text, size_t length)
{
	size_t count = 0;

	while (count < length && text[count] >= '0' && text[count] <= '9')
		count++;
	return count;
}

int number_parse_duration(const char *text, size_t length, uint64_t max_ns, uint64_t *ret_ns)
{
	size_t whole = count_digits(text, length), end = whole, fraction = 0;
	uint64_t value, unit, ns, fraction_ns = 0;
	int err;

	if (whole < length && text[whole] == '.') {
		fraction = count_digits(text + whole + 1, length - whole - 1);
		end = whole + 1 + fraction;
	}
	unit = unit_ns(text + end, length - end);
	if (!unit)
		return -EINVAL;
	err = number_parse(text, whole, UINT64_MAX, &value);
	if (!err && end > whole)
		err = parse_fraction(text + whole + 1, fraction, unit, &fraction_ns);
	if (err)
		return err;
	if (__builtin_mul_overflow(value, unit, &ns) ||
	    __builtin_add_overflow(ns, fraction_ns, &ns) || ns > max_ns)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}
