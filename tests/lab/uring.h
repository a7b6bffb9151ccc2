/* SPDX-License-Identifier: MIT */
/* accept() by io_uring, each thread with a ring of its own. */
#ifndef LAB_URING_H
#define LAB_URING_H

#include <stdbool.h>

/*
 * Waits for the next connection of the listener @fd, asking anew each time or (@multishot) once for
 * all. The descriptor, or -errno.
 */
int uring_accept(int fd, bool multishot);

/* The calling thread will accept no more. */
void uring_close(void);

#endif
