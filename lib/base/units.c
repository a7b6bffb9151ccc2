// SPDX-License-Identifier: MIT
/* Durations, counts and sizes: parsed exactly in integers, formatted for people. */
#include "sojourn/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

struct unit {
	const char *suffix;
	uint64_t factor;
};

/* clang-format off */
static const struct unit duration_units[] = {
	{"", NSEC_PER_SEC},
	{"ns", 1},
	{"us", NSEC_PER_USEC},
	{"\u00b5s", NSEC_PER_USEC}, /* MICRO SIGN */
	{"\u03bcs", NSEC_PER_USEC}, /* GREEK SMALL LETTER MU, from some keyboards */
	{"ms", NSEC_PER_MSEC},
	{"s", NSEC_PER_SEC},
	{"m", 60 * NSEC_PER_SEC},
	{"h", 3600 * NSEC_PER_SEC},
};

static const struct unit count_units[] = {
	{"", 1},
	{"k", 1000},
	{"M", 1000000},
	{"G", 1000000000},
};
/* clang-format on */

#define FRACTION_DIGITS 18
#define FRACTION_ONE	1000000000000000000ULL /* 10^FRACTION_DIGITS */

/* A decimal number without sign or exponent: whole + fraction / FRACTION_ONE. */
struct decimal {
	uint64_t whole;
	uint64_t fraction;
	bool too_large;
};

/* Take digits; -EINVAL without one. */
static int scan_whole(const char **text, struct decimal *number)
{
	const char *c = *text;

	for (; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(number->whole, 10, &number->whole) ||
		    __builtin_add_overflow(number->whole, (uint64_t)(*c - '0'), &number->whole))
			number->too_large = true;
	if (c == *text)
		return -EINVAL;
	*text = c;
	return 0;
}

/* Digits after the 18th are smaller than any unit resolves: skip them. */
static int scan_fraction(const char **text, struct decimal *number)
{
	uint64_t place = FRACTION_ONE;
	const char *c = *text;

	for (; *c >= '0' && *c <= '9'; c++) {
		place /= 10;
		number->fraction += place * (uint64_t)(*c - '0');
	}
	if (c == *text)
		return -EINVAL;
	*text = c;
	return 0;
}

static int scan_decimal(const char **text, struct decimal *ret_number)
{
	struct decimal number = {0};

	if (**text != '.' && scan_whole(text, &number))
		return -EINVAL;
	if (**text == '.') {
		(*text)++;
		if (scan_fraction(text, &number))
			return -EINVAL;
	}
	*ret_number = number;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, size_t count, const char *suffix)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(units[i].suffix, suffix))
			return &units[i];
	return NULL;
}

/* @ret_rest: the fraction, in units of 1 / FRACTION_ONE. */
static int parse_scaled(const char *text, const struct unit *units, size_t count,
			uint64_t *ret_value, uint64_t *ret_rest)
{
	unsigned __int128 part, total;
	const struct unit *unit;
	struct decimal number;

	if (scan_decimal(&text, &number))
		return -EINVAL;
	unit = find_unit(units, count, text);
	if (!unit)
		return -EINVAL;
	part = (unsigned __int128)number.fraction * unit->factor;
	total = (unsigned __int128)number.whole * unit->factor + part / FRACTION_ONE;
	if (number.too_large || total > INT64_MAX)
		return -ERANGE;
	*ret_value = (uint64_t)total;
	*ret_rest = (uint64_t)(part % FRACTION_ONE);
	return 0;
}

int units_parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t ns, rest;
	int err = parse_scaled(text, duration_units, ARRAY_SIZE(duration_units), &ns, &rest);

	if (err)
		return err;
	*ret_ns = ns + (rest >= FRACTION_ONE / 2);
	return 0;
}

int units_parse_count(const char *text, uint64_t *ret_count)
{
	uint64_t count, rest;
	int err = parse_scaled(text, count_units, ARRAY_SIZE(count_units), &count, &rest);

	if (err)
		return err;
	/* Half a request is not a count. */
	if (rest)
		return -EINVAL;
	*ret_count = count;
	return 0;
}

int units_parse_count_of(const char *text, size_t length, uint64_t *ret_count)
{
	char copy[32];

	if (length >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%.*s", (int)length, text);
	return units_parse_count(copy, ret_count);
}

int units_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
	struct decimal number = {0};

	if (scan_whole(&text, &number) || *text)
		return -EINVAL;
	if (number.too_large || number.whole < min || number.whole > max)
		return -ERANGE;
	*ret_value = number.whole;
	return 0;
}

char *units_format_digits(double value, const char *unit, char *buffer, size_t size)
{
	int decimals = fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;

	snprintf(buffer, size, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
	return buffer;
}

char *units_format_time(double ns, char *buffer, size_t size)
{
	static const char *const names[] = {"ns", "\u00b5s", "ms", "s"};
	size_t unit = 0;

	/* Half a nanosecond or less prints as zero, without a sign. */
	if (fabs(ns) <= 0.5)
		ns = 0;
	/* Print 1000 of one unit as 1 of the next. */
	for (; unit < ARRAY_SIZE(names) - 1 && fabs(ns) >= 999.5; unit++)
		ns /= 1000;
	if (unit)
		return units_format_digits(ns, names[unit], buffer, size);
	snprintf(buffer, size, "%.0f ns", ns);
	return buffer;
}

char *units_format_share(double percent, char *buffer, size_t size)
{
	if (percent > 0 && percent < 0.05)
		snprintf(buffer, size, "<0.1 %%");
	else if (fabs(percent) < 9.95)
		snprintf(buffer, size, "%.1f %%", fabs(percent) < 0.05 ? 0 : percent);
	else if (percent < 100 && percent >= 99.5)
		snprintf(buffer, size, "%.1f %%", fmin(percent, 99.9));
	else
		snprintf(buffer, size, "%.0f %%", percent);
	return buffer;
}

char *units_format_duration(double ns, char *buffer, size_t size)
{
	static const char *const names[] = {"ns", "\u00b5s", "ms", "s"};
	size_t unit = 0;

	/* Print 1000 of one unit as 1 of the next. */
	for (; unit < ARRAY_SIZE(names) - 1 && fabs(ns) >= 999.5; unit++)
		ns /= 1000;
	/* "%.3g", but never with an exponent. */
	if (fabs(ns) >= 999.5)
		snprintf(buffer, size, "%.0f %s", ns, names[unit]);
	else if (fabs(ns) < 0.001)
		snprintf(buffer, size, "0 %s", names[unit]);
	else
		snprintf(buffer, size, "%.3g %s", ns, names[unit]);
	return buffer;
}

char *units_format_endpoint(const uint32_t address[static 4], uint16_t port, char *buffer,
			    size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct in6_addr v6;

	memcpy(&v6, address, sizeof(v6));
	if (IN6_IS_ADDR_V4MAPPED(&v6)) {
		inet_ntop(AF_INET, &v6.s6_addr[12], host, sizeof(host));
		snprintf(buffer, size, "%s:%u", host, port);
	} else {
		inet_ntop(AF_INET6, &v6, host, sizeof(host));
		snprintf(buffer, size, "[%s]:%u", host, port);
	}
	return buffer;
}

char *units_format_count(uint64_t count, char *buffer, size_t size)
{
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%ju", (uintmax_t)count), used = 0;

	if (!size)
		return buffer;
	for (size_t i = 0; i < length && used + 1 < size; i++) {
		if (i && (length - i) % 3 == 0 && used + 2 < size)
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
	return buffer;
}
