// SPDX-License-Identifier: MIT
/*
 * null://: requests without time or I/O, which measure the driver itself: the ceiling of clock,
 * worker and statistics.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>

#include "sojourn/clock.h"

/* Requests per slot and turn of the loop; stop commands are seen in between. */
#define BURST 256

struct null {
	const struct engine_host *host;
	uv_idle_t turn;
	bool running[];
};

static enum engine_next null_exchange(struct null *null, uint32_t slot)
{
	struct engine_result result = {.error = RUN_NO_ERROR};

	result.start_ns = clock_now_ns();
	result.end_ns = clock_now_ns();
	return null->host->done(null->host, slot, &result);
}

static void null_turn(uv_idle_t *turn)
{
	struct null *null = turn->data;
	uint32_t running = 0;

	for (uint32_t slot = 0; slot < null->host->slots; slot++) {
		for (int i = 0; null->running[slot] && i < BURST; i++)
			null->running[slot] = null_exchange(null, slot) == ENGINE_AGAIN;
		running += null->running[slot];
	}
	if (!running)
		uv_idle_stop(turn);
}

static int null_prepare(const struct request *request, const struct link_settings *link,
			const struct target *target, void **ret_shared, char **ret_error)
{
	(void)request;
	(void)link;
	(void)target;
	(void)ret_error;
	*ret_shared = NULL;
	return 0;
}

static void null_release(void *shared)
{
	(void)shared;
}

static int null_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	struct null *null = calloc(1, sizeof(*null) + host->slots * sizeof(null->running[0]));

	(void)shared;
	if (!null)
		return -ENOMEM;
	null->host = host;
	null->turn.data = null;
	uv_idle_init(host->loop, &null->turn);
	*ret_state = null;
	return 0;
}

static void null_start(void *state, uint32_t slot)
{
	struct null *null = state;

	null->running[slot] = true;
	uv_idle_start(&null->turn, null_turn);
}

static void null_expire(void *state, uint64_t over_ns)
{
	(void)state;
	(void)over_ns;
}

static void null_close(void *state)
{
	struct null *null = state;

	uv_close((uv_handle_t *)&null->turn, NULL);
}

static void null_free(void *state)
{
	free(state);
}

const struct engine engine_null = {
	.scheme = "null",
	.unsampled = "the driver does not sample this kind of target",
	.prepare = null_prepare,
	.release = null_release,
	.open = null_open,
	.start = null_start,
	.expire = null_expire,
	.close = null_close,
	.free = null_free,
};
