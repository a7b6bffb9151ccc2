// SPDX-License-Identifier: MIT
/* The live view's page of one service: stages as a bar and in numbers, the past, its state. */
#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "page.h"
#include "screen.h"
#include "sojourn/run_sum.h"
#include "sojourn/units.h"

#define LABEL_WIDTH	     17
#define LABEL_WIDTH_INFERRED 25 /* " a accept or socket queue" */
#define VALUE_WIDTH	     9

/* The bar's letters: readable without colour. Upper case where it is the server's own work. */
static const char letters[STAGE_RESIDENCE_END] = {
	[STAGE_ACCEPT_QUEUE] = 'a', [STAGE_SOCKET_QUEUE] = 'q', [STAGE_RECEIVE] = 'r',
	[STAGE_SERVICE] = 'S',	    [STAGE_RESPOND] = 'w',
};

static double residence_mean(const struct run_service *service)
{
	double sum = 0;

	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++)
		sum += run_stage_mean(service, stage);
	return sum;
}

/* Edges are rounded, not widths: they add up to the whole. */
static int draw_bar(const struct run_service *service, int y)
{
	int columns = live_screen_columns() - 2, x = 1;
	double all = residence_mean(service), sum = 0;
	char part[512];

	if (columns >= (int)sizeof(part))
		columns = (int)sizeof(part) - 1;
	if (!service->stages[STAGE_SERVICE].measured) {
		live_line(y, 1, LIVE_DIM, "how a request's time divides is not known");
		return y + 1;
	}
	if (all <= 0) {
		live_line(y, 1, LIVE_DIM, "no request was timed in this period");
		return y + 1;
	}
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++) {
		int end;

		sum += run_stage_mean(service, stage);
		end = 1 + (int)lround(sum / all * columns);
		if (end <= x)
			continue;
		memset(part, letters[stage], (size_t)(end - x));
		part[end - x] = 0;
		live_put(y, x, end - x, LIVE_STAGE + stage, LIVE_LEFT, part);
		x = end;
	}
	return y + 1;
}

/* Where the columns of numbers stand: further to the right, and closer, behind a long name of a stage. */
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

static void put_value(const struct columns *at, int y, int column, unsigned int style,
		      const char *text)
{
	live_put(y, at->begin + column * at->each, VALUE_WIDTH, style, LIVE_RIGHT, text);
}

static void put_time(const struct columns *at, int y, int column, double ns)
{
	char text[32];

	put_value(at, y, column, LIVE_PLAIN, live_format_time(ns, text, sizeof(text)));
}

static void put_count(const struct columns *at, int y, int column, uint64_t count)
{
	char text[32];

	put_value(at, y, column, LIVE_PLAIN, units_format_count(count, text, sizeof(text)));
}

static void draw_stage(const struct run_service *service, enum stage stage, int y)
{
	const struct run_stage *found = &service->stages[stage];
	const struct histogram *h = &found->histogram;
	const struct columns at = columns_of(service);
	double all = residence_mean(service);
	char text[64];

	snprintf(text, sizeof(text), " %c %s", stage < STAGE_RESIDENCE_END ? letters[stage] : ' ',
		 run_stage_label(service->stages, stage));
	live_put(y, 0, at.begin, LIVE_STAGE + stage, LIVE_LEFT, text);
	if (!found->measured) {
		live_line(y, at.begin + 1, LIVE_DIM, "not measured: %s",
			  found->reason ? found->reason : "no reason given");
		return;
	}
	put_count(&at, y, 0, h->count);
	put_time(&at, y, 1, h->count ? histogram_mean(h) : NAN);
	put_time(&at, y, 2, h->count ? (double)histogram_quantile(h, 0.5) : NAN);
	put_time(&at, y, 3, h->count ? (double)histogram_quantile(h, 0.99) : NAN);
	put_time(&at, y, 4, h->count ? (double)h->max : NAN);
	snprintf(text, sizeof(text), "%.1f %%",
		 all > 0 ? 100 * run_stage_mean(service, stage) / all : 0);
	put_value(&at, y, 5, LIVE_PLAIN, service->stages[STAGE_SERVICE].measured ? text : "-");
}

