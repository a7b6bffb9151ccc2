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
	uid_t user;		    /* the process's user when they are closed */
	struct sink *record, *otlp; /* two of them; NULL: not requested */
	struct scribe *scribe;	    /* makes the files; NULL: we do, or there are none */
};

/*
 * Open the outputs that come before the rest of the observation. So processes that send or write inherit nothing, and
 * a file that cannot be written fails at once. @confined: this process will not be able to make files. Return an exit
 * code; failures were logged.
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
/* Pass the last reading to the others. 0 or -errno; failures were logged. */
int outputs_end(struct outputs *outputs, struct run *run);
void outputs_close(struct outputs *outputs);

#endif
