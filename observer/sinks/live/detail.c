// SPDX-License-Identifier: MIT
/* The live view's page of one service: stages as a bar and in numbers, the past, its state. */
#include <netinet/in.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bars.h"
#include "page.h"
#include "sojourn/address.h"
#include "sojourn/screen.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define LABEL_WIDTH	     17
#define LABEL_WIDTH_INFERRED 25 /* " a accept or socket queue" */
#define VALUE_WIDTH	     9
#define WIDE		     150 /* columns from which on there is room beside the numbers */
#define STATE_LINES	     4	 /* below the past */
#define CHART_MAX	     8	 /* lines */

static int draw_bar(const struct run_service *service, int y)
{
	if (!live_draw_bar(service, y, 1, screen_columns() - 2))
		screen_line(y, 1, SCREEN_DIM, "%s",
			    service->stages[STAGE_SERVICE].measured
				    ? "no request was timed in this period"
				    : "how a request's time divides is not known");
	return y + 1;
}

/*
 * Positions of the columns of numbers: further to the right, and closer, after a long stage name.
 */
struct columns {
	int begin;
	int each;
};

static struct columns columns_of(const struct run_service *service)
{
	return run_accept_is_inferred(service->stages)
		       ? (struct columns){LABEL_WIDTH_INFERRED, VALUE_WIDTH}
		       : (struct columns){LABEL_WIDTH, VALUE_WIDTH + 1};
}

/* Return the strip to the right of the numbers. */
static struct live_strip strip_of(const struct run_service *service)
{
	const struct columns at = columns_of(service);
	int x = at.begin + 6 * at.each + 3;

	return live_strip_of(service, x, screen_columns() - x - 6);
}

static void put_value(const struct columns *at, int y, int column, unsigned int style,
		      const char *text)
{
	screen_put(y, at->begin + column * at->each, VALUE_WIDTH, style, SCREEN_RIGHT, text);
}

static void put_time(const struct columns *at, int y, int column, double ns)
{
	put_value(at, y, column, SCREEN_PLAIN, live_time(ns));
}

static void put_count(const struct columns *at, int y, int column, uint64_t count)
{
	put_value(at, y, column, SCREEN_PLAIN, as_count(count));
}

/* @share: part of the residence; NAN: not known. */
static void draw_figures(const struct columns *at, const struct run_stage *found, double share,
			 int y)
{
	const struct histogram *h = &found->histogram;
	char text[32] = "-";

	put_count(at, y, 0, h->count);
	put_time(at, y, 1, h->count ? histogram_mean(h) : NAN);
	put_time(at, y, 2, h->count ? (double)histogram_quantile(h, 0.5) : NAN);
	put_time(at, y, 3, h->count ? (double)histogram_quantile(h, 0.99) : NAN);
	put_time(at, y, 4, h->count ? (double)h->max : NAN);
	if (!isnan(share))
		units_format_share(100 * share, text, sizeof(text));
	put_value(at, y, 5, SCREEN_PLAIN, text);
}

static bool is_wide(void)
{
	return screen_columns() >= WIDE;
}

static void draw_stage(const struct run_service *service, enum stage stage, int y)
{
	const struct run_stage *found = &service->stages[stage];
	const struct columns at = columns_of(service);
	double all = run_residence_mean(service);
	char text[64];

	snprintf(text, sizeof(text), " %s %s", live_stage_letter(stage),
		 run_stage_label(service->stages, stage));
	text_words(text);
	screen_put(y, 0, at.begin, SCREEN_STAGE + stage, SCREEN_LEFT, text);
	if (!found->measured) {
		screen_line(y, at.begin + 1, SCREEN_DIM, "not measured: %s",
			    found->reason ? found->reason : "no reason given");
		return;
	}
	draw_figures(&at, found,
		     !service->stages[STAGE_SERVICE].measured ? NAN
		     : all > 0				      ? run_stage_mean(service, stage) / all
							      : 0,
		     y);
	if (is_wide()) {
		const struct live_strip strip = strip_of(service);

		live_draw_strip(&strip, &found->histogram, SCREEN_STAGE + stage, y);
	}
}

