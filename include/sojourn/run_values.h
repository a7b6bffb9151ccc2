/* SPDX-License-Identifier: MIT */
/* What the run document (run.h) says of one thing: a stage, a number that may be missing, ports. */
#ifndef SOJOURN_RUN_VALUES_H
#define SOJOURN_RUN_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/histogram.h"
#include "wire/stage.h"

/* A stage without `measured` is printed as missing, with `reason`; never as zero. */
struct run_stage {
	bool measured;
	char *source; /* which candidate measured it, e.g. "inferred"; may be NULL */
	char *reason; /* why it is missing; NULL if measured */
	struct histogram histogram;
};

/* Whether the end of accept_queue, of a service's @stages, was inferred from the connection's first read. */
bool run_accept_is_inferred(const struct run_stage *stages);

/*
 * What people call stage @which of @stages: an inferred accept queue may hold the wait for the first read,
 * too, and has that in its name.
 */
const char *run_stage_label(const struct run_stage *stages, enum stage which);

/* A number that may be missing. */
struct run_number {
	bool known;
	uint64_t value;
};

/* The same below zero, too. */
struct run_signed {
	bool known;
	int64_t value;
};

/* A share or a correlation, which no integer can hold; may be missing. */
struct run_ratio {
	bool known;
	double value;
};

/* What of a host makes BPF programs cheap or dear: without it, what they cost says nothing of another one. */
struct run_machine {
	char **mitigations;   /* that are on and cost: "retpolines", "Safe RET"; NULL: not known */
	char *clock_source;   /* the kernel's: "tsc", "kvm-clock"; NULL: not known */
	char *virtualisation; /* "none", "KVM", "VMware"; NULL: not known */
};

/* Ephemeral ports of one source address, towards the destination that most are used towards. */
struct run_ports {
	struct run_number used;	    /* now, by sockets of any state: TIME_WAIT too */
	struct run_number capacity; /* those that connect() chooses from */
	char towards[56];	    /* "192.0.2.1:8080"; "": not known */
};

#endif
