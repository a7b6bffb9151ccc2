/* SPDX-License-Identifier: MIT */
/* Small files of /proc and /sys, whose paths have numbers in them. */
#ifndef SOJOURN_PROCFS_H
#define SOJOURN_PROCFS_H

#include <stddef.h>
#include <stdio.h>

/* Open a file to read, by a path of at most 511 bytes. NULL: errno says why. */
FILE *procfs_open(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Read up to @size - 1 bytes of @file, end them with a zero, and close it. Return their number, or
 * -errno; @file may be NULL: by errno.
 */
int procfs_read(FILE *file, char *ret_text, size_t size);

#endif
