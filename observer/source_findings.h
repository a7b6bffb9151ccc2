/* SPDX-License-Identifier: MIT */
/*
 * What runs out on the host, for the run document: the doctor's findings over a period. A source of
 * its own header, since it knows nothing of the loader.
 */
#ifndef OBSERVER_SOURCE_FINDINGS_H
#define OBSERVER_SOURCE_FINDINGS_H

#include <stdint.h>

#include "resource_events.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* How often source_findings_point() is to be called while a period lasts. */
#define FINDINGS_POINT_NS 1000000000ULL

struct source_findings;

/*
 * Begins a period now. @netns: path of the network namespace, NULL: our own. @events may be NULL,
 * @events_error then says why. 0 or -errno.
 */
int source_findings_begin(const char *netns, struct resource_events *events, int events_error,
			  struct source_findings **ret_source);
void source_findings_end(struct source_findings *source);
DEFINE_CLEANUP(struct source_findings *, source_findings_end)

/* One more point of the trends. */
void source_findings_point(struct source_findings *source);

/* Adds the findings since the period's begin to @run. 0 or -errno. */
int source_findings_read(struct source_findings *source, struct run *run);

#endif
