/* SPDX-License-Identifier: MIT */
/* The live view's pages. Each draws the whole screen from the view alone. */
#ifndef OBSERVER_SINKS_LIVE_PAGE_H
#define OBSERVER_SINKS_LIVE_PAGE_H

#include "model/snapshot.h"
#include "player.h"
#include "view.h"

/* The lines below the stages on the details. */
enum live_below {
	LIVE_PAST,
	LIVE_CLIENTS,
	LIVE_ROUTES, /* only if routes are counted */
	LIVE_CALLS,  /* only if calls are timed */
	LIVE_BELOW_COUNT
};

struct live_page {
	struct live_view *view;
	uint64_t interval_ns;
	bool paused;
	bool typing; /* the filter is being typed */
	enum live_below below;
	bool clients_known;
	struct snapshot_clients clients; /* of the selected service */
	size_t top;			 /* of the list: the first row that is shown */
	char clock[16];
	const char *host;
	struct live_player *player; /* NULL: it is live */
};

void live_draw_list(struct live_page *page);
void live_draw_detail(struct live_page *page);

/* routes.c: draw the routes of @row's service from line @y on, in so many @lines, at least three. */
void live_draw_routes(const struct live_row *row, int y, int lines);

/* calls.c: draw the calls of @row's service in the same way; @total: the last reading. */
void live_draw_calls(const struct live_row *row, const struct run *total, int y, int lines);

/* Draw the first and the last line, which all pages share. */
void live_draw_head(const struct live_page *page);
void live_draw_foot(const struct live_page *page, const char *keys);

/* Draw notes about @only (NULL: all) on the lines from @y to @end, not included, with a title. */
void live_draw_notes(const struct live_page *page, const struct run_service *only, int y, int end);

#endif
