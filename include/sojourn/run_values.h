/* SPDX-License-Identifier: MIT */
/* What the run document (run.h) says of one thing: a stage, a number that may be missing, ports. */
#ifndef SOJOURN_RUN_VALUES_H
#define SOJOURN_RUN_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/histogram.h"

/* A stage without `measured` is printed as missing, with `reason`; never as zero. */
struct run_stage {
	bool measured;
	char *source; /* which candidate measured it, e.g. "inferred"; may be NULL */
	char *reason; /* why it is missing; NULL if measured */
	struct histogram histogram;
};

/* A number that may be missing. */
struct run_number {
	bool known;
	uint64_t value;
};

/* A share or a correlation, which no integer can hold; may be missing. */
struct run_ratio {
	bool known;
	double value;
};

/* Ephemeral ports of one source address, towards the destination that most are used towards. */
struct run_ports {
	struct run_number used;	    /* now, by sockets of any state: TIME_WAIT too */
	struct run_number capacity; /* those that connect() chooses from */
	char towards[56];	    /* "192.0.2.1:8080"; "": not known */
};

#endif
