// SPDX-License-Identifier: MIT
/* Chooses the reading to show, and its time; see player.h. */
#include "player.h"

#include <errno.h>

#include "sojourn/clock.h"

void live_player_init(struct live_player *player, const struct recording *recording)
{
	*player = (struct live_player){.recording = recording, .speed = 1};
}

static void drop_ahead(struct live_player *player)
{
	run_free(TAKE_PTR(player->ahead));
	player->ahead_index = 0;
}

void live_player_done(struct live_player *player)
{
	drop_ahead(player);
}

/* ---- readings; damaged ones are passed over ---- */

static int read_from(const struct recording *recording, size_t index, size_t *ret_index,
		     struct run **ret_run)
{
	int r = -EINVAL;

	for (; r == -EINVAL && index < recording->count; index++) {
		r = recording_read(recording, index, ret_run);
		*ret_index = index;
	}
	return r == -EINVAL ? -ENODATA : r;
}

/* Read the last whole one before @index. */
static int read_before(const struct recording *recording, size_t index, size_t *ret_index,
		       struct run **ret_run)
{
	int r = -EINVAL;

	while (r == -EINVAL && index > 0) {
		r = recording_read(recording, --index, ret_run);
		*ret_index = index;
	}
	return r == -EINVAL ? -ENODATA : r;
}

static int look_ahead(struct live_player *player)
{
	size_t next = player->begun ? player->at + 1 : 0;

	if (player->ahead)
		return 0;
	return read_from(player->recording, next, &player->ahead_index, &player->ahead);
}

static unsigned int session_of(const struct live_player *player, size_t index)
{
	return player->recording->lines[index].session;
}

/* ---- moving ---- */

static void shown(struct live_player *player, size_t index, const struct run *run)
{
	uint64_t started_ns = 0;

	player->at = index;
	player->begun = true;
	player->shown_ns = clock_now_ns();
	player->wall_ns = 0;
	if (run->started_at && !run_parse_time(run->started_at, &started_ns))
		player->wall_ns = started_ns + run->duration_ns;
}

int live_player_forward(struct live_player *player, struct live_view *view)
{
	int r = look_ahead(player);

	if (r < 0)
		return r;
	/* Another observation counts from its own start. */
	if (player->begun &&
	    session_of(player, player->ahead_index) != session_of(player, player->at))
		live_view_forget(view);
	shown(player, player->ahead_index, player->ahead);
	return live_view_update(view, TAKE_PTR(player->ahead));
}

int live_player_back(struct live_player *player, struct live_view *view)
{
	autorun struct run *run = NULL, *before = NULL;
	size_t index = 0, before_index = 0;
	int r = read_before(player->recording, player->at, &index, &run);

	if (r < 0)
		return r;
	r = read_before(player->recording, index, &before_index, &before);
	if (r < 0 && r != -ENODATA)
		return r;
	if (!r && session_of(player, before_index) != session_of(player, index))
		run_free(TAKE_PTR(before));
	drop_ahead(player);
	shown(player, index, run);
	return live_view_back(view, TAKE_PTR(run), before);
}

/* ---- time ---- */

int live_player_stay_ns(struct live_player *player, uint64_t *ret_ns)
{
	uint64_t ns = NSEC_PER_SEC; /* between observations, for any time between them */
	autorun struct run *run = NULL;
	int r = look_ahead(player);

	if (r < 0)
		return r;
	if (session_of(player, player->ahead_index) == session_of(player, player->at))
		r = recording_read(player->recording, player->at, &run);
	if (r < 0)
		return r;
	if (run)
		ns = player->ahead->duration_ns > run->duration_ns
			     ? player->ahead->duration_ns - run->duration_ns
			     : 0;
	*ret_ns = (uint64_t)((double)ns / player->speed);
	return 0;
}

bool live_player_ended(struct live_player *player)
{
	return look_ahead(player) == -ENODATA;
}
