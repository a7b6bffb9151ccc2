/* SPDX-License-Identifier: MIT */
/*
 * Numbers and durations in options and requests. The lab server is the truth for lib/, which has
 * its own parsers: it shares only clocks and constants.
 */
#ifndef LAB_NUMBER_H
#define LAB_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Parse a whole decimal number from 0 to @max. -EINVAL: not a number; -ERANGE: above @max. */
int number_parse(const char *text, size_t length, uint64_t max, uint64_t *ret_value);

/*
 * Parse a decimal number with ns, us, ms or s; without a unit, seconds. Errors as above, @max in
 * ns.
 */
int number_parse_duration(const char *text, size_t length, uint64_t max_ns, uint64_t *ret_ns);

#endif
