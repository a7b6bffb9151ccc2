/* SPDX-License-Identifier: MIT */
/*
 * Open files held in reserve, and closed before an observer reads or writes something: their room is
 * then free. So the observer continues when its own descriptors have run out. It also continues when
 * the host's files have, from which only CAP_SYS_ADMIN is exempt. There is one reserve per process.
 */
#ifndef OBSERVER_PROCESS_RESERVE_H
#define OBSERVER_PROCESS_RESERVE_H

#include "sojourn/cleanup.h"

/* More than any reading has open at once. */
#define RESERVE_FILES 12

/* Fill the reserve, as far as there is room. Called once at the start; the end of each use fills it again. */
void reserve_fill(void);

/*
 * Empty the reserve until the matching reserve_used(). The room is then free, though other processes
 * may take it in the host's table. Uses may nest. Without an earlier reserve_fill() the end fills
 * nothing.
 */
void reserve_use(void);
void reserve_used(void);

static inline int reserve_enter(void)
{
	reserve_use();
	return 0;
}

static inline void reserve_leave(const int *unused)
{
	(void)unused;
	reserve_used();
}

/* Use the reserve until the end of the block. */
#define RESERVE_SCOPE \
	CLEANUP(reserve_leave) __attribute__((unused)) int reserve_scope = reserve_enter()

#endif
