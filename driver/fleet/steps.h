/* SPDX-License-Identifier: MIT */
/*
 * The complete steps of a sweep, as its coordinator stores them: a line of JSON, then a document with
 * one step. Or the line alone says that another coordinator has taken up the sweep.
 */
#ifndef DRIVER_FLEET_STEPS_H
#define DRIVER_FLEET_STEPS_H

#include <stddef.h>

#include "sweep/sweep.h"

/* Return the text for step @index; NULL: no memory. */
char *steps_write(const struct run *run, size_t index, const struct run_outcome *outcome);

/*
 * Note that the sweep is taken up after the steps in @past, of @total. *@ret_text is to be stored; NULL:
 * that is stored already. 0 or -ENOMEM.
 */
int steps_note(struct sweep_past *past, size_t total, char **ret_text);

/*
 * Add what was stored, in that order. A step may come once more, then it was repeated. Ignore one
 * that does not follow: those between are missing. -EINVAL with a sentence in @ret_error, -ENOMEM.
 */
int steps_read(struct sweep_past *past, const char *text, char **ret_error);
void steps_clear(struct sweep_past *past);

#endif
