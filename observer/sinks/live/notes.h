/* SPDX-License-Identifier: MIT */
/* The live view's panel of findings: problems in a reading, a sentence each. */
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

/* Return whether requests of @service wait for long; critical if nothing else is answered meanwhile. */
bool live_note_open(const struct live_view *view, const struct run_service *service,
		    struct live_note *ret_note);

/*
 * Write problems into at most @size notes, and return how many there are. First the doctor's findings of @found
 * (NULL: no look was taken), then those of @run itself, each with the worst first. With @only, a service of @run, write only its own.
 */
size_t live_notes(const struct run *run, const struct run *found, const struct run_service *only,
		  struct live_note *ret_notes, size_t size);

#endif
