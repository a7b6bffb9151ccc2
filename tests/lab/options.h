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

/* The call by which the threads model accepts. */
enum accept_call {
	ACCEPT_CALL_ACCEPT4,
	ACCEPT_CALL_ACCEPT,
	ACCEPT_CALL_URING,
	ACCEPT_CALL_MULTISHOT,
};

struct options {
	union address listen;
	const char *protocol; /* the name of an existing one */
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
	struct knobs knobs; /* for every request without its own */
};

/* The result of options_parse() if the caller continues; any other is the exit status. */
#define OPTIONS_GO_ON (-1)

/* Return OPTIONS_GO_ON or an exit status (0: help; 2: bad command line, with one line printed). */
int options_parse(int argc, char **argv, struct options *ret_options);

#endif
