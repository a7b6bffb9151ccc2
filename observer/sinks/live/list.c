// SPDX-License-Identifier: MIT
/* The live view's first page: a row per service, findings below; see page.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bars.h"
#include "notes.h"
#include "page.h"
#include "sojourn/screen.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

#define LIST_TOP   4  /* head, what is shown, two lines of titles */
#define NARROW	   70 /* below, the clock is left out */
#define NOTES_MAX  32
#define NOTES_ROWS 6 /* at most, of the screen; fewer on a small one */

/* ---- what all pages have ---- */

static uint64_t lost(const struct run *run)
{
	const struct run_service none = {};
	uint64_t all = report_lost(run, &none), sum = all;

	for (size_t i = 0; i < run->service_count; i++)
		sum += report_lost(run, &run->services[i]) - all;
	return sum;
}

/* Print "every 1 s", or the position in a recording. */
static void format_pace(const struct live_page *page, char *buffer, size_t size)
{
	struct live_player *player = page->player;

	if (!player)
		snprintf(buffer, size, "every %s", as_setting((double)page->interval_ns));
	else
		snprintf(buffer, size, "replay %zu of %zu · x%g%s", player->at + 1,
			 player->recording->count, player->speed,
			 live_player_ended(player) ? " · END" : "");
}

void live_draw_head(const struct live_page *page)
{
	const struct run *total = page->view->total;
	char pace[96], text[256];
	int columns = screen_columns(), width;

	format_pace(page, pace, sizeof(pace));
	snprintf(text, sizeof(text), " sojourn live · %s · %s%s", page->host, pace,
		 page->paused ? " · PAUSED" : "");
	screen_put(0, 0, columns, SCREEN_TITLE, SCREEN_LEFT, text);
	if (!total)
		return;
	width = snprintf(text, sizeof(text), columns < NARROW ? " lost %ju " : " lost %ju  %s ",
			 (uintmax_t)lost(total), page->clock);
	screen_put(0, columns - width, width, SCREEN_TITLE, SCREEN_RIGHT, text);
}

void live_draw_foot(const struct live_page *page, const char *keys)
{
	int y = screen_rows() - 1;

	if (page->typing)
		screen_line(y, 0, SCREEN_BOLD, "Filter by process, port or address: %s_",
			    page->view->filter);
	else
		screen_line(y, 0, SCREEN_DIM, "%s", keys);
}

/* Write the notes to show; those of hanging servers come first. */
static size_t collect_notes(const struct live_view *view, const struct run_service *only,
			    struct live_note notes[static NOTES_MAX])
{
	const struct run *run = live_view_period(view);
	size_t count = 0;

	if (!run)
		return 0;
	for (int critical = 1; critical >= 0; critical--)
		for (size_t i = 0; i < run->service_count && count < NOTES_MAX; i++)
			if ((!only || only == &run->services[i]) &&
			    live_note_open(view, &run->services[i], &notes[count]) &&
			    notes[count].critical == critical)
				count++;
	return count + live_notes(run, view->found, only, notes + count, NOTES_MAX - count);
}

void live_draw_notes(const struct live_page *page, const struct run_service *only, int y, int end)
{
	struct live_note notes[NOTES_MAX];
	size_t count = collect_notes(page->view, only, notes), shown = 0;

	if (end - y < 2)
		return;
	if (!count)
		screen_line(y, 0, SCREEN_DIM, "Findings: none");
	else
		screen_line(y, 0, SCREEN_BOLD, "Findings: %zu", count);
	for (int line = y + 1; line < end && shown < count; line++, shown++)
		screen_line(line, 0, notes[shown].critical ? SCREEN_ALARM : SCREEN_NOTICE, "%s %s",
			    notes[shown].critical ? "!" : "-", notes[shown].text);
	if (shown < count)
		screen_line(end - 1, screen_columns() - 12, SCREEN_BOLD, " … %zu more",
			    count - shown);
}

/* ---- the list ---- */

static bool is_shown(const struct live_column *column)
{
	return screen_columns() >= column->from_width;
}

