/* SPDX-License-Identifier: MIT */
/* Gives up what an observation needs no longer once it runs. */
#ifndef OBSERVER_PROCESS_CONFINE_H
#define OBSERVER_PROCESS_CONFINE_H

#include <stdbool.h>

/*
 * Keeps, of the capabilities held, those that reading needs (docs/operation.md), and with
 * @other_netns what entering another network namespace needs; sets no_new_privs; and forbids system
 * calls that no observation makes: programs, other processes' memory, mounts, modules, other users.
 * They fail with EPERM. Irrevocable. 0 or -errno; then less than that was given up.
 */
int confine(bool other_netns);

/*
 * Keeps none, is nobody if it was root, and is as strict besides. Irrevocable. 0 or -errno; then less than
 * that was given up.
 */
int confine_all(void);

#endif
