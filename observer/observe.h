/* SPDX-License-Identifier: MIT */
/* `sojourn observe`, from its options to its summary. */
#ifndef OBSERVER_OBSERVE_H
#define OBSERVER_OBSERVE_H

#include "lacks.h"
#include "options/options.h"

/* Return the exit code of the program; what failed was logged. */
int observe(const struct observe_options *options);

#endif
