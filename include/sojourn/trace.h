/* SPDX-License-Identifier: MIT */
/*
 * The slowest joined exchanges as a timeline in the Chrome trace-event format, for ui.perfetto.dev
 * and chrome://tracing: a track per connection, with stages nested in requests.
 */
#ifndef SOJOURN_TRACE_H
#define SOJOURN_TRACE_H

#include "sojourn/run.h"

/* Return the JSON text of a joined @run, freed by the caller; NULL without memory. */
char *trace_to_json(const struct run *run);

/* Write it to a file, replaced atomically, or to "-", standard output. -errno. */
int trace_write(const struct run *run, const char *path);

#endif