/* The process column takes the remaining width, up to a name and a count in full. */
static int width_of(size_t index)
{
	int spare = screen_columns() - 1;

	if (index != LIVE_COLUMN_PROCESS)
		return live_columns[index].width;
	for (size_t i = 0; i < live_column_count; i++) {
		if (is_shown(&live_columns[i]))
			spare -= live_columns[i].width + (i > 0);
	}
	if (spare < 0)
		spare = 0;
	return live_columns[index].width + (spare > 12 ? 12 : spare);
}

static void draw_title(const struct live_page *page, size_t index, int x, int width)
{
	const struct live_column *column = &live_columns[index];
	bool sorted = page->view->sort == index;
	char text[32];

	snprintf(text, sizeof(text), "%s%s", column->title,
		 !sorted				? ""
		 : column->left != page->view->reversed ? "▲"
							: "▼");
	screen_put(3, x, width, sorted ? SCREEN_BOLD : SCREEN_PLAIN,
		   column->left ? SCREEN_LEFT : SCREEN_RIGHT, text);
	if (column->group)
		screen_put(2, x, (int)strlen(column->group), SCREEN_DIM, SCREEN_LEFT,
			   column->group);
}

/* ---- beside the columns, where the screen is wide ---- */

#define DRAWN_MIN  12 /* columns of room, below which nothing is drawn */
#define BAR_MAX	   40
#define TREND_FROM 30 /* columns that have room for a chart beside the bar */

/* Drawings of a row from @x on; width 0: no room. */
struct drawn {
	int x;
	int bar, trend;
};

static struct drawn drawn_of(void)
{
	struct drawn drawn = {.x = 2};
	int room;

	for (size_t i = 0; i < live_column_count; i++)
		drawn.x += is_shown(&live_columns[i]) ? width_of(i) + 1 : 0;
	room = screen_columns() - drawn.x - 1;
	if (room < DRAWN_MIN)
		return drawn;
	drawn.bar = room < TREND_FROM ? room : room / 2 > BAR_MAX ? BAR_MAX : room / 2;
	drawn.trend = room < TREND_FROM ? 0 : room - drawn.bar - 2;
	return drawn;
}

static void draw_drawn(const struct live_row *row, int y)
{
	const struct live_history *history = row->history;
	const struct drawn drawn = drawn_of();
	size_t count = history ? history->count : 0;
	size_t shown = count < (size_t)drawn.trend ? count : (size_t)drawn.trend;

	if (drawn.bar)
		live_draw_bar(row->service, y, drawn.x, drawn.bar);
	if (shown)
		screen_chart(y, drawn.x + drawn.bar + 2, 1, SCREEN_ACCENT,
			     history->points[LIVE_REQUESTS] + count - shown, shown);
}

static void draw_drawn_titles(void)
{
	const struct drawn drawn = drawn_of();

	if (drawn.bar)
		screen_put(3, drawn.x, drawn.bar, SCREEN_DIM, SCREEN_LEFT,
			   "queue, receive, service, respond");
	if (drawn.trend)
		screen_put(3, drawn.x + drawn.bar + 2, drawn.trend, SCREEN_DIM, SCREEN_LEFT,
			   "REQ/S so far");
}

static unsigned int row_style(const struct live_row *row, bool selected)
{
	if (row->open.urgency == LIVE_HANGS)
		return SCREEN_HUNG;
	if (selected)
		return SCREEN_TITLE;
	return row->open.urgency == LIVE_OLD ? SCREEN_NOTICE : SCREEN_PLAIN;
}

static void draw_row(const struct live_page *page, size_t index, int y)
{
	const struct live_row *row = &page->view->rows[index];
	bool selected = index == page->view->selected;
	unsigned int style = row_style(row, selected);
	int x = 1;

	screen_put(y, 0, screen_columns(), style, SCREEN_LEFT, selected ? ">" : "");
	for (size_t i = 0; i < live_column_count; i++) {
		const struct live_column *column = &live_columns[i];
		int width = width_of(i);
		char text[64];

		if (!is_shown(column))
			continue;
		live_column_format(column, row, text, sizeof(text));
		screen_put(y, x, width,
			   i == LIVE_COLUMN_WAITING && row->waits && style == SCREEN_PLAIN
				   ? SCREEN_NOTICE
				   : style,
			   column->left ? SCREEN_LEFT : SCREEN_RIGHT, text);
		x += width + 1;
	}
	draw_drawn(row, y);
}

