/* SPDX-License-Identifier: MIT */
/* `sojourn doctor`: one look at resources that run out, or repeated ones. */
#ifndef OBSERVER_DOCTOR_DOCTOR_H
#define OBSERVER_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "sojourn/cli.h"

/* Exit codes: the worst finding. Wrong options must not look like one. */
enum doctor_exit {
	DOCTOR_HEALTHY = 0,
	DOCTOR_WARNING = 1,
	DOCTOR_CRITICAL = 2,
	DOCTOR_USAGE = 64,  /* EX_USAGE of <sysexits.h> */
	DOCTOR_FAILED = 70, /* EX_SOFTWARE: could not look at all */
};

struct doctor_options {
	uint32_t pid;
	uint16_t port;
	const char *netns; /* name or path; NULL: our own, or that of @pid */
	bool all_netns;
	bool all_users;
	bool json;
	bool watch;
	bool syscalls; /* count failures by what system calls return, if there is no other way */
	bool procfs;   /* sockets from /proc although inet_diag would answer */
	uint64_t sample_ns;
	uint64_t interval_ns;
};

/* 0; -ECANCELED: help was printed; -EINVAL: an error was printed. */
int doctor_parse(int argc, char **argv, struct doctor_options *ret_options);

int doctor_main(int argc, char **argv);

#endif
