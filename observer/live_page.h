/* SPDX-License-Identifier: MIT */
/* The live view's pages. Each draws the whole screen from the view alone. */
#ifndef OBSERVER_LIVE_PAGE_H
#define OBSERVER_LIVE_PAGE_H

#include "live_clients.h"
#include "live_player.h"
#include "live_view.h"

struct live_page {
	struct live_view *view;
	uint64_t interval_ns;
	bool paused;
	bool typing;		     /* the filter is being typed */
	bool show_clients;	     /* on the details, instead of the past */
	struct live_clients clients; /* of the selected service */
	size_t top;		     /* of the list: the first row that is shown */
	char clock[16];
	const char *host;
	struct live_player *player; /* NULL: it is live */
};

void live_draw_list(struct live_page *page);
void live_draw_detail(struct live_page *page);
void live_draw_help(struct live_page *page);

/* The first and the last line, which all pages share. */
void live_draw_head(const struct live_page *page);
void live_draw_foot(const struct live_page *page, const char *keys);

/* Notes about @only (NULL: all) on the lines from @y to @end, not included, with a title. */
void live_draw_notes(const struct live_page *page, const struct run_service *only, int y, int end);

/* A row of the help page's table of keys; sink_live.c has them, with what they do. */
struct live_key_help {
	const char *keys;
	const char *help;
};
extern const struct live_key_help live_key_helps[];
extern const size_t live_key_help_count;

#endif
