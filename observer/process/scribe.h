/* SPDX-License-Identifier: MIT */
/*
 * A process apart that makes the files which the user has named, as who has started the observer and without its other
 * capabilities. So the one that observes and answers can make none. It knows the names from the start; of the
 * observer it takes contents alone.
 */
#ifndef OBSERVER_PROCESS_SCRIBE_H
#define OBSERVER_PROCESS_SCRIBE_H

struct run;
struct scribe;

struct scribe_files {
	const char *document;  /* NULL: none */
	const char *recording; /* whose files follow each other; NULL: none */
	/* Begins the recording's next file: sink_record_follow(). */
	int (*follow)(const char *path, int *ret_fd);
};

/* The names live as long as the scribe. 0 or -errno. */
int scribe_start(const struct scribe_files *files, struct scribe **ret_scribe);
void scribe_stop(struct scribe *scribe);

/* Writes the document, as run_write() does. 0 or -errno; -EPIPE: the process has ended. */
int scribe_write(struct scribe *scribe, const struct run *run);

/* Begins the recording's next file; @context is the scribe. 0 or -errno, likewise. */
int scribe_follow(void *context, int *ret_fd);

#endif