/* Draw the parts of service if they were requested. */
static int draw_split(const struct run_service *service, int y)
{
	const struct columns at = columns_of(service);
	char text[64];

	for (enum run_cpu i = 0; service->cpu->measured && i < RUN_CPU_COUNT; i++, y++) {
		snprintf(text, sizeof(text), "     %s", run_cpu_names[i]);
		screen_put(y, 0, at.begin, SCREEN_PLAIN, SCREEN_LEFT, text);
		draw_figures(&at, &service->cpu[i], NAN, y);
	}
	return y;
}

static void draw_residence(const struct run_service *service, int y)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;
	const struct columns at = columns_of(service);

	screen_put(y, 0, LABEL_WIDTH, SCREEN_BOLD, SCREEN_LEFT, "   residence");
	if (service->stages[STAGE_SERVICE].measured) {
		put_count(&at, y, 0, timed);
		put_time(&at, y, 1, timed ? run_residence_mean(service) : NAN);
	} else {
		screen_line(y, at.begin + 1, SCREEN_DIM, "not known without service");
	}
}

static int draw_stages(const struct run_service *service, int y)
{
	static const char *const titles[] = {"count", "mean", "p50", "p99", "max", "share"};
	const struct columns at = columns_of(service);

	for (int i = 0; i < (int)ARRAY_SIZE(titles); i++)
		put_value(&at, y, i, SCREEN_DIM, titles[i]);
	if (is_wide()) {
		const struct live_strip strip = strip_of(service);

		live_draw_axis(&strip, y);
	}
	y++;
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++) {
		draw_stage(service, stage, y++);
		if (stage == STAGE_SERVICE)
			y = draw_split(service, y);
	}
	draw_residence(service, y++);
	/* Stages after the response are measured only on request. */
	for (enum stage stage = STAGE_RESIDENCE_END; stage < STAGE_COUNT; stage++) {
		if (service->stages[stage].measured)
			draw_stage(service, stage, y++);
	}
	return y;
}

/* ---- the past ---- */

static const struct {
	const char *label;
	char *(*format)(double value, char *buffer, size_t size);
} series[LIVE_SERIES] = {
	[LIVE_REQUESTS] = {"requests/s", live_format_count},
	[LIVE_ACCEPTS] = {"accepts/s", live_format_count},
	[LIVE_QUEUE_P99] = {"socket queue p99", live_format_time},
	[LIVE_SERVICE_P99] = {"service p99", live_format_time},
	[LIVE_ACCEPT_QUEUE] = {"accept queue", live_format_count},
	[LIVE_TIME_WAIT] = {"TIME_WAIT", live_format_count},
	[LIVE_FDS] = {"descriptors", live_format_count},
};

/* The place of one series: its last line has the words. */
struct place {
	int y, x;
	int width, height;
};

static void draw_one_series(const struct live_history *history, enum live_series i,
			    const struct place *place)
{
	int chart = place->x + LABEL_WIDTH + VALUE_WIDTH + 2, foot = place->y + place->height - 1;
	int room = place->width - LABEL_WIDTH - 2 * (VALUE_WIDTH + 5);
	size_t count = history->count, shown = room > 0 ? (size_t)room : 0;
	const double *points = history->points[i];
	double max;

	shown = shown < count ? shown : count;
	screen_put(foot, place->x + 1, LABEL_WIDTH - 1, SCREEN_PLAIN, SCREEN_LEFT, series[i].label);
	screen_put(foot, place->x + LABEL_WIDTH, VALUE_WIDTH, SCREEN_BOLD, SCREEN_RIGHT,
		   series[i].format(count ? points[count - 1] : NAN, UNITS_ROOM, UNITS_TEXT));
	max = screen_chart(place->y, chart, place->height, SCREEN_ACCENT, points + count - shown,
			   shown);
	screen_line(foot, chart + 1 + (int)shown, SCREEN_DIM, "max %s",
		    series[i].format(max, UNITS_ROOM, UNITS_TEXT));
}

