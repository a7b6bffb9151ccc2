// SPDX-License-Identifier: MIT
/* Each of several listeners of a service, as a sum would hide a full one. */
#include <stdlib.h>

#include "parts.h"
#include "sojourn/cleanup.h"

/* Maximum of lines; the document has all. */
#define LISTENER_LINES 8

static double fullness(const struct run_listener *listener)
{
	uint64_t limit = listener->limit.value ? listener->limit.value : 1;

	return (double)listener->depth.value / (double)limit;
}

static int compare_fullness(const void *a, const void *b)
{
	const struct run_listener *const *one = a, *const *other = b;
	double x = fullness(*one), y = fullness(*other);

	if (x != y)
		return x < y ? 1 : -1;
	return ((*one)->inode > (*other)->inode) - ((*one)->inode < (*other)->inode);
}

static void print_listener(const struct page *page, const struct run_listener *listener,
			   const char *label)
{
	autoitems struct items items = items_begin(page, label, LABEL_COLUMNS);

	if (listener->pid.known)
		items_add(&items, "%.*s %ju", (int)sizeof(listener->comm), listener->comm,
			  (uintmax_t)listener->pid.value);
	else if (listener->holders.known)
		items_add(&items, "held by %ju processes", (uintmax_t)listener->holders.value);
	else
		items_add(&items, "process not known");
	items_add(&items, "%s", listener->address);
	items_add(&items, "accept queue %ju/%ju", (uintmax_t)listener->depth.value,
		  (uintmax_t)listener->limit.value);
	if (listener->depth_max.known)
		items_add(&items, "max %ju", (uintmax_t)listener->depth_max.value);
	if (listener->overflows.known && listener->overflows.value)
		items_add(&items, "overflows %ju", (uintmax_t)listener->overflows.value);
}

void report_listeners(const struct page *page, const struct run_service *service)
{
	size_t count = service->listener_count;
	autofree const struct run_listener **order = calloc(count, sizeof(*order));

	if (!count || !order)
		return;
	for (size_t i = 0; i < count; i++)
		order[i] = &service->listeners[i];
	qsort(order, count, sizeof(*order), compare_fullness);
	for (size_t i = 0; i < count && i < LISTENER_LINES; i++)
		print_listener(page, order[i], i ? "" : "listeners");
	if (count > LISTENER_LINES) {
		page_left(page, LABEL_COLUMNS, "%s", "");
		page_wrap(page, LABEL_COLUMNS, "and %zu less full, in the document",
			  count - LISTENER_LINES);
	}
}
