// SPDX-License-Identifier: MIT
/* Keys and readings of the live view; see live.h. page.h draws, view.h remembers. */
#include "live.h"

#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "page.h"
#include "sojourn/screen.h"
#include "sojourn/clock.h"

/* A look for findings reads every socket and descriptor of the host. */
#define JUDGE_NS (5 * NSEC_PER_SEC)

#define KEY_ESC	      27
#define KEY_BACK_ONE  127
#define KEY_CONTROL_H 8
#define KEY_CONTROL_L 12

struct sink_live {
	struct sink sink;
	const struct snapshot_source *source;
	struct live_view view;
	struct live_page page;
	uint64_t judged_ns;
	void (*draw)(struct live_page *page);
	void (*draw_back)(struct live_page *page); /* the page from which help was opened */
};

static void draw(struct sink_live *sink)
{
	screen_begin();
	sink->draw(&sink->page);
	screen_end();
}

/* Find clients of the service whose details are shown. */
static void take_clients(struct sink_live *sink)
{
	const struct live_row *row = live_view_selected(&sink->view);
	struct live_page *page = &sink->page;

	snapshot_clients_free(&page->clients);
	page->clients_known =
		page->below == LIVE_CLIENTS && !page->player && row &&
		!sink->source->clients(sink->source->context, row->service, &page->clients);
}

static void note_reading(struct sink_live *sink)
{
	const struct run *total = sink->view.total;
	struct live_page *page = &sink->page;
	time_t now = page->player ? (time_t)(page->player->wall_ns / NSEC_PER_SEC) : time(NULL);
	struct tm tm;

	page->host = total && total->host ? total->host : "";
	strftime(page->clock, sizeof(page->clock), "%H:%M:%S", localtime_r(&now, &tm));
	take_clients(sink);
}

static int judge(struct sink_live *sink, struct run *total)
{
	uint64_t now = clock_now_ns();

	if (now - sink->judged_ns < JUDGE_NS)
		return 0;
	sink->judged_ns = now;
	return sink->source->judge(sink->source->context, total);
}

static int take_reading(struct sink_live *sink)
{
	autorun struct run *total = NULL;
	int r = sink->source->brief(sink->source->context, &total);

	if (!r && sink->source->calls)
		r = sink->source->calls(sink->source->context, total);
	if (!r)
		r = judge(sink, total);
	if (!r)
		r = live_view_update(&sink->view, TAKE_PTR(total));
	if (!r)
		note_reading(sink);
	return r;
}

/* Go one reading forward or back, if there is one. */
static int step(struct sink_live *sink,
		int (*go)(struct live_player *player, struct live_view *view))
{
	int r = go(sink->page.player, &sink->view);

	note_reading(sink);
	return r == -ENODATA ? 0 : r;
}

static int next(struct sink_live *sink)
{
	return sink->page.player ? step(sink, live_player_forward) : take_reading(sink);
}

/* ---- help: its keys, which are below, and its columns ---- */

/* clang-format off */
static const struct {
	const char *keys;
	const char *help;
} helps[] = {
	{"up down j k", "choose a service (PgUp PgDn Home End too)"},
	{"Enter, Esc", "the service's details, and back"},
	{"left right <>", "sort by another column; r reverses"},
	{"/", "only services whose process, port or address has a text; Esc: all"},
	{"c", "on the details: clients, routes (--route), calls (--calls), or the past"},
	{"t", "figures since the start, or of the last interval"},
	{"p, Space", "pause; what happens meanwhile is in the next interval"},
	{". , + -", "replay: a reading forth, back; faster, slower"},
	{"?, q", "this help; quit (Ctrl-C too)"},
};
/* clang-format on */

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
		screen_put(y, 2, 17, SCREEN_BOLD, SCREEN_LEFT, name);
		screen_line(y, 19, SCREEN_PLAIN, "%s", column->help);
	}
}

static void draw_help(struct live_page *page)
{
	int y = 1;

	live_draw_head(page);
	for (size_t i = 0; i < ARRAY_SIZE(helps); i++, y++) {
		screen_put(y, 2, 14, SCREEN_BOLD, SCREEN_LEFT, helps[i].keys);
		screen_line(y, 16, SCREEN_PLAIN, "%s", helps[i].help);
	}
	draw_columns(y);
	live_draw_foot(page, " any key: back");
}

/* ---- keys ---- */

static void move_to(struct sink_live *sink, long row)
{
	long last = (long)sink->view.row_count - 1;

	row = row > last ? last : row;
	sink->view.selected = row > 0 ? (size_t)row : 0;
	take_clients(sink);
}

