/* SPDX-License-Identifier: MIT */
/* Writes a reading at each interval to a file that only grows: recording.h says how, and reads it. */
#ifndef OBSERVER_SINKS_RECORDING_SINK_H
#define OBSERVER_SINKS_RECORDING_SINK_H

#include "sinks/sink.h"

struct sink_record_options {
	const char *path;
	uint64_t interval_ns; /* as written to the file's header */
	/*
	 * Above so many bytes PATH becomes PATH.1, which is replaced, and PATH starts empty. 0: it grows as long as
	 * there is room.
	 */
	uint64_t max_bytes;
	/* Calls sink_record_follow() in a process that may make files; NULL: this process may. */
	int (*follow)(void *context, int *ret_fd);
	void *context;
	/*
	 * Called once when a reading could not be written (@error < 0: -errno), and when they can be
	 * again (0).
	 */
	void (*say)(const char *path, int error);
};

/*
 * Make the file, or continue a recording; nothing is written yet. Return 0 or -errno. -EEXIST: @path or the file to
 * be replaced is something else; -EWOULDBLOCK: another process writes to it.
 */
int sink_record_open(const struct sink_record_options *options, struct sink **ret_sink);

/*
 * Write the first reading, from which the first interval counts. Return 0 or -errno. Afterwards a full file system is
 * tried again at each interval. Then only a point in time is lost: readings count from the start. The reading of
 * sink_end() is written without single exchanges and without its past.
 */
int sink_record_begin(struct sink *sink, const struct snapshot_source *source);

/*
 * Start the next file: @path becomes PATH.1, and takes its name back if there can be no new one. Return 0 or -errno.
 */
int sink_record_follow(const char *path, int *ret_fd);

/* Readings written so far, and the bytes that they took. */
uint64_t sink_record_count(const struct sink *sink);
uint64_t sink_record_bytes(const struct sink *sink);

#endif
