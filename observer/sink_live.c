// SPDX-License-Identifier: MIT
/* Keys and readings of the live view; see sink_live.h. live_page.h draws, live_view.h remembers. */
#include "sink_live.h"

#include <curses.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "live_page.h"
#include "live_screen.h"
#include "resource_sockets.h"
#include "sojourn/clock.h"

/* Looking for what runs out takes every socket and descriptor of the host. */
#define JUDGE_NS (5 * NSEC_PER_SEC)

#define KEY_ESC	      27
#define KEY_BACK_ONE  127
#define KEY_CONTROL_H 8
#define KEY_CONTROL_L 12

struct sink_live {
	const struct snapshot_source *source;
	struct live_view view;
	struct live_page page;
	uint64_t judged_ns;
	void (*draw)(struct live_page *page);
	void (*draw_back)(struct live_page *page); /* where help was asked for */
};

static void draw(struct sink_live *sink)
{
	live_screen_begin();
	sink->draw(&sink->page);
	live_screen_end();
}

static void note_time(struct live_page *page)
{
	time_t now = page->player ? (time_t)(page->player->wall_ns / NSEC_PER_SEC) : time(NULL);
	struct tm tm;

	strftime(page->clock, sizeof(page->clock), "%H:%M:%S", localtime_r(&now, &tm));
}

static bool is_own_netns(uint32_t netns)
{
	struct stat st;

	return !stat("/proc/self/ns/net", &st) && (uint32_t)st.st_ino == netns;
}

/* Of the service whose details are shown: every connection of the host is looked at for it. */
static void take_clients(struct sink_live *sink)
{
	struct live_clients *clients = &sink->page.clients;
	const struct live_row *row = live_view_selected(&sink->view);

	live_clients_done(clients);
	if (!sink->page.show_clients || sink->page.player || !row ||
	    !is_own_netns(row->service->netns))
		return;
	live_clients_begin(clients, row->service->port);
	if (!resource_sockets_tcp(resource_sockets_source(), SOCKET_BIT(SOCKET_ESTABLISHED),
				  SOCKET_PLAIN, live_clients_visit, clients))
		live_clients_end(clients);
}

static void note_reading(struct sink_live *sink)
{
	const struct run *total = sink->view.total;

	sink->page.host = total && total->host ? total->host : "";
	note_time(&sink->page);
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

	if (!r)
		r = judge(sink, total);
	if (!r)
		r = live_view_update(&sink->view, TAKE_PTR(total));
	if (!r)
		note_reading(sink);
	return r;
}

/* A reading forth or back, as far as there is one. */
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

/* The first reading says nothing of an interval: the second is shown at once. */
static int first(struct sink_live *sink)
{
	int r;

	if (!sink->page.player)
		return take_reading(sink);
	r = live_player_forward(sink->page.player, &sink->view);
	return r < 0 ? r : next(sink);
}

static int open_sink(const struct snapshot_source *source, uint64_t interval_ns,
		     struct live_player *player, struct sink_live **ret_sink)
{
	CLEANUP(cleanup_sink_live_close) struct sink_live *sink = calloc(1, sizeof(*sink));
	int r;

	if (!sink)
		return -ENOMEM;
	sink->source = source;
	sink->draw = live_draw_list;
	sink->page = (struct live_page){
		.view = &sink->view, .interval_ns = interval_ns, .player = player};
	live_view_init(&sink->view);
	r = first(sink);
	if (!r)
		r = live_screen_open();
	if (r < 0)
		return r;
	draw(sink);
	*ret_sink = TAKE_PTR(sink);
	return 0;
}

int sink_live_open(const struct snapshot_source *source, uint64_t interval_ns,
		   struct sink_live **ret_sink)
{
	return open_sink(source, interval_ns, NULL, ret_sink);
}

int sink_live_open_player(struct live_player *player, struct sink_live **ret_sink)
{
	return open_sink(NULL, 0, player, ret_sink);
}

bool sink_live_paused(const struct sink_live *sink)
{
	return sink->page.paused;
}

void sink_live_close(struct sink_live *sink)
{
	if (!sink)
		return;
	live_screen_close();
	live_clients_done(&sink->page.clients);
	live_view_done(&sink->view);
	free(sink);
}

int sink_live_interval(struct sink_live *sink)
{
	int r = sink->page.paused ? 0 : next(sink);

	if (!r)
		draw(sink);
	return r;
}

void sink_live_resize(struct sink_live *sink)
{
	live_screen_resize();
	draw(sink);
}

/* ---- keys ---- */

static void move_to(struct sink_live *sink, long row)
{
	long last = (long)sink->view.row_count - 1;

	row = row > last ? last : row;
	sink->view.selected = row > 0 ? (size_t)row : 0;
	take_clients(sink);
}