static bool is_empty(const struct run_service *service, enum live_below below)
{
	return (below == LIVE_ROUTES && !service->routes.count) ||
	       (below == LIVE_CALLS && !service->timed_call_count);
}

/* Of a service without routes or calls these are left out. */
static int key_below(struct sink_live *sink)
{
	const struct live_row *row = live_view_selected(&sink->view);
	struct live_page *page = &sink->page;

	do
		page->below = (page->below + 1) % LIVE_BELOW_COUNT;
	while (row && is_empty(row->service, page->below));
	take_clients(sink);
	return 0;
}

/* Choose another row, @by rows further down; beyond the ends it is the first or the last. */
static int key_move(struct sink_live *sink, int by)
{
	move_to(sink, (long)sink->view.selected + by);
	return 0;
}

static int key_page(struct sink_live *sink, int by)
{
	return key_move(sink, by * screen_rows() / 2);
}

/* Sort by the next column to the right or left that the screen has room for, around the ends. */
static int key_sort(struct sink_live *sink, int by)
{
	size_t sort = sink->view.sort;

	do
		sort = (sort + live_column_count + (size_t)by) % live_column_count;
	while (live_columns[sort].from_width > screen_columns());
	sink->view.sort = sort;
	sink->view.reversed = false;
	return live_view_arrange(&sink->view);
}

static int key_reverse(struct sink_live *sink)
{
	sink->view.reversed = !sink->view.reversed;
	return live_view_arrange(&sink->view);
}

static int key_total(struct sink_live *sink)
{
	sink->view.show_total = !sink->view.show_total;
	return live_view_arrange(&sink->view);
}

static int key_pause(struct sink_live *sink)
{
	sink->page.paused = !sink->page.paused;
	return 0;
}

/* ---- keys of a replay; without one they do nothing ---- */

static int key_step(struct sink_live *sink, int by)
{
	sink->page.paused |= !!sink->page.player;
	if (!sink->page.player)
		return 0;
	return step(sink, by > 0 ? live_player_forward : live_player_back);
}

static int key_speed(struct sink_live *sink, int by)
{
	struct live_player *player = sink->page.player;
	double speed = player ? player->speed * (by > 0 ? 2 : 0.5) : 0;

	if (speed >= LIVE_PLAYER_SLOWEST && speed <= LIVE_PLAYER_FASTEST)
		player->speed = speed;
	return 0;
}

static int key_filter(struct sink_live *sink)
{
	sink->page.typing = true;
	return 0;
}

static int key_detail(struct sink_live *sink)
{
	sink->draw = live_draw_detail;
	return 0;
}

/* Back from the details; on the list, back to all services. */
static int key_back(struct sink_live *sink)
{
	if (sink->draw == live_draw_list)
		sink->view.filter[0] = 0;
	sink->draw = live_draw_list;
	return live_view_arrange(&sink->view);
}

static int key_help(struct sink_live *sink)
{
	sink->draw_back = sink->draw;
	sink->draw = draw_help;
	return 0;
}

static int key_quit(struct sink_live *sink)
{
	(void)sink;
	return -ECANCELED;
}

static int key_redraw(struct sink_live *sink)
{
	(void)sink;
	screen_resize();
	return 0;
}

/* clang-format off */
static const struct {
	int key;
	int (*press)(struct sink_live *sink);
	int (*go)(struct sink_live *sink, int by); /* in place of press() */
	int by;
} keys[] = {
	{KEY_UP, .go = key_move, .by = -1}, {'k', .go = key_move, .by = -1},
	{KEY_DOWN, .go = key_move, .by = 1}, {'j', .go = key_move, .by = 1},
	{KEY_PPAGE, .go = key_page, .by = -1}, {KEY_NPAGE, .go = key_page, .by = 1},
	{KEY_HOME, .go = key_move, .by = INT_MIN}, {'g', .go = key_move, .by = INT_MIN},
	{KEY_END, .go = key_move, .by = INT_MAX}, {'G', .go = key_move, .by = INT_MAX},
	{KEY_LEFT, .go = key_sort, .by = -1}, {'<', .go = key_sort, .by = -1},
	{KEY_RIGHT, .go = key_sort, .by = 1}, {'>', .go = key_sort, .by = 1},
	{'.', .go = key_step, .by = 1}, {',', .go = key_step, .by = -1},
	{'+', .go = key_speed, .by = 1}, {'=', .go = key_speed, .by = 1}, {'-', .go = key_speed, .by = -1},
	{'c', .press = key_below}, {'r', .press = key_reverse}, {'t', .press = key_total},
	{'p', .press = key_pause}, {' ', .press = key_pause}, {'/', .press = key_filter},
	{'\r', .press = key_detail}, {'\n', .press = key_detail}, {KEY_ENTER, .press = key_detail},
	{KEY_ESC, .press = key_back}, {KEY_BACKSPACE, .press = key_back}, {KEY_BACK_ONE, .press = key_back},
	{'?', .press = key_help}, {'h', .press = key_help}, {KEY_F(1), .press = key_help},
	{'q', .press = key_quit}, {'Q', .press = key_quit}, {KEY_F(10), .press = key_quit},
	{KEY_CONTROL_L, .press = key_redraw},
};
/* clang-format on */

