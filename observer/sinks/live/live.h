/* SPDX-License-Identifier: MIT */
/* The live view on the terminal, a row per service, renewed every interval. */
#ifndef OBSERVER_SINKS_LIVE_LIVE_H
#define OBSERVER_SINKS_LIVE_LIVE_H

#include <stdbool.h>

#include "player.h"
#include "sinks/sink.h"

/*
 * Take the terminal over (standard input and output). 0; -ENOTTY: it is none; -EOPNOTSUPP: it cannot be
 * drawn on; or another -errno. However the program ends, the terminal is given back.
 */
int sink_live_open(const struct snapshot_source *source, uint64_t interval_ns,
		   struct sink **ret_sink);
/* The same for a recording. -ENODATA: none of its readings is whole. */
int sink_live_open_player(struct live_player *player, struct sink **ret_sink);

/* Return whether the user has paused the view. */
bool sink_live_paused(const struct sink *sink);

#endif
