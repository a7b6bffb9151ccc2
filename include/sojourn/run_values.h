/* SPDX-License-Identifier: MIT */
/* Values of the run document (run.h): a stage, a number that may be missing, ports. */
#ifndef SOJOURN_RUN_VALUES_H
#define SOJOURN_RUN_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/histogram.h"
#include "wire/stage.h"

/* A stage without `measured` is printed as missing, with `reason`, never as zero. */
struct run_stage {
	bool measured;
	char *source; /* the method that measured it, e.g. "inferred"; may be NULL */
	char *reason; /* why it is missing; NULL: measured */
	struct histogram histogram;
};

/* Return whether the end of accept_queue was inferred from the connection's first read. */
bool run_accept_is_inferred(const struct run_stage *stages);

/*
 * Return the name of stage @which for people: an inferred accept queue may include the wait for the
 * first read, and says so.
 */
const char *run_stage_label(const struct run_stage *stages, enum stage which);

/* A number that may be missing. */
struct run_number {
	bool known;
	uint64_t value;
};

/* Likewise; may be negative. */
struct run_signed {
	bool known;
	int64_t value;
};

/* A non-integer share or correlation; may be missing. */
struct run_ratio {
	bool known;
	double value;
};

/* Properties of a host that decide what BPF programs cost. */
struct run_machine {
	char **mitigations; /* "retpolines", "Safe RET": active ones with a cost; NULL: not known */
	char *clock_source; /* the kernel's: "tsc", "kvm-clock"; NULL: not known */
	char *virtualisation; /* "none", "KVM", "VMware"; NULL: not known */
};

/* Ephemeral ports of one source address, towards the destination with the most used. */
struct run_ports {
	struct run_number used;	    /* now, by sockets of any state, TIME_WAIT included */
	struct run_number capacity; /* ports that connect() can choose */
	char towards[56];	    /* "192.0.2.1:8080"; "": not known */
};

#endif