static int draw_stages(const struct run_service *service, int y)
{
	static const char *const titles[] = {"count", "mean", "p50", "p99", "max", "share"};
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;
	const struct columns at = columns_of(service);

	for (int i = 0; i < (int)ARRAY_SIZE(titles); i++)
		put_value(&at, y, i, LIVE_DIM, titles[i]);
	y++;
	for (enum stage stage = 0; stage < STAGE_RESIDENCE_END; stage++)
		draw_stage(service, stage, y++);
	live_put(y, 0, LABEL_WIDTH, LIVE_BOLD, LIVE_LEFT, "   residence");
	if (service->stages[STAGE_SERVICE].measured) {
		put_count(&at, y, 0, timed);
		put_time(&at, y, 1, timed ? residence_mean(service) : NAN);
	} else {
		live_line(y, at.begin + 1, LIVE_DIM, "not known without service");
	}
	y++;
	/* Those behind the response are measured only when asked for. */
	for (enum stage stage = STAGE_RESIDENCE_END; stage < STAGE_COUNT; stage++) {
		if (service->stages[stage].measured)
			draw_stage(service, stage, y++);
	}
	return y;
}

/* ---- the past ---- */

static const char *spark(double share)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	int level = (int)(share * 8);

	level = level > 7 ? 7 : level;
	return live_screen_utf8() ? bars[level] : ascii[level];
}

/* From 0 to the largest of the points shown; a blank is a point that is not known. */
static double draw_sparks(const double *points, size_t count, int y, int x)
{
	double max = 0;

	for (size_t i = 0; i < count; i++)
		max = points[i] > max ? points[i] : max;
	for (size_t i = 0; i < count; i++)
		live_put(y, x + (int)i, 1, LIVE_PLAIN, LIVE_LEFT,
			 isnan(points[i]) ? " " : spark(max > 0 ? points[i] / max : 0));
	return max;
}

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

static void draw_one_series(const struct live_history *history, enum live_series i, int y)
{
	int room = live_screen_columns() - LABEL_WIDTH - 2 * (VALUE_WIDTH + 5);
	size_t count = history->count, shown = room > 0 ? (size_t)room : 0;
	const double *points = history->points[i];
	char now[32], most[32];
	double max;

	shown = shown < count ? shown : count;
	live_put(y, 1, LABEL_WIDTH - 1, LIVE_PLAIN, LIVE_LEFT, series[i].label);
	series[i].format(count ? points[count - 1] : NAN, now, sizeof(now));
	live_put(y, LABEL_WIDTH, VALUE_WIDTH, LIVE_BOLD, LIVE_RIGHT, now);
	max = draw_sparks(points + count - shown, shown, y, LABEL_WIDTH + VALUE_WIDTH + 2);
	series[i].format(max, most, sizeof(most));
	live_line(y, LABEL_WIDTH + VALUE_WIDTH + 3 + (int)shown, LIVE_DIM, "max %s", most);
}

/* ---- its clients ---- */

/* Why there is nothing to show; NULL: there is. */
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
	char address[INET6_ADDRSTRLEN] = "?", count[32];

	inet_ntop(client->family, client->address, address, sizeof(address));
	live_put(y, 1, 42, LIVE_PLAIN, LIVE_LEFT, address);
	live_put(y, 44, VALUE_WIDTH, LIVE_BOLD, LIVE_RIGHT,
		 units_format_count(client->connections, count, sizeof(count)));
	live_line(y, 44 + VALUE_WIDTH, LIVE_PLAIN, "%7.1f %%",
		  100.0 * (double)client->connections / (double)page->clients.connections);
}

/* As many lines as the past has. */
static int draw_clients(const struct live_page *page, const struct run_service *service, int y)
{
	const char *reason = no_clients(page, service);
	char addresses[32], connections[32];
	size_t count = page->clients.count, shown = LIVE_SERIES - 1;

	if (reason) {
		live_line(y, 1, LIVE_DIM, "%s", reason);
		return y + LIVE_SERIES;
	}
	live_line(y, 1, LIVE_DIM, "clients now: %s addresses, %s connections%s",
		  units_format_count(count, addresses, sizeof(addresses)),
		  units_format_count(page->clients.connections, connections, sizeof(connections)),
		  page->clients.partial ? ", some left out" : "");
	for (size_t i = 0; i < count && i < shown; i++)
		draw_client(page, i, y + 1 + (int)i);
	return y + LIVE_SERIES;
}

