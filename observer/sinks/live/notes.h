/* SPDX-License-Identifier: MIT */
/* The live view's panel of findings: what of a reading deserves a sentence. */
#ifndef OBSERVER_SINKS_LIVE_NOTES_H
#define OBSERVER_SINKS_LIVE_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "view.h"
#include "sojourn/run.h"

struct live_note {
	bool critical;
	char text[256]; /* printable, one line */
};

/* Whether requests of @service wait for long; critical if nothing else is answered meanwhile. */
bool live_note_open(const struct live_view *view, const struct run_service *service,
		    struct live_note *ret_note);

/*
 * Writes what is wrong into at most @size notes, and how many there are: the doctor's findings of @found (NULL:
 * nobody looked), then what @run itself shows, each the worst first. Waiting up to @floor_ns is nothing wrong.
 * With @only, a service of @run, what concerns it alone.
 */
size_t live_notes(const struct run *run, const struct run *found, uint64_t floor_ns,
		  const struct run_service *only, struct live_note *ret_notes, size_t size);

#endif
