/* SPDX-License-Identifier: MIT */
/* Shared libraries that processes have mapped, in whichever container they run. */
#ifndef OBSERVER_HOST_LIBRARIES_H
#define OBSERVER_HOST_LIBRARIES_H

#include <stdbool.h>
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

/*
 * Open the library's file for reading. The owner of the process may have put something else there, so
 * devices, FIFOs and the like are refused, and nothing waits for him. *@ret_rooted: the file is root's. Return
 * the descriptor, -ENOEXEC if it is no file, or -errno.
 */
int library_open(const struct library *library, bool *ret_rooted);

#endif
