// SPDX-License-Identifier: MIT
/* The part of a report about proposed routes, with --propose-routes: the options, and their shares. */
#include <stdbool.h>
#include <string.h>

#include "parts.h"

/* The observer proposes no others. Somebody else's document may have one that does more in a shell. */
static bool is_safe(const char *route)
{
	return !route[strspn(route, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/-._* ")];
}

static void print_options(const struct page *page, const struct run_proposed *proposed)
{
	const char *space = "";

	page_left(page, LABEL_COLUMNS, "proposed");
	for (size_t i = 0; i < proposed->count; i++) {
		if (!is_safe(proposed->list[i].route))
			continue;
		page_left(page, 0, "%s--route '%s'", space, proposed->list[i].route);
		space = " ";
	}
	fputc('\n', page->file);
}

void report_proposed(const struct page *page, const struct run_service *service)
{
	const struct run_proposed *proposed = &service->proposed;
	autoitems struct items items =
		items_begin(page, proposed->count ? "" : "proposed", LABEL_COLUMNS);
	uint64_t others = proposed->paths;

	if (!proposed->most)
		return;
	if (proposed->count)
		print_options(page, proposed);
	else
		items_add(&items, "no route: no path is frequent");
	for (size_t i = 0; i < proposed->count; i++) {
		others -= proposed->list[i].paths;
		items_add(
			&items, "%s about %s", proposed->list[i].route,
			as_share(100 * (double)proposed->list[i].paths / (double)proposed->paths));
	}
	if (others && proposed->count)
		items_add(&items, "others about %s",
			  as_share(100 * (double)others / (double)proposed->paths));
	items_add(&items, "of a sample of %s of %s requests", as_count(proposed->paths),
		  as_count(proposed->requests));
	if (proposed->not_known)
		items_add(&items, "paths of %s more are not known", as_count(proposed->not_known));
}
