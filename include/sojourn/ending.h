/* SPDX-License-Identifier: MIT */
/*
 * A program that is ending handles no signals any more. It may still wait, as for a pipe's reader: meanwhile the usual
 * signals may end it.
 */
#ifndef SOJOURN_ENDING_H
#define SOJOURN_ENDING_H

#include <signal.h>

#define ENDING_SIGNALS 4

struct ending {
	struct sigaction actions[ENDING_SIGNALS];
	sigset_t mask;
};

/* As it was before is in @ret_before. */
void ending_allow(struct ending *ret_before);
void ending_restore(const struct ending *before);

#endif
