/* SPDX-License-Identifier: MIT */
/* Numbers for people: "1.5s" in, "406 µs" out. */
#ifndef SOJOURN_UNITS_H
#define SOJOURN_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Parse a decimal number and ns, us, µs, ms, s, m or h; a bare number is seconds. Return -EINVAL if
 * it is not a duration, -ERANGE beyond 2^63 ns.
 */
int units_parse_duration(const char *text, uint64_t *ret_ns);

/* Parse a count with an optional suffix k, M or G (powers of 1000). Errors as above. */
int units_parse_count(const char *text, uint64_t *ret_count);

/* Parse the first @length characters of a longer text likewise. */
int units_parse_count_of(const char *text, size_t length, uint64_t *ret_count);

/* Parse a whole decimal number from @min to @max. -EINVAL: not a number; -ERANGE: outside. */
int units_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* Write a measured @value with three significant digits, or more if it is larger: "2.00 ms". */
char *units_format_digits(double value, const char *unit, char *buffer, size_t size);

/* Write a measured @ns likewise, in ns (whole), µs, ms or s: "6.10 µs". */
char *units_format_time(double ns, char *buffer, size_t size);

/* Write a share: "69 %", with a decimal near the ends: "7.3 %", "99.9 %". Only exact values print as 0 or 100. */
char *units_format_share(double percent, char *buffer, size_t size);

/* Write a given @ns with no more digits than it takes, and at most three: "5 s", "1.5 s". */
char *units_format_duration(double ns, char *buffer, size_t size);

/* Write @count with separated thousands: "116,785". */
char *units_format_count(uint64_t count, char *buffer, size_t size);

/* Room for such a text in the calling block: an argument needs no variable. The text lasts as long as the block. */
#define UNITS_TEXT 32
#define UNITS_ROOM ((char[UNITS_TEXT]){0})

#define as_time(ns)	  units_format_time((ns), UNITS_ROOM, UNITS_TEXT)
#define as_share(percent) units_format_share((percent), UNITS_ROOM, UNITS_TEXT)
#define as_setting(ns)	  units_format_duration((ns), UNITS_ROOM, UNITS_TEXT)
#define as_count(count)	  units_format_count((count), UNITS_ROOM, UNITS_TEXT)

/* Write an address and port of struct flow: "192.0.2.1:80", "[2001:db8::1]:80" (RFC 3986). */
char *units_format_endpoint(const uint32_t address[static 4], uint16_t port, char *buffer,
			    size_t size);

#endif
