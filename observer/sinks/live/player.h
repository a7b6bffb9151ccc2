/* SPDX-License-Identifier: MIT */
/* Plays a recording into the live view, forward and back, at its own speed or another; no terminal. */
#ifndef OBSERVER_SINKS_LIVE_PLAYER_H
#define OBSERVER_SINKS_LIVE_PLAYER_H

#include "view.h"
#include "sinks/recording/recording.h"

#define LIVE_PLAYER_FASTEST 1024
#define LIVE_PLAYER_SLOWEST (1.0 / 16)

struct live_player {
	const struct recording *recording;
	size_t at;	    /* the reading that is shown, from 0 */
	bool begun;	    /* one is shown */
	double speed;	    /* 1: as it was */
	uint64_t shown_ns;  /* CLOCK_MONOTONIC: since when */
	uint64_t wall_ns;   /* wall clock of the reading; 0: not known */
	struct run *ahead;  /* the next whole reading, read ahead; NULL: not yet, or none */
	size_t ahead_index; /* the index of that reading, if there is one */
};

void live_player_init(struct live_player *player, const struct recording *recording);
void live_player_done(struct live_player *player);

/* Show the next reading, or the one before. -ENODATA: there is none; or another -errno. */
int live_player_forward(struct live_player *player, struct live_view *view);
int live_player_back(struct live_player *player, struct live_view *view);

/* Return how long the shown reading stays, from shown_ns on. -ENODATA: it is the last one; or another -errno. */
int live_player_stay_ns(struct live_player *player, uint64_t *ret_ns);

/* Return whether the shown reading is the last one. */
bool live_player_ended(struct live_player *player);

#endif
