// SPDX-License-Identifier: MIT
/* The live view's table of one service's routes (--route) or commands (--protocol), on its page of details. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "page.h"
#include "sojourn/cleanup.h"
#include "sojourn/run_sum.h"
#include "sojourn/screen.h"
#include "sojourn/units.h"

#define NAME_WIDTH  32
#define VALUE_WIDTH 10

static void put(int y, int column, const char *text)
{
	screen_put(y, 1 + NAME_WIDTH + column * VALUE_WIDTH, VALUE_WIDTH, SCREEN_PLAIN,
		   SCREEN_RIGHT, text);
}

static void draw_titles(bool commands, int y)
{
	static const char *const of_routes[] = {"requests", "req/s", "4xx", "5xx", "p50", "p99"};
	static const char *const of_commands[] = {"requests", "req/s", "", "errors", "p50", "p99"};
	const char *const *titles = commands ? of_commands : of_routes;

	screen_put(y, 1, NAME_WIDTH, SCREEN_DIM, SCREEN_LEFT,
		   commands ? "command; times of service" : "route; times of service");
	for (int i = 0; i < (int)ARRAY_SIZE(of_routes); i++)
		screen_put(y, 1 + NAME_WIDTH + i * VALUE_WIDTH, VALUE_WIDTH, SCREEN_DIM,
			   SCREEN_RIGHT, titles[i]);
}

static void draw_route(const struct run_route *route, double seconds, int y)
{
	const struct histogram *h = &route->service;
	double p50 = h->count ? (double)histogram_quantile(h, 0.5) : NAN;
	double p99 = h->count ? (double)histogram_quantile(h, 0.99) : NAN;

	screen_put(y, 1, NAME_WIDTH - 1, SCREEN_PLAIN, SCREEN_LEFT, route->route);
	put(y, 0, as_count(route->count));
	put(y, 1, live_count(seconds > 0 ? (double)route->count / seconds : NAN));
	if (!route->errors.known)
		put(y, 2, as_count(route->status[4]));
	put(y, 3, as_count(route->errors.known ? route->errors.value : route->status[5]));
	put(y, 4, live_time(p50));
	put(y, 5, live_time(p99));
}

/* The last line has the rest: routes without a row, and requests whose route is not known. */
static void draw_rest(const struct run_routes *routes, size_t more, int y)
{
	uint64_t unknown = run_counts_sum(routes->not_known, RUN_ROUTELESS_COUNT);
	char count[32];

	snprintf(count, sizeof(count), "%zu %s more", more,
		 routes->protocol ? "commands" : "routes");
	if (more || unknown)
		screen_line(y, 1, SCREEN_DIM, "%s%s%s%s", more ? count : "",
			    more && unknown ? " · " : "",
			    unknown ? "requests that are not known: " : "",
			    unknown ? as_count(unknown) : "");
}

void live_draw_routes(const struct live_row *row, int y, int lines)
{
	const struct run_routes *routes = &row->service->routes;
	const struct run_route *shown[RUN_ROUTES_MOST];
	size_t count = 0, rows = (size_t)lines - 2;

	for (size_t i = 0; i < routes->count && count < RUN_ROUTES_MOST; i++)
		if (routes->list[i].count)
			shown[count++] = &routes->list[i];
	if (!routes->count)
		screen_line(y, 1, SCREEN_DIM,
			    "routes: none are counted, see --route and --protocol");
	else if (!count)
		screen_line(y, 1, SCREEN_DIM, "routes: no request in this period");
	else
		draw_titles(routes->protocol, y);
	qsort(shown, count, sizeof(*shown), run_route_compare);
	for (size_t i = 0; i < count && i < rows; i++)
		draw_route(shown[i], row->seconds, y + 1 + (int)i);
	draw_rest(routes, count > rows ? count - rows : 0,
		  y + 1 + (int)(count < rows ? count : rows));
}
