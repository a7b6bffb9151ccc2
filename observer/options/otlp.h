/* SPDX-License-Identifier: MIT */
/* The rows of `serve` about sending metrics to an OpenTelemetry collector. */
#ifndef OBSERVER_OPTIONS_OTLP_H
#define OBSERVER_OPTIONS_OTLP_H

#include "options.h"
#include "sojourn/cli.h"

extern const struct cli_table options_otlp;

/* Fill in defaults. -EINVAL: options that cannot go together; an error was printed. */
int options_otlp_check(const struct cli_command *command, struct observe_options *options);

#endif
