/* SPDX-License-Identifier: MIT */
/* `sojourn observe`, from its options to its summary. */
#ifndef OBSERVER_OBSERVE_H
#define OBSERVER_OBSERVE_H

#include "options/options.h"

/* Exit codes beyond EXIT_SUCCESS, EXIT_FAILURE and EXIT_USAGE. */
#define EXIT_UNSUPPORTED 3

/* Return the exit code of the program; what failed was logged. */
int observe(const struct observe_options *options);

#endif