static void draw_titles(const struct live_page *page)
{
	int x = 1;

	for (size_t i = 0; i < live_column_count; i++) {
		if (!is_shown(&live_columns[i]))
			continue;
		draw_title(page, i, x, width_of(i));
		x += width_of(i) + 1;
	}
	draw_drawn_titles();
}

/* Draw the first hanging service, and how many hang, in the line that is always there. */
static bool draw_hung(const struct live_view *view, const struct run *run)
{
	struct live_note first, note;
	size_t hung = 0;

	for (size_t i = 0; i < run->service_count; i++) {
		if (!live_note_open(view, &run->services[i], &note) || !note.critical)
			continue;
		if (!hung++)
			first = note;
	}
	if (hung > 1)
		screen_line(1, 0, SCREEN_HUNG, " %zu SERVICES HANG: %s", hung, first.text);
	else if (hung)
		screen_line(1, 0, SCREEN_HUNG, " HUNG: %s", first.text);
	return hung;
}

static void format_open(const struct live_view *view, const struct run *run, char *buffer,
			size_t size)
{
	uint64_t count = 0, oldest_ns = 0;

	for (size_t i = 0; i < run->service_count; i++) {
		const struct live_open open = live_view_open(view, &run->services[i]);

		count += open.count;
		oldest_ns = open.oldest_ns > oldest_ns ? open.oldest_ns : oldest_ns;
	}
	*buffer = 0;
	if (count)
		snprintf(buffer, size, " · open %s, oldest %s", live_count((double)count),
			 live_time(oldest_ns ? (double)oldest_ns : NAN));
}

static void draw_period(const struct live_page *page)
{
	const struct live_view *view = page->view;
	const struct run *run = live_view_period(view);
	char open[96], where[48] = "";

	if (!run) {
		screen_line(1, 0, SCREEN_DIM, "the first interval has not ended yet");
		return;
	}
	if (draw_hung(view, run))
		return;
	format_open(view, run, open, sizeof(open));
	if (run->namespaces.observed)
		snprintf(where, sizeof(where), " in %ju network namespaces",
			 (uintmax_t)run->namespaces.observed);
	screen_line(1, 0, SCREEN_PLAIN, " %zu of %zu services%s%s%s · %s %s%s", view->row_count,
		    run->service_count, where, view->filter[0] ? " match " : "", view->filter,
		    view->show_total ? "since the start," : "in the last",
		    as_setting((double)run->duration_ns), open);
}

/* Return how many lines the findings get: a title and the lines left below the rows, within limits. */
static int notes_height(const struct live_page *page)
{
	int room = screen_rows() - 1 - LIST_TOP, spare = room - (int)page->view->row_count;
	int least = room / 3;

	if (spare > least)
		least = spare;
	return least > NOTES_ROWS ? NOTES_ROWS : least;
}

void live_draw_list(struct live_page *page)
{
	int end = screen_rows() - 1 - notes_height(page);
	size_t rows = end > LIST_TOP ? (size_t)(end - LIST_TOP) : 0;

	if (page->view->selected < page->top)
		page->top = page->view->selected;
	if (rows && page->view->selected >= page->top + rows)
		page->top = page->view->selected - rows + 1;
	live_draw_head(page);
	draw_period(page);
	draw_titles(page);
	for (size_t i = 0; i < rows && page->top + i < page->view->row_count; i++)
		draw_row(page, page->top + i, LIST_TOP + (int)i);
	live_draw_notes(page, NULL, end, screen_rows() - 1);
	live_draw_foot(page, page->player
				     ? " ? help  Enter details  t total  Space pause  ,/. step  "
				       "+/- speed  q quit"
				     : " ? help  Enter details  </> sort  r reverse  / filter  t "
				       "total  p pause  q quit");
}
