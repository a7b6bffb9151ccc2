/* SPDX-License-Identifier: MIT */
/* accept() by io_uring, each thread with a ring of its own. */
#ifndef LAB_URING_H
#define LAB_URING_H

#include <stdbool.h>

/*
 * Wait for the next connection of the listener @fd, with a request for each or (@multishot) one for
 * all. Return the descriptor, or -errno.
 */
int uring_accept(int fd, bool multishot);

/* Close the calling thread's ring, if it has one: it accepts no more. */
void uring_close(void);

#endif