static int type_filter(struct sink_live *sink, int key)
{
	char *filter = sink->view.filter;
	size_t length = strlen(filter);

	if (key == '\r' || key == '\n' || key == KEY_ENTER || key == KEY_ESC)
		sink->page.typing = false;
	if (key == KEY_ESC)
		filter[0] = 0;
	else if (length && (key == KEY_BACKSPACE || key == KEY_BACK_ONE || key == KEY_CONTROL_H))
		filter[length - 1] = 0;
	else if (key >= ' ' && key <= '~' && length + 1 < sizeof(sink->view.filter)) {
		filter[length] = (char)key;
		filter[length + 1] = 0;
	}
	return live_view_arrange(&sink->view);
}

static int press(struct sink_live *sink, int key)
{
	if (sink->page.typing)
		return type_filter(sink, key);
	if (sink->draw == draw_help) {
		sink->draw = sink->draw_back;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].key == key)
			return keys[i].go ? keys[i].go(sink, keys[i].by) : keys[i].press(sink);
	}
	return 0;
}

/* ---- the sink ---- */

static struct sink_live *of(struct sink *sink)
{
	return (struct sink_live *)sink;
}

static int interval(struct sink *sink)
{
	int r = of(sink)->page.paused ? 0 : next(of(sink));

	if (!r)
		draw(of(sink));
	return r;
}

static int fd_of(const struct sink *sink)
{
	(void)sink;
	return STDIN_FILENO;
}

/* A terminal that is gone is always readable and never has a key. */
static int run(struct sink *sink, short revents)
{
	int key, r = 0;

	if (!revents)
		return 0;
	if (revents & (POLLHUP | POLLERR | POLLNVAL))
		return -ECANCELED;
	while (!r && (key = screen_key()) >= 0)
		r = press(of(sink), key);
	if (!r)
		draw(of(sink));
	return r;
}

static void resize(struct sink *sink)
{
	screen_resize();
	draw(of(sink));
}

static void close_sink(struct sink *sink)
{
	screen_close();
	snapshot_clients_free(&of(sink)->page.clients);
	live_view_done(&of(sink)->view);
	free(sink);
}

static const struct sink_operations operations = {
	.interval = interval, .fd = fd_of, .run = run, .resize = resize, .close = close_sink};

/* Open a page of @source, or of @page's player. */
static int open_sink(const struct snapshot_source *source, const struct live_page *page,
		     struct sink **ret_sink)
{
	struct sink_live *sink = calloc(1, sizeof(*sink));
	struct live_player *player = page->player;
	int r;

	if (!sink)
		return -ENOMEM;
	sink->sink.operations = &operations;
	sink->source = source;
	sink->draw = live_draw_list;
	sink->page = *page;
	sink->page.view = &sink->view;
	live_view_init(&sink->view);
	r = player ? live_player_forward(player, &sink->view) : 0;
	/* A recording's first reading says nothing of an interval: the second is shown at once. */
	if (r >= 0)
		r = next(sink);
	if (!r)
		r = screen_open(stdout, stdin);
	if (r < 0) {
		sink_close(&sink->sink);
		return r;
	}
	draw(sink);
	*ret_sink = &sink->sink;
	return 0;
}

int sink_live_open(const struct snapshot_source *source, uint64_t interval_ns,
		   struct sink **ret_sink)
{
	const struct live_page page = {.interval_ns = interval_ns};

	return open_sink(source, &page, ret_sink);
}

int sink_live_open_player(struct live_player *player, struct sink **ret_sink)
{
	const struct live_page page = {.player = player};

	return open_sink(NULL, &page, ret_sink);
}

bool sink_live_paused(const struct sink *sink)
{
	return ((const struct sink_live *)sink)->page.paused;
}
