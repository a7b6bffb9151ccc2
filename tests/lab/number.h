/* SPDX-License-Identifier: MIT */
/*
 * Numbers and durations in options and requests. lib/ has parsers of its own; the lab server shares
 * no code with what it is the truth for, clocks and constants excepted.
 */
#ifndef LAB_NUMBER_H
#define LAB_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* A whole decimal number from 0 to @max. -EINVAL: not a number; -ERANGE: above @max. */
int number_parse(const char *text, size_t length, uint64_t max, uint64_t *ret_value);

/* A decimal number with ns, us, ms or s; without one it is seconds. Errors as above, @max in ns. */
int number_parse_duration(const char *text, size_t length, uint64_t max_ns, uint64_t *ret_ns);

#endif
