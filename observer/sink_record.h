/* SPDX-License-Identifier: MIT */
/* Writes a reading at each interval to a file that only grows: recording.h says how, and reads it. */
#ifndef OBSERVER_SINK_RECORD_H
#define OBSERVER_SINK_RECORD_H

#include "snapshot.h"
#include "sojourn/cleanup.h"

struct sink_record;

struct sink_record_options {
	const char *path;
	uint64_t interval_ns; /* as the file tells it */
	/*
	 * Above so many bytes PATH becomes PATH.1, which is replaced, and PATH begins anew; 0: it
	 * grows as long as there is room.
	 */
	uint64_t max_bytes;
	/*
	 * Told once when a reading could not be written (@error < 0: -errno), and when they can be
	 * again (0).
	 */
	void (*say)(const char *path, int error);
};

/*
 * Makes the file, or goes on with a recording that is there; nothing is written yet. -EEXIST: @path or the one that
 * would be replaced is something else; -EWOULDBLOCK: another process writes to it; or another -errno.
 */
int sink_record_open(const struct sink_record_options *options, struct sink_record **ret_sink);
void sink_record_close(struct sink_record *sink);
DEFINE_CLEANUP(struct sink_record *, sink_record_close)

/* The first reading, from which the first interval counts. 0 or -errno. */
int sink_record_begin(struct sink_record *sink, const struct snapshot_source *source);

/*
 * Writes what has happened so far. A file system without room is tried again at the next interval, and
 * nothing is lost but a point in time: readings count from the begin. 0 or -errno of the reading itself.
 */
int sink_record_interval(struct sink_record *sink);

/*
 * The last one: @run, which loses its single exchanges and its past. -errno: the file lacks it.
 */
int sink_record_end(struct sink_record *sink, struct run *run);

/* Readings written so far, and the bytes that they took. */
uint64_t sink_record_count(const struct sink_record *sink);
uint64_t sink_record_bytes(const struct sink_record *sink);

#endif
