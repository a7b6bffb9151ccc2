/* SPDX-License-Identifier: MIT */
/* The counts for one task: see seen.bpf.c. */
#ifndef TESTS_SEEN_H
#define TESTS_SEEN_H

#include <linux/types.h>

struct seen {
	__u64 passed; /* by the program in the packets' path */
	__u64 traced; /* by the tracing program */
};

#endif
