/* SPDX-License-Identifier: MIT */
/* The live view on the terminal, a row per service, renewed every interval. */
#ifndef OBSERVER_SINK_LIVE_H
#define OBSERVER_SINK_LIVE_H

#include <stdbool.h>

#include "live_player.h"
#include "snapshot.h"
#include "sojourn/cleanup.h"

struct sink_live;

/*
 * Takes the terminal over (standard input and output). 0; -ENOTTY: it is none; -EOPNOTSUPP: it
 * cannot be drawn on; or another -errno. However the program ends, the terminal is given back.
 */
int sink_live_open(const struct snapshot_source *source, uint64_t interval_ns,
		   struct sink_live **ret_sink);
/* The same of a recording. -ENODATA: not one of its readings is whole. */
int sink_live_open_player(struct live_player *player, struct sink_live **ret_sink);
void sink_live_close(struct sink_live *sink);
DEFINE_CLEANUP(struct sink_live *, sink_live_close)

/* An interval has ended: reads and draws. 0 or -errno. */
int sink_live_interval(struct sink_live *sink);

/* Whether the user has stopped it. */
bool sink_live_paused(const struct sink_live *sink);

/* Keys were typed. 0; -ECANCELED: one of them means to quit; or -errno. */
int sink_live_keys(struct sink_live *sink);

/* The terminal has another size. */
void sink_live_resize(struct sink_live *sink);

#endif
