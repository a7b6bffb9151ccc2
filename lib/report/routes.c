// SPDX-License-Identifier: MIT
/* The part of a report about requests by route, with --route: a row for each. */
#include "parts.h"

/* Rows on a page that must be short. */
#define FEW_ROUTES 6U

static double mean_of(struct run_route *route)
{
	double sum = 0;

	for (enum stage stage = STAGE_SOCKET_QUEUE; stage <= STAGE_RESPOND; stage++)
		sum += histogram_mean(run_route_stage(route, stage));
	return sum;
}

static void add_class(struct items *items, const char *name, uint64_t count)
{
	char text[SHORT_TEXT];

	if (count)
		items_add(items, "%s %s", name, page_count(count, text));
}

/* Add the times of a route: those of its residence, and the percentiles of service. */
static void add_times(struct items *items, struct run_route *route, bool verbose)
{
	const struct histogram *h = &route->service;
	char text[SHORT_TEXT], name[SHORT_TEXT];

	items_add(items, "mean %s", page_time(mean_of(route), text));
	for (enum stage stage = STAGE_SOCKET_QUEUE; verbose && stage <= STAGE_RESPOND; stage++)
		items_add(items, "%s %s", page_words(run_stage_names[stage], name),
			  page_time(histogram_mean(run_route_stage(route, stage)), text));
	items_add(items, "service p50 %s", page_time((double)histogram_quantile(h, 0.5), text));
	items_add(items, "p99 %s", page_time((double)histogram_quantile(h, 0.99), text));
	items_add(items, "max %s", page_time((double)h->max, text));
}

static void report_route(const struct page *page, const char *label, struct run_route *route)
{
	struct items items = items_begin(page, label, LABEL_COLUMNS);
	char text[SHORT_TEXT];

	items_add(&items, "%s", route->route);
	items_add(&items, "%s", page_count(route->count, text));
	if (route->service.count)
		add_times(&items, route, page->verbose);
	add_class(&items, "4xx", route->status[4]);
	add_class(&items, "5xx", route->status[5]);
	add_class(&items, "status not known", route->status[0]);
	items_end(&items);
}

static void report_not_known(const struct page *page, const struct run_routes *routes)
{
	struct items items;
	uint64_t sum = 0;
	char text[SHORT_TEXT];

	for (unsigned int i = 0; i < RUN_ROUTELESS_COUNT; i++)
		sum += routes->not_known[i];
	if (!sum)
		return;
	items = items_begin(page, "", LABEL_COLUMNS);
	items_add(&items, "not known %s", page_count(sum, text));
	for (unsigned int i = 0; i < RUN_ROUTELESS_COUNT; i++)
		if (routes->not_known[i])
			items_add(&items, "%s: %s", run_routeless_help[i],
				  page_count(routes->not_known[i], text));
	items_end(&items);
}

/* Return how many routes have requests, or as many as are printed. */
static size_t count_rows(const struct page *page, const struct run_routes *routes)
{
	size_t rows = 0;

	for (size_t i = 0; i < routes->count; i++)
		rows += routes->list[i].count || page->verbose;
	return page->tight && rows > FEW_ROUTES ? FEW_ROUTES : rows;
}

void report_routes(const struct page *page, const struct run_service *service)
{
	const struct run_routes *routes = &service->routes;
	size_t rows = count_rows(page, routes), printed = 0, left = 0;
	struct items items;

	if (!routes->count)
		return;
	if (!rows) {
		items = items_begin(page, "routes", LABEL_COLUMNS);
		items_add(&items, "no request of a known route");
		items_end(&items);
	}
	for (size_t i = 0; i < routes->count; i++) {
		struct run_route *route = &routes->list[i];

		if (printed < rows && (route->count || page->verbose))
			report_route(page, printed++ ? "" : "routes", route);
		else
			left += route->count != 0;
	}
	if (left)
		page_counted(page, "", left, "routes more: -v prints all");
	report_not_known(page, routes);
}