/* Lay out the past from line @y on: charts beside each other, as high as there is room. */
static struct place place_of_past(int y)
{
	int columns = is_wide() ? 2 : 1, lines = (LIVE_SERIES + columns - 1) / columns;
	int notes = screen_rows() > 30 ? 6 : 2;
	int height = (screen_rows() - 1 - y - STATE_LINES - notes) / lines;

	height = height < 1 ? 1 : height > CHART_MAX ? CHART_MAX : height;
	return (struct place){y, 0, screen_columns() / columns, height};
}

static int lines_of_past(const struct place *place)
{
	int columns = is_wide() ? 2 : 1;

	return (LIVE_SERIES + columns - 1) / columns * place->height;
}

static void draw_past(const struct live_history *history, const struct place *first)
{
	struct place place = *first;

	for (enum live_series i = 0; i < LIVE_SERIES; i++) {
		draw_one_series(history, i, &place);
		place.x += place.width;
		if (place.x + place.width <= screen_columns())
			continue;
		place.x = 0;
		place.y += place.height;
	}
}

/* ---- its clients ---- */

/* Return why there are no clients to show; NULL: there are. */
static const char *no_clients(const struct live_page *page, const struct run_service *service)
{
	if (page->player)
		return "clients: not in a recording";
	if (!strcmp(service->protocol, "udp"))
		return "clients: UDP has no connections";
	if (!page->clients_known)
		return "clients: not known, of another network namespace";
	return NULL;
}

static void draw_client(const struct live_page *page, size_t index, int y)
{
	const struct snapshot_client *client = &page->clients.list[index];
	char address[INET6_ADDRSTRLEN];

	address_format(client->family, client->address, 0, address, sizeof(address));
	screen_put(y, 1, 42, SCREEN_PLAIN, SCREEN_LEFT, address);
	screen_put(y, 44, VALUE_WIDTH, SCREEN_BOLD, SCREEN_RIGHT, as_count(client->connections));
	screen_line(y, 44 + VALUE_WIDTH, SCREEN_PLAIN, "%7.1f %%",
		    100.0 * (double)client->connections / (double)page->clients.connections);
}

/* Draw clients in the lines of the past. */
static void draw_clients(const struct live_page *page, const struct run_service *service, int y,
			 int lines)
{
	const char *reason = no_clients(page, service);
	size_t count = page->clients.count, shown = (size_t)lines - 1;

	if (reason) {
		screen_line(y, 1, SCREEN_DIM, "%s", reason);
		return;
	}
	screen_line(y, 1, SCREEN_DIM, "clients now: %s addresses, %s connections%s",
		    as_count(count), as_count(page->clients.connections),
		    page->clients.partial ? ", some left out" : "");
	for (size_t i = 0; i < count && i < shown; i++)
		draw_client(page, i, y + 1 + (int)i);
}

/* ---- its state ---- */

static const char *format_number(struct run_number number, char buffer[static UNITS_TEXT])
{
	return number.known ? units_format_count(number.value, buffer, UNITS_TEXT) : "-";
}

static int draw_open(const struct live_row *row, int y)
{
	static const unsigned int styles[] = {
		[LIVE_CALM] = SCREEN_PLAIN, [LIVE_OLD] = SCREEN_NOTICE, [LIVE_HANGS] = SCREEN_HUNG};
	const struct run_open *open = &row->service->open;
	uint64_t oldest_ns = row->open.oldest_ns;

	screen_line(y, 1, styles[row->open.urgency],
		    "open: read %s, unread %s, of these not accepted %s · oldest %s",
		    format_number(open->read, UNITS_ROOM), format_number(open->unread, UNITS_ROOM),
		    format_number(open->unaccepted, UNITS_ROOM),
		    live_time(oldest_ns ? (double)oldest_ns : NAN));
	return y + 1;
}

