// SPDX-License-Identifier: MIT
/* Signals that may end a program while it waits; see ending.h. */
#include "sojourn/ending.h"

#include <pthread.h>
#include <stddef.h>

static const int ending[ENDING_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void ending_allow(struct ending *ret_before)
{
	const struct sigaction end = {.sa_handler = SIG_DFL};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ENDING_SIGNALS; i++) {
		sigaddset(&set, ending[i]);
		sigaction(ending[i], &end, &ret_before->actions[i]);
	}
	pthread_sigmask(SIG_UNBLOCK, &set, &ret_before->mask);
}

void ending_restore(const struct ending *before)
{
	pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
	for (size_t i = 0; i < ENDING_SIGNALS; i++)
		sigaction(ending[i], &before->actions[i], NULL);
}
