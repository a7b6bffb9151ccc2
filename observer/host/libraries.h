/* SPDX-License-Identifier: MIT */
/* Shared libraries that processes have mapped, in whichever container they run. */
#ifndef OBSERVER_HOST_LIBRARIES_H
#define OBSERVER_HOST_LIBRARIES_H

#include <stdint.h>

struct library {
	uint64_t device; /* with the inode: the same for each process that has mapped this file */
	uint64_t inode;
	char path[1088]; /* opens the file from here */
};

/*
 * Find the first mapped file of process @pid whose name begins with @name. Return 0, -ENOENT if there
 * is none, or -errno if we may not look.
 */
int library_of(uint32_t pid, const char *name, struct library *ret_library);

#endif
