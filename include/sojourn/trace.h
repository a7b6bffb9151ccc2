/* SPDX-License-Identifier: MIT */
/*
 * The slowest joined exchanges as a timeline in the Chrome trace-event format, which ui.perfetto.dev
 * and chrome://tracing open: one track per connection, the stages nested in their requests.
 */
#ifndef SOJOURN_TRACE_H
#define SOJOURN_TRACE_H

#include "sojourn/run.h"

/* The JSON text, ending in a newline, to be freed; @run must be joined. NULL without memory. */
char *trace_to_json(const struct run *run);

/* The same to a file, or "-", standard output. Replaces it atomically. -errno. */
int trace_write(const struct run *run, const char *path);

#endif
