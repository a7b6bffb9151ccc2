/* SPDX-License-Identifier: MIT */
/* Prints what happens while observing: one line per service and interval. */
#ifndef OBSERVER_SINKS_TERM_H
#define OBSERVER_SINKS_TERM_H

#include <stdio.h>

#include "sink.h"

/* Lines go to @file; the first interval begins now. 0 or -errno. */
int sink_term_open(const struct snapshot_source *source, FILE *file, struct sink **ret_sink);

#endif
