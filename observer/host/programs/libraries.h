/* SPDX-License-Identifier: MIT */
/* Shared libraries that processes have mapped, and their programs, in whichever container they run. */
#ifndef OBSERVER_HOST_PROGRAMS_LIBRARIES_H
#define OBSERVER_HOST_PROGRAMS_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct library {
	size_t which;	 /* place of its name */
	uint64_t device; /* with the inode: the same for each process that has mapped this file */
	uint64_t inode;
	char path[1088]; /* opens the file from here */
};

/*
 * Call @visit for each file that process @pid has mapped whose name begins with one of @names, and for NULL: its program. A
 * file may be visited more than once. Return 0, or -errno if we may not look.
 */
int libraries_visit(uint32_t pid, const char *const *names, size_t count,
		    void (*visit)(void *context, const struct library *library), void *context);

/*
 * Open the library's file for reading. The owner of the process may have put something else there, so
 * devices, FIFOs and the like are refused, and nothing waits for him. *@ret_rooted: the file is root's. Return
 * the descriptor, -ENOEXEC if it is no file, or -errno.
 */
int library_open(const struct library *library, bool *ret_rooted);

#endif
