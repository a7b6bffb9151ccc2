/* SPDX-License-Identifier: MIT */
/* The sinks of an observation, as its options ask for them: the only place that names each. */
#ifndef OBSERVER_OUTPUTS_H
#define OBSERVER_OUTPUTS_H

#include "options/options.h"
#include "sinks/sink.h"

#define OUTPUTS_MAX 3

struct outputs {
	const struct observe_options *options;
	struct sink *list[OUTPUTS_MAX];
	size_t count;
	uid_t user;		    /* that the process is when they are closed */
	struct sink *record, *otlp; /* of these; NULL: not asked for */
};

/*
 * Open the outputs that come before the rest of the observation. So a process that sends inherits nothing, and a file
 * that cannot be written fails at once. Return an exit code; failures were logged.
 */
int outputs_prepare(struct outputs *outputs, const struct observe_options *options);
/* Takes the first readings and opens the others. 0 or -errno; -EOPNOTSUPP: the terminal cannot be drawn on. */
int outputs_begin(struct outputs *outputs, const struct snapshot_source *source);

/* The interval at which they are notified; 0: never. */
uint64_t outputs_interval_ns(const struct outputs *outputs);
/* Where one of them answers; NULL: none does. */
const char *outputs_url(const struct outputs *outputs);

/* Closes those that show what is going on: the terminal is the user's again. */
void outputs_leave(struct outputs *outputs);
/* Gives the last reading to the rest. 0 or -errno; what failed was logged. */
int outputs_end(struct outputs *outputs, struct run *run);
void outputs_close(struct outputs *outputs);

#endif
