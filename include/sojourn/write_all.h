/* SPDX-License-Identifier: MIT */
/* Writing to a descriptor until everything is written. */
#ifndef SOJOURN_WRITE_ALL_H
#define SOJOURN_WRITE_ALL_H

#include <stddef.h>

/*
 * Write all @length bytes, also if signals interrupt. 0, or -errno after a part of them. @ret_written gets the length
 * of that part; it may be NULL.
 */
int write_all(int fd, const void *bytes, size_t length, size_t *ret_written);

#endif
