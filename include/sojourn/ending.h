/* SPDX-License-Identifier: MIT */
/*
 * A program that is ending no longer acts on signals, but may still wait without end, as for a
 * pipe's reader. Let the usual signals end the program during such a wait.
 */
#ifndef SOJOURN_ENDING_H
#define SOJOURN_ENDING_H

#include <signal.h>

#define ENDING_SIGNALS 4

struct ending {
	struct sigaction actions[ENDING_SIGNALS];
	sigset_t mask;
};

/* Let the signals end the program, and store their previous handling in @ret_before. */
void ending_allow(struct ending *ret_before);
void ending_restore(const struct ending *before);

#endif
