/* SPDX-License-Identifier: MIT */
/* The live view's panel of findings: what of a reading deserves a sentence. */
#ifndef OBSERVER_LIVE_NOTES_H
#define OBSERVER_LIVE_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "sojourn/run.h"

struct live_note {
	bool critical;
	char text[256]; /* printable, one line */
};

/*
 * Writes what is wrong in @run, the worst first, into at most @size notes; how many. With @only,
 * a service of @run, what concerns it alone.
 */
size_t live_notes(const struct run *run, const struct run_service *only,
		  struct live_note *ret_notes, size_t size);

#endif
