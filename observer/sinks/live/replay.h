/* SPDX-License-Identifier: MIT */
/* `sojourn live --replay FILE`: a recording in the live view. Needs no privileges. */
#ifndef OBSERVER_SINKS_LIVE_REPLAY_H
#define OBSERVER_SINKS_LIVE_REPLAY_H

#include <stdint.h>

/*
 * Play @path on the terminal until it is left; waiting up to @wait_floor_ns is not warned of. An exit code;
 * what failed was logged.
 */
int replay(const char *path, uint64_t wait_floor_ns);

#endif