static int key_clients(struct sink_live *sink)
{
	sink->page.show_clients = !sink->page.show_clients;
	take_clients(sink);
	return 0;
}

static int key_up(struct sink_live *sink)
{
	move_to(sink, (long)sink->view.selected - 1);
	return 0;
}

static int key_down(struct sink_live *sink)
{
	move_to(sink, (long)sink->view.selected + 1);
	return 0;
}

static int key_page_up(struct sink_live *sink)
{
	move_to(sink, (long)sink->view.selected - live_screen_rows() / 2);
	return 0;
}

static int key_page_down(struct sink_live *sink)
{
	move_to(sink, (long)sink->view.selected + live_screen_rows() / 2);
	return 0;
}

static int key_home(struct sink_live *sink)
{
	move_to(sink, 0);
	return 0;
}

static int key_end(struct sink_live *sink)
{
	move_to(sink, (long)sink->view.row_count);
	return 0;
}

/* The next column to this side that the screen has room for. */
static int sort_by(struct sink_live *sink, size_t step)
{
	size_t sort = sink->view.sort;

	do
		sort = (sort + step) % live_column_count;
	while (live_columns[sort].from_width > live_screen_columns());
	sink->view.sort = sort;
	sink->view.reversed = false;
	return live_view_arrange(&sink->view);
}

static int key_left(struct sink_live *sink)
{
	return sort_by(sink, live_column_count - 1);
}

static int key_right(struct sink_live *sink)
{
	return sort_by(sink, 1);
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

static int key_step(struct sink_live *sink)
{
	sink->page.paused |= !!sink->page.player;
	return sink->page.player ? step(sink, live_player_forward) : 0;
}

static int key_step_back(struct sink_live *sink)
{
	sink->page.paused |= !!sink->page.player;
	return sink->page.player ? step(sink, live_player_back) : 0;
}

static int change_speed(struct live_player *player, double factor)
{
	if (player && player->speed * factor >= LIVE_PLAYER_SLOWEST &&
	    player->speed * factor <= LIVE_PLAYER_FASTEST)
		player->speed *= factor;
	return 0;
}

static int key_faster(struct sink_live *sink)
{
	return change_speed(sink->page.player, 2);
}

static int key_slower(struct sink_live *sink)
{
	return change_speed(sink->page.player, 0.5);
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
	sink->draw = live_draw_help;
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
	live_screen_resize();
	return 0;
}

/* clang-format off */
static const struct {
	int key;
	int (*press)(struct sink_live *sink);
} keys[] = {
	{KEY_UP, key_up}, {'k', key_up}, {KEY_DOWN, key_down}, {'j', key_down},
	{KEY_PPAGE, key_page_up}, {KEY_NPAGE, key_page_down},
	{KEY_HOME, key_home}, {'g', key_home}, {KEY_END, key_end}, {'G', key_end},
	{KEY_LEFT, key_left}, {'<', key_left}, {KEY_RIGHT, key_right}, {'>', key_right},
	{'c', key_clients}, {'r', key_reverse}, {'t', key_total}, {'p', key_pause}, {' ', key_pause},
	{'.', key_step}, {',', key_step_back}, {'+', key_faster}, {'=', key_faster},
	{'-', key_slower}, {'/', key_filter}, {'\r', key_detail}, {'\n', key_detail}, {KEY_ENTER, key_detail},
	{KEY_ESC, key_back}, {KEY_BACKSPACE, key_back}, {KEY_BACK_ONE, key_back},
	{'?', key_help}, {'h', key_help}, {KEY_F(1), key_help},
	{'q', key_quit}, {'Q', key_quit}, {KEY_F(10), key_quit}, {KEY_CONTROL_L, key_redraw},
};

const struct live_key_help live_key_helps[] = {
	{"up down j k", "choose a service (PgUp PgDn Home End too)"},
	{"Enter, Esc", "the service's details, and back"},
	{"left right <>", "sort by another column; r reverses"},
	{"/", "only services whose process, port or address has a text; Esc: all"},
	{"c", "on the details: clients by connections, or the past"},
	{"t", "figures since the begin, or of the last interval"},
	{"p, Space", "pause; what happens meanwhile is in the next interval"},
	{". , + -", "replay: a reading forth, back; faster, slower"},
	{"?, q", "this help; quit (Ctrl-C too)"},
};
/* clang-format on */
const size_t live_key_help_count = ARRAY_SIZE(live_key_helps);

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
	if (sink->draw == live_draw_help) {
		sink->draw = sink->draw_back;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].key == key)
			return keys[i].press(sink);
	}
	return 0;
}

int sink_live_keys(struct sink_live *sink)
{
	int key, r = 0;

	while (!r && (key = live_screen_key()) >= 0)
		r = press(sink, key);
	if (!r)
		draw(sink);
	return r;
}
