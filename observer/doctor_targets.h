/* SPDX-License-Identifier: MIT */
/* Which network namespaces are looked at. */
#ifndef OBSERVER_DOCTOR_TARGETS_H
#define OBSERVER_DOCTOR_TARGETS_H

#include <stddef.h>

#include "doctor.h"

struct doctor_target {
	int fd; /* -1: our own */
	uint32_t inode;
	char name[64]; /* "" for our own */
};

struct doctor_targets {
	struct doctor_target *entries;
	size_t count;
	size_t refused; /* namespaces that we may not open */
};

/* 0; -EINVAL: an error was printed; or -errno. */
int doctor_targets_find(const struct doctor_options *options, struct doctor_targets *ret_targets);
void doctor_targets_free(struct doctor_targets *targets);

#endif
