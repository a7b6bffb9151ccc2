/* SPDX-License-Identifier: MIT */
/*
 * A separate process makes the files that the user has named. It runs as the user who started the
 * observer, and keeps only the capabilities for making files. So the observer itself, which answers
 * callers, can make no file. The scribe knows the names from the start, and takes only contents from
 * the observer.
 */
#ifndef OBSERVER_PROCESS_SCRIBE_H
#define OBSERVER_PROCESS_SCRIBE_H

struct run;
struct scribe;

struct scribe_files {
	const char *document;  /* NULL: none */
	const char *recording; /* its files replace each other; NULL: none */
	/* Starts the recording's next file: sink_record_follow(). */
	int (*follow)(const char *path, int *ret_fd);
};

/* Start the process. The names must live as long as the scribe. 0 or -errno. */
int scribe_start(const struct scribe_files *files, struct scribe **ret_scribe);
void scribe_stop(struct scribe *scribe);

/* Write the document, as run_write() does. 0 or -errno; -EPIPE: the process has ended. */
int scribe_write(struct scribe *scribe, const struct run *run);

/* Start the recording's next file; @context is the scribe. 0 or -errno, likewise. */
int scribe_follow(void *context, int *ret_fd);

#endif
