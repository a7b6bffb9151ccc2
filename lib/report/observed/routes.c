// SPDX-License-Identifier: MIT
/*
 * The part of a report about requests by route (--route) or by command (--protocol). It names the one with most of the
 * time in service, and has a row for each. Neighbour: many.c, whose table is of services.
 */
#include <stdlib.h>

#include "parts.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

/* Rows unless verbose, and on a page that must be short. */
#define MOST_ROUTES 12U
#define FEW_ROUTES  6U

#define INDENT	      2
#define COUNT_COLUMNS 12
#define RATE_COLUMNS  10
#define CLASS_COLUMNS 7
#define TIME_COLUMNS  12
/* Routes with more columns than there are have a line of their own. */
#define NAME_LEAST 12U

/* The table of one service. */
struct table {
	const struct page *page;
	uint64_t span_ns;
	unsigned int name; /* columns of the route, with the indent */
	bool rates, classes;
	bool commands; /* these have errors, and no statuses */
	size_t shown;
	size_t count;
	struct run_route *routes[RUN_ROUTES_MOST];
};

static double service_ns(const struct run_route *route)
{
	return (double)route->service.sum;
}

/* Leave out columns that a narrow page has no room for. Return the columns for the route. */
static unsigned int lay_out(struct table *table, unsigned int width)
{
	unsigned int left = width - (width < COUNT_COLUMNS + 2 * TIME_COLUMNS
					     ? width
					     : COUNT_COLUMNS + 2 * TIME_COLUMNS);

	table->classes = left >= INDENT + NAME_LEAST + 2 * CLASS_COLUMNS;
	left -= table->classes ? 2 * CLASS_COLUMNS : 0;
	table->rates = left >= INDENT + NAME_LEAST + RATE_COLUMNS;
	left -= table->rates ? RATE_COLUMNS : 0;
	return left < INDENT + NAME_LEAST ? INDENT + NAME_LEAST : left;
}

static struct table table_of(const struct page *page, const struct run_service *service,
			     uint64_t span_ns)
{
	const struct run_routes *routes = &service->routes;
	struct table table = {.page = page, .span_ns = span_ns, .commands = routes->protocol};
	unsigned int room = lay_out(&table, page->width);
	size_t most = page->verbose ? RUN_ROUTES_MOST : page->tight ? FEW_ROUTES : MOST_ROUTES;

	for (size_t i = 0; i < routes->count && table.count < RUN_ROUTES_MOST; i++)
		if (routes->list[i].count || page->verbose)
			table.routes[table.count++] = &routes->list[i];
	qsort(table.routes, table.count, sizeof(*table.routes), run_route_compare);
	table.shown = table.count < most ? table.count : most;
	for (size_t i = 0; i < table.shown; i++) {
		unsigned int columns = INDENT + text_columns(table.routes[i]->route);

		if (columns <= room && columns > table.name)
			table.name = columns;
	}
	return table;
}

static const char *words(bool commands)
{
	return commands ? "commands" : "routes";
}

/* Say which route takes most of the service's time. One with all requests says nothing. */
static void print_verdict(const struct table *table)
{
	const struct run_route *first = table->routes[0];
	double all_ns = 0, timed = 0;

	for (size_t i = 0; i < table->count; i++) {
		all_ns += service_ns(table->routes[i]);
		timed += (double)table->routes[i]->service.count;
	}
	if (table->count < 2 || all_ns <= 0)
		return;
	page_left(table->page, LABEL_COLUMNS, "%s", words(table->commands));
	page_wrap(table->page, LABEL_COLUMNS, "%s: %s of the time in service, %s of the requests",
		  first->route, as_share(100 * service_ns(first) / all_ns),
		  as_share(100 * (double)first->service.count / timed));
}

static void print_titles(const struct table *table)
{
	const struct page *page = table->page;

	page_style(page, STYLE_DIM);
	page_left(page, table->name, table->commands ? "  command" : "  route");
	page_right(page, COUNT_COLUMNS, "requests");
	if (table->rates)
		page_right(page, RATE_COLUMNS, "rate");
	if (table->classes && table->commands) {
		page_right(page, 2 * CLASS_COLUMNS, "errors");
	} else if (table->classes) {
		page_right(page, CLASS_COLUMNS, "4xx");
		page_right(page, CLASS_COLUMNS, "5xx");
	}
	page_right(page, TIME_COLUMNS, "p50 service");
	page_right(page, TIME_COLUMNS, "p99 service");
	page_style(page, STYLE_PLAIN);
	fputc('\n', page->file);
}

