/* SPDX-License-Identifier: MIT */
/* The command line's options, read and checked once: see options.c. */
#ifndef LAB_OPTIONS_H
#define LAB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "knobs.h"
#include "truth.h"

enum model {
	MODEL_EVENT,
	MODEL_THREADS,
	MODEL_PREFORK,
	MODEL_COUNT
};

extern const char *const model_names[MODEL_COUNT];

/* By which call the threads model accepts. */
enum accept_call {
	ACCEPT_CALL_ACCEPT4,
	ACCEPT_CALL_ACCEPT,
	ACCEPT_CALL_URING,
	ACCEPT_CALL_MULTISHOT,
};

struct options {
	union address listen;
	const char *protocol; /* one that exists */
	uint64_t model;	      /* enum model */
	uint64_t workers;
	uint64_t blocking_workers;
	uint64_t backlog;
	uint64_t accept_call; /* enum accept_call */
	uint64_t accept_delay_ns;
	uint64_t read_delay_ns;
	uint64_t one_in;
	const char *truth;
	const char *summary;
	uint64_t truth_limit;
	struct knobs knobs; /* for every request that does not say otherwise */
};

/* The caller is to go on, or to exit with this status after the help or a complaint was printed. */
#define OPTIONS_GO_ON (-1)

/* Returns OPTIONS_GO_ON or an exit status (0: help, 2: bad command line, said in one line). */
int options_parse(int argc, char **argv, struct options *ret_options);

#endif
