/* SPDX-License-Identifier: MIT */
/*
 * Waits for the events of an observation: a signal, the end of --for, the interval, the command's
 * end, a request on the endpoint. One thread, one poll().
 */
#ifndef OBSERVER_LOOP_H
#define OBSERVER_LOOP_H

#include <stdint.h>
#include <sys/types.h>

#include "model/model.h"
#include "sinks/sink.h"

#define LOOP_SINKS 4

struct loop_options {
	uint64_t interval_ns;	   /* 0: none */
	uint64_t for_ns;	   /* 0: no end */
	struct sink *const *sinks; /* notified of intervals, and of their descriptors */
	size_t sink_count;	   /* up to LOOP_SINKS */
	struct model *model;	   /* drained when model_fd() is readable */
	char **command;		   /* run while observing; may be NULL */
	uint64_t point_ns;	   /* interval between calls of @point; 0: never */
	void (*point)(void *context);
	void *point_context;
};

/*
 * Block SIGINT, SIGTERM, SIGHUP, SIGCHLD and SIGWINCH for this process, and open the descriptors that the loop waits
 * on. From here on no signal is missed and no further descriptor is needed. Return 0 or -errno.
 */
struct loop;
int loop_open(const struct loop_options *options, struct loop **ret_loop);
void loop_close(struct loop *loop);
DEFINE_CLEANUP(struct loop *, loop_close)

/*
 * Start the command, if any, and wait. Return 0 when it is time to stop, or -errno. *ret_status is the command's exit
 * code: 128 + signal if one ended it, 127 if it could not be started, 0 without a command.
 */
int loop_run(struct loop *loop, int *ret_status);

#endif