/* Print classes that are zero as "-", so that those that are not catch the eye. */
static void print_class(const struct page *page, unsigned int columns, uint64_t count)
{
	page_right(page, columns, "%s", count ? as_count(count) : "-");
}

static double mean_of(struct run_route *route)
{
	double sum = 0;

	for (enum stage stage = STAGE_SOCKET_QUEUE; stage <= STAGE_RESPOND; stage++)
		sum += histogram_mean(run_route_stage(route, stage));
	return sum;
}

/* Print the means of the stages below a route's row, the longest service, and responses without a known status. */
static void print_more(const struct page *page, struct run_route *route)
{
	bool timed = page->verbose && route->service.count;
	autoitems struct items items = items_begin(page, "", 2 * INDENT);

	if (!timed && !route->status[0])
		return;
	if (timed)
		items_time(&items, "mean", mean_of(route));
	for (enum stage stage = STAGE_SOCKET_QUEUE; timed && stage <= STAGE_RESPOND; stage++)
		items_add(&items, "%s %s", as_words(run_stage_names[stage]),
			  as_time(histogram_mean(run_route_stage(route, stage))));
	if (timed)
		items_time(&items, "longest service", (double)route->service.max);
	items_some(&items, "status not known", route->status[0]);
}

static void print_route(const struct table *table, struct run_route *route)
{
	const struct page *page = table->page;

	page_left(page, table->name, "  %s", route->route);
	if (INDENT + text_columns(route->route) > table->name) {
		fputc('\n', page->file);
		page_left(page, table->name, "%s", "");
	}
	page_right(page, COUNT_COLUMNS, "%s", as_count(route->count));
	if (table->rates && table->span_ns)
		page_right(page, RATE_COLUMNS, "%s/s", as_rate(route->count, table->span_ns));
	else if (table->rates)
		page_right(page, RATE_COLUMNS, "-");
	if (table->classes && table->commands) {
		print_class(page, 2 * CLASS_COLUMNS, route->errors.value);
	} else if (table->classes) {
		print_class(page, CLASS_COLUMNS, route->status[4]);
		print_class(page, CLASS_COLUMNS, route->status[5]);
	}
	page_right(page, TIME_COLUMNS, "%s", as_quantile(&route->service, 0.5));
	page_right(page, TIME_COLUMNS, "%s", as_quantile(&route->service, 0.99));
	fputc('\n', page->file);
	print_more(page, route);
}

/* Of commands; those of routes are run_routeless_help. */
static const char *const command_reasons[RUN_ROUTELESS_COUNT] = {
	[RUN_ROUTELESS_UNSEEN] = "a part of the connection's bytes was not seen",
	[RUN_ROUTELESS_TLS] = "the connection was in TLS",
	[RUN_ROUTELESS_HTTP2] = "the connection was in HTTP/2",
	[RUN_ROUTELESS_CUT] = "the reply began before the end of the command was read",
	[RUN_ROUTELESS_STRANGE] = "the connection carried something else than this protocol",
	[RUN_ROUTELESS_PIPELINED] = "more commands waited at once than there is room for",
};

static void print_not_known(const struct page *page, const struct run_routes *routes)
{
	autoitems struct items items = items_begin(page, "", LABEL_COLUMNS);
	uint64_t sum = run_counts_sum(routes->not_known, RUN_ROUTELESS_COUNT);

	if (!sum)
		return;
	items_count(&items, "not known", sum);
	for (unsigned int i = 0; i < RUN_ROUTELESS_COUNT; i++)
		if (routes->not_known[i])
			items_add(&items, "%s: %s",
				  routes->protocol ? command_reasons[i] : run_routeless_help[i],
				  as_count(routes->not_known[i]));
}

void report_routes(const struct page *page, const struct run_service *service, uint64_t span_ns)
{
	struct table table;

	if (!service->routes.count)
		return;
	table = table_of(page, service, span_ns);
	if (!table.count) {
		page_left(page, LABEL_COLUMNS, "%s", words(table.commands));
		page_wrap(page, LABEL_COLUMNS, "no request of a known %s",
			  table.commands ? "command" : "route");
	} else {
		print_verdict(&table);
		print_titles(&table);
	}
	for (size_t i = 0; i < table.shown; i++)
		print_route(&table, table.routes[i]);
	if (table.shown < table.count)
		page_counted(page, "", table.count - table.shown,
			     table.commands ? "commands more: -v prints all"
					    : "routes more: -v prints all");
	print_not_known(page, &service->routes);
}
