/* SPDX-License-Identifier: MIT */
/* Numbers as people write and read them: "1.5s" in, "406 µs" out. */
#ifndef SOJOURN_UNITS_H
#define SOJOURN_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Parses a duration: a decimal number followed by ns, us, µs, ms, s, m or h; a bare number is
 * seconds. 0 on success, -EINVAL if it is not a duration, -ERANGE if it does not fit in 2^63 ns.
 */
int units_parse_duration(const char *text, uint64_t *ret_ns);

/* Parses a count with an optional suffix k, M or G (powers of 1000). Errors as above. */
int units_parse_count(const char *text, uint64_t *ret_count);

/* The same of the first @length characters of a longer text. */
int units_parse_count_of(const char *text, size_t length, uint64_t *ret_count);

/* Parses a whole decimal number between min and max. -EINVAL: not a number; -ERANGE: outside. */
int units_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* Writes @ns with one of ns, µs, ms, s and three significant digits at most, as all reports: "6.1 µs". */
char *units_format_duration(double ns, char *buffer, size_t size);

/* Writes @count with thousands separated: "116,785". */
char *units_format_count(uint64_t count, char *buffer, size_t size);

/*
 * Writes the address and port of one side of a connection, as struct flow has them: "192.0.2.1:80",
 * "[2001:db8::1]:80" (RFC 3986).
 */
char *units_format_endpoint(const uint32_t address[static 4], uint16_t port, char *buffer,
			    size_t size);

#endif
