/* SPDX-License-Identifier: MIT */
/* Prints what happens while observing: one line per service and interval. */
#ifndef OBSERVER_SINK_TERM_H
#define OBSERVER_SINK_TERM_H

#include <stdio.h>

#include "snapshot.h"
#include "sojourn/cleanup.h"

struct sink_term;

/* Lines go to @file; the first interval begins now. 0 or -errno. */
int sink_term_open(const struct snapshot_source *source, FILE *file, struct sink_term **ret_sink);
void sink_term_close(struct sink_term *sink);
DEFINE_CLEANUP(struct sink_term *, sink_term_close)

/* Prints what happened since the last call, or since the sink was opened. 0 or -errno. */
int sink_term_interval(struct sink_term *sink);

#endif
