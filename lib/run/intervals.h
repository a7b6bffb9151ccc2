/* SPDX-License-Identifier: MIT */
/* Merges the intervals of two drivers' documents, within lib/. */
#ifndef LIB_RUN_INTERVALS_H
#define LIB_RUN_INTERVALS_H

#include "sojourn/run.h"

/*
 * Add the intervals of @other to those of @driver, each to the nearest by wall clock. If either has
 * none, remove all. -EINVAL with @ret_error if their lengths do not match; -ENOMEM.
 */
int intervals_merge(struct run_driver *driver, struct run_driver *other, char **ret_error);

#endif
