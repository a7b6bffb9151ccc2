/* SPDX-License-Identifier: MIT */
/* The intervals of two drivers' documents made one: inside of lib/. */
#ifndef LIB_RUN_INTERVALS_H
#define LIB_RUN_INTERVALS_H

#include "sojourn/run.h"

/*
 * Adds the intervals of @other to those of @driver, each to the nearest one by wall clock; none are left
 * if either has none. -EINVAL with a sentence in @ret_error if their lengths do not fit; -ENOMEM.
 */
int intervals_merge(struct run_driver *driver, struct run_driver *other, char **ret_error);

#endif
