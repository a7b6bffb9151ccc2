/* SPDX-License-Identifier: MIT */
/*
 * A recording: readings of an observation, one after the other, in a file that only grows (docs/recording.md). sink.c
 * writes it. The functions here read it, whatever state a crash left it in.
 */
#ifndef OBSERVER_SINKS_RECORDING_RECORDING_H
#define OBSERVER_SINKS_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* How the first line of each observation begins, and with it the file. */
#define RECORDING_SCHEMA "sojourn.recording/1"
#define RECORDING_MAGIC	 "{\"schema\":\"" RECORDING_SCHEMA "\""

struct recording_line {
	off_t offset;
	size_t length;	      /* with the newline */
	unsigned int session; /* which observation of the file, from 1 */
};

struct recording {
	int fd;
	struct recording_line *lines; /* whole lines that look like readings */
	size_t count;
	unsigned int sessions;
	size_t damaged; /* whole lines of no known kind */
	size_t cut_off; /* bytes of a last line without end */
};

/* Return whether the file begins as a recording does, as far as it has bytes; an empty one does. */
bool recording_begins(int fd);
/* Return whether @path is a recording that recording_open() would try to read. */
bool recording_is(const char *path);

/*
 * Find the readings. -EINVAL: @path is no recording, or has no whole reading; @ret_error (to be freed
 * by the caller) says which of them. -errno.
 */
int recording_open(const char *path, struct recording **ret_recording, char **ret_error);
void recording_close(struct recording *recording);
DEFINE_CLEANUP(struct recording *, recording_close)

/* Reading @index, from 0. -EINVAL: that line is damaged after all. -errno. */
int recording_read(const struct recording *recording, size_t index, struct run **ret_run);

/* Facts that recording_total() found. */
struct recording_summary {
	size_t readings; /* that were used */
	size_t damaged;	 /* lines that could not be */
	unsigned int sessions;
	uint64_t unobserved_ns; /* between the observations of the file, by the wall clock */
};

/*
 * Make one document of the whole recording. Counts and histograms of each observation's last reading are added up,
 * and state is that of the end. It has every finding of any time, as last seen, and the past of each service from
 * reading to reading. Return 0, -errno, or -EINVAL if no reading is whole.
 */
int recording_total(const struct recording *recording, struct run **ret_run,
		    struct recording_summary *ret_summary);

#endif
