// SPDX-License-Identifier: MIT
/* The live view's help: its keys and its columns; see live_page.h. */
#include <stdio.h>

#include "live_page.h"
#include "live_screen.h"

static int draw_keys(int y)
{
	for (size_t i = 0; i < live_key_help_count; i++, y++) {
		live_put(y, 2, 14, LIVE_BOLD, LIVE_LEFT, live_key_helps[i].keys);
		live_line(y, 16, LIVE_PLAIN, "%s", live_key_helps[i].help);
	}
	return y;
}

static void draw_columns(int y)
{
	const char *group = NULL;

	for (size_t i = 0; i < live_column_count; i++, y++) {
		const struct live_column *column = &live_columns[i];
		char name[48];

		if (column->group)
			group = column->group;
		else if (column->title[0] != 'p')
			group = NULL;
		snprintf(name, sizeof(name), "%s%s%s", group ? group : "", group ? " " : "",
			 column->title);
		live_put(y, 2, 17, LIVE_BOLD, LIVE_LEFT, name);
		live_line(y, 19, LIVE_PLAIN, "%s", column->help);
	}
}

void live_draw_help(struct live_page *page)
{
	int y;

	live_draw_head(page);
	y = draw_keys(1);
	draw_columns(y);
	live_draw_foot(page, " any key: back");
}
