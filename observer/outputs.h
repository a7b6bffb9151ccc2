/* SPDX-License-Identifier: MIT */
/* The sinks of an observation, by its options. Only this file names each of them. */
#ifndef OBSERVER_OUTPUTS_H
#define OBSERVER_OUTPUTS_H

#include "options/options.h"
#include "sinks/sink.h"

#define OUTPUTS_MAX 3

struct outputs {
	const struct observe_options *options;
	struct sink *list[OUTPUTS_MAX];
	size_t count;
	uid_t user;		    /* the user of this process after it gives up privileges */
	struct sink *record, *otlp; /* entries of the list; NULL: not requested */
	struct scribe *scribe;	    /* the process that makes files; NULL: none is needed */
};

/*
 * Open the outputs that come before the rest of the observation. Their processes then inherit no descriptors, and a
 * file that cannot be written is reported at once. @confined: this process will not be able to make files. Return an
 * exit code; failures were logged.
 */
int outputs_prepare(struct outputs *outputs, const struct observe_options *options, bool confined);
/*
 * Take the first readings and open the other outputs. 0 or -errno; -EOPNOTSUPP: the terminal cannot
 * be drawn on.
 */
int outputs_begin(struct outputs *outputs, const struct snapshot_source *source);

/* Return the interval at which they are notified; 0: never. */
uint64_t outputs_interval_ns(const struct outputs *outputs);
/* Return the address at which one of them answers; NULL: none does. */
const char *outputs_url(const struct outputs *outputs);

/* Close the outputs on the terminal, which is then the user's again. */
void outputs_leave(struct outputs *outputs);
/* Write the document if it is requested. 0 or -errno. */
int outputs_document(struct outputs *outputs, const struct run *run);
/* Pass the last reading to the recording and the collector. 0 or -errno; failures were logged. */
int outputs_end(struct outputs *outputs, struct run *run);
void outputs_close(struct outputs *outputs);

#endif
