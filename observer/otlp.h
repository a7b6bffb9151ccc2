/* SPDX-License-Identifier: MIT */
/* The face of `--otlp`: what fails at the start, in words. */
#ifndef OBSERVER_OTLP_H
#define OBSERVER_OTLP_H

#include "sink_otlp.h"

/* The exit code: EXIT_SUCCESS, also without a URL (then there is no sink); what failed was logged. */
int otlp_open(const struct otlp_target *target, struct sink_otlp **ret_sink);

#endif