static int draw_state(const struct run_service *service, int y)
{
	const struct run_accept_queue *queue = &service->accept_queue;

	screen_line(y++, 1, SCREEN_PLAIN,
		    "connections %s · accepted %s · TIME_WAIT created %s · srtt %s",
		    format_number(service->connections, UNITS_ROOM), as_count(service->accepted),
		    as_count(service->time_wait_created),
		    live_time(service->srtt_ns.known ? (double)service->srtt_ns.value : NAN));
	screen_line(y++, 1, SCREEN_PLAIN, "accept queue %s, at most %s, limit %s · retransmits %s",
		    format_number(queue->depth, UNITS_ROOM),
		    format_number(queue->depth_max, UNITS_ROOM),
		    format_number(queue->limit, UNITS_ROOM), as_count(service->retransmits));
	return y;
}

static int draw_closes(const struct run_service *service, int y)
{
	char text[256] = "";
	size_t used = 0;

	for (enum run_close i = 0; i < RUN_CLOSE_COUNT; i++) {
		if (!service->closes[i])
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s",
					 used ? " · " : "", run_close_names[i],
					 as_count(service->closes[i]));
	}
	screen_line(y, 1, SCREEN_PLAIN, "%s", used ? text : "no connection has ended");
	return y + 1;
}

/* Messages and events are in no stage. Services that have none get no line. */
static int draw_pushes(const struct run_service *service, int y)
{
	const struct run_websocket *websocket = &service->websocket;
	const struct run_events *events = &service->events;
	uint64_t given_up = websocket->given_up + events->given_up;

	if (!websocket->connections && !websocket->messages_in && !websocket->messages_out &&
	    !events->responses && !events->count)
		return y;
	screen_line(y, 1, given_up ? SCREEN_NOTICE : SCREEN_PLAIN,
		    "WebSocket messages in %s, out %s · server-sent events %s · given up %s",
		    as_count(websocket->messages_in), as_count(websocket->messages_out),
		    as_count(events->count), as_count(given_up));
	return y + 1;
}

static void draw_title(const struct live_page *page, const struct live_row *row)
{
	const struct run_service *service = row->service;
	char process[64], where[RUN_PLACE_NAME];
	uint32_t pid = service->process_count ? service->processes[0].pid : 0;
	bool v6 = strchr(service->address, ':');

	live_format_process(service, process, sizeof(process));
	run_place_name(&service->place, where);
	screen_line(1, 0, SCREEN_BOLD, " %s %s%s%s:%u · %s%s%s %u · %s %s", service->protocol,
		    v6 ? "[" : "", service->address, v6 ? "]" : "", service->port, where,
		    *where ? " · " : "", process, pid,
		    page->view->show_total ? "since the start," : "in the last",
		    as_setting(row->seconds * 1e9));
}

static const char *keys_of(const struct live_page *page, const struct live_row *row)
{
	if (page->player)
		return " Esc back  up/down other service  t total  Space pause  ,/. step  q quit";
	if (row && row->service->timed_call_count)
		return " Esc back  up/down other service  c calls  t total  p pause  ? help  q "
		       "quit";
	return " Esc back  up/down other service  t total  p pause  ? help  q quit";
}

void live_draw_detail(struct live_page *page)
{
	const struct live_row *row = live_view_selected(page->view);
	struct place place;
	int y = 2;

	live_draw_head(page);
	if (!row) {
		screen_line(1, 0, SCREEN_DIM, " no service matches");
	} else {
		draw_title(page, row);
		y = draw_bar(row->service, y);
		y = draw_stages(row->service, y);
		place = place_of_past(y);
		if (page->below == LIVE_ROUTES)
			live_draw_routes(row, y, lines_of_past(&place));
		else if (page->below == LIVE_CALLS)
			live_draw_calls(row, page->view->total, y, lines_of_past(&place));
		else if (page->below == LIVE_CLIENTS)
			draw_clients(page, row->service, y, lines_of_past(&place));
		else if (row->history)
			draw_past(row->history, &place);
		y += lines_of_past(&place);
		y = draw_open(row, y);
		y = draw_state(row->service, y);
		y = draw_closes(row->service, y);
		y = draw_pushes(row->service, y);
		live_draw_notes(page, row->service, y, screen_rows() - 1);
	}
	live_draw_foot(page, keys_of(page, row));
}
