/* SPDX-License-Identifier: MIT */
/*
 * Open files kept in reserve from the start. Their room is used while something is read or written.
 * So an observer continues when its own descriptors have run out. It also continues when the host's
 * files have, from which only CAP_SYS_ADMIN is exempt. There is one reserve per process.
 */
#ifndef OBSERVER_PROCESS_RESERVE_H
#define OBSERVER_PROCESS_RESERVE_H

#include "sojourn/cleanup.h"

/* More than any reading has open at once. */
#define RESERVE_FILES 12

/* Fill the reserve, as far as there is room: at the start, and again at the end of each use. */
void reserve_fill(void);

/*
 * Empty the reserve until the matching end. Its room is then free, though other processes may take
 * the host's part. Uses may nest. An end without an earlier reserve_fill() fills nothing.
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
