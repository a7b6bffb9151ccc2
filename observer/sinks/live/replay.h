/* SPDX-License-Identifier: MIT */
/* `sojourn live --replay FILE`: a recording in the live view. Needs no privileges. */
#ifndef OBSERVER_SINKS_LIVE_REPLAY_H
#define OBSERVER_SINKS_LIVE_REPLAY_H

/* Play @path on the terminal until it is left. An exit code; what failed was logged. */
int replay(const char *path);

#endif