/* ---- its state ---- */

static char *format_number(struct run_number number, char *buffer, size_t size)
{
	if (number.known)
		return units_format_count(number.value, buffer, size);
	snprintf(buffer, size, "-");
	return buffer;
}

static int draw_open(const struct live_row *row, int y)
{
	static const unsigned int styles[] = {
		[LIVE_CALM] = LIVE_PLAIN, [LIVE_OLD] = LIVE_NOTICE, [LIVE_HANGS] = LIVE_HUNG};
	const struct run_open *open = &row->service->open;
	uint64_t oldest_ns = row->open.oldest_ns;
	char a[32], b[32], c[32], d[32];

	live_line(y, 1, styles[row->open.urgency],
		  "open: read %s, unread %s, of these not accepted %s · oldest %s",
		  format_number(open->read, a, sizeof(a)),
		  format_number(open->unread, b, sizeof(b)),
		  format_number(open->unaccepted, c, sizeof(c)),
		  live_format_time(oldest_ns ? (double)oldest_ns : NAN, d, sizeof(d)));
	return y + 1;
}

static int draw_state(const struct run_service *service, int y)
{
	const struct run_accept_queue *queue = &service->accept_queue;
	char a[32], b[32], c[32], d[32];

	live_line(y++, 1, LIVE_PLAIN,
		  "connections %s · accepted %s · TIME_WAIT created %s · srtt %s",
		  format_number(service->connections, a, sizeof(a)),
		  units_format_count(service->accepted, b, sizeof(b)),
		  units_format_count(service->time_wait_created, c, sizeof(c)),
		  live_format_time(service->srtt_ns.known ? (double)service->srtt_ns.value : NAN, d,
				   sizeof(d)));
	live_line(y++, 1, LIVE_PLAIN, "accept queue %s, at most %s, limit %s · retransmits %s",
		  format_number(queue->depth, a, sizeof(a)),
		  format_number(queue->depth_max, b, sizeof(b)),
		  format_number(queue->limit, c, sizeof(c)),
		  units_format_count(service->retransmits, d, sizeof(d)));
	return y;
}

static int draw_closes(const struct run_service *service, int y)
{
	char text[256] = "", count[32];
	size_t used = 0;

	for (enum run_close i = 0; i < RUN_CLOSE_COUNT; i++) {
		if (!service->closes[i])
			continue;
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s %s", used ? " · " : "",
			run_close_names[i],
			units_format_count(service->closes[i], count, sizeof(count)));
	}
	live_line(y, 1, LIVE_PLAIN, "%s", used ? text : "no connection has ended");
	return y + 1;
}

static void draw_title(const struct live_page *page, const struct live_row *row)
{
	const struct run_service *service = row->service;
	char process[64], length[32];
	uint32_t pid = service->process_count ? service->processes[0].pid : 0;
	bool v6 = strchr(service->address, ':');

	live_format_process(service, process, sizeof(process));
	units_format_duration(row->seconds * 1e9, length, sizeof(length));
	live_line(1, 0, LIVE_BOLD, " %s %s%s%s:%u · %s %u · %s %s", service->protocol,
		  v6 ? "[" : "", service->address, v6 ? "]" : "", service->port, process, pid,
		  page->view->show_total ? "since the begin," : "in the last", length);
}

void live_draw_detail(struct live_page *page)
{
	const struct live_row *row = live_view_selected(page->view);
	int y = 2;

	live_draw_head(page);
	if (!row) {
		live_line(1, 0, LIVE_DIM, " no service matches");
	} else {
		draw_title(page, row);
		y = draw_bar(row->service, y);
		y = draw_stages(row->service, y);
		if (page->show_clients)
			y = draw_clients(page, row->service, y);
		for (enum live_series i = 0; !page->show_clients && row->history && i < LIVE_SERIES;
		     i++)
			draw_one_series(row->history, i, y++);
		y = draw_open(row, y);
		y = draw_state(row->service, y);
		y = draw_closes(row->service, y);
		live_draw_notes(page, row->service, y, live_screen_rows() - 1);
	}
	live_draw_foot(page,
		       page->player ? " Esc back  up/down other service  t total  Space pause  "
				      ",/. step  q quit"
				    : " Esc back  up/down other service  t total  p pause  ? help  "
				      "q quit");
}
