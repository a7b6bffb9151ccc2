/* SPDX-License-Identifier: MIT */
/* A process of a crew, from inside; and what it and its parent say to each other. */
#ifndef DRIVER_CREW_CHILD_H
#define DRIVER_CREW_CHILD_H

#include "crew.h"

/* Parent to child. */
struct crew_command {
	enum worker_phase phase; /* as worker_set_phase() */
	bool snapshot;		 /* asked for, in place of a phase */
	uint64_t begin_ns;
	uint64_t stop_ns;
};

/* Child to parent: a header, then @length bytes. */
enum crew_message {
	CREW_READY,    /* its workers are there */
	CREW_QUIET,    /* they are at rest */
	CREW_FAILED,   /* a request failed; told once, where that was asked for */
	CREW_SNAPSHOT, /* struct stats */
	CREW_RESULT,   /* struct crew_result, each part of the series and its buckets, samples */
	CREW_ERROR,    /* an errno, int: it cannot go on */
};

struct crew_header {
	uint32_t message; /* enum crew_message */
	uint32_t unused;
	uint64_t length;
};

/* The whole life of a child; @fd is its end of the connection. Returns its exit status. */
int crew_child_run(const struct crew_setup *setup, int fd);

#endif
