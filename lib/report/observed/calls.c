// SPDX-License-Identifier: MIT
/* Calls to upstreams, with --calls: how long each took to answer, as the service's processes saw it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/report.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

/* Rows beyond these are in the document alone. */
#define CALL_LINES 8

/* Calls that are not the upstream's exchanges may make this part of all, and no more. */
#define NEGLIGIBLE 0.01
/* As in upstreams.c: more calls per request may overlap, and a greater share says that some do, or are for no request. */
#define ONE_CALL   1.02
#define EXCESS	   1.02
#define MAIN_SHARE 0.5

void report_call_unknown(const struct run_timed_call *whole, const struct run_timed_call *call,
			 char ret_text[static REPORT_CALL_UNKNOWN])
{
	uint64_t uncut = run_call_uncut(whole), all = whole->connects + whole->older, largest = 0;
	enum run_uncut why = 0;

	for (enum run_uncut i = 0; i < RUN_UNCUT_COUNT; i++)
		if (whole->uncut[i] > largest) {
			largest = whole->uncut[i];
			why = i;
		}
	ret_text[0] = 0;
	if (!run_call_is_timed(whole))
		snprintf(ret_text, REPORT_CALL_UNKNOWN, "%s of its %s connections %s",
			 as_count(largest), as_count(all > uncut ? all : uncut),
			 run_uncut_help[why]);
	else if (!call->calls && call->handshakes)
		snprintf(
			ret_text, REPORT_CALL_UNKNOWN,
			"%s calls were the first of their connections, which TLS's handshake hides",
			as_count(call->handshakes));
	else if (!call->calls && call->untimed)
		snprintf(ret_text, REPORT_CALL_UNKNOWN,
			 "%s responses were read before the write of their call had returned",
			 as_count(call->untimed));
}

/* Return the share of the service's time in which it waited for the answers; negative: not known. */
static double share_of(const struct run_service *service, const struct run_timed_call *call)
{
	double service_ns = (double)service->stages[STAGE_SERVICE].histogram.sum;
	double share = service_ns > 0 ? (double)call->wait.sum / service_ns : -1;
	bool one = (double)call->calls <= ONE_CALL * (double)service->exchanges;
	char unknown[REPORT_CALL_UNKNOWN];

	report_call_unknown(call, call, unknown);
	/* A call may be for a request that is in no sum. */
	if (*unknown || call->serves_too.known || run_hidden_connections(service) || !one ||
	    share > EXCESS)
		return -1;
	return share > 1 ? 1 : share;
}

/* With fewer calls than requests, several requests may have waited for one, as for a batch, and some calls are not timed. */
const char *report_least_share(const struct run_service *service, const struct run_timed_call *call)
{
	return ONE_CALL * (double)call->calls < (double)service->exchanges ? "at least " : "";
}

const struct run_timed_call *report_main_call(const struct run_service *service, double *ret_share)
{
	for (size_t i = 0; i < service->timed_call_count; i++) {
		double share = share_of(service, &service->timed_calls[i]);

		if (share < MAIN_SHARE)
			continue;
		*ret_share = share;
		return &service->timed_calls[i];
	}
	return NULL;
}

const struct run_timed_call *report_sole_call(const struct run_service *service, double *ret_share)
{
	const struct run_timed_call *call = service->timed_calls;
	double share;

	if (service->timed_call_count != 1 || !text_same(service->calls, call->towards) ||
	    *report_least_share(service, call))
		return NULL;
	share = share_of(service, call);
	if (share < 0 || share >= MAIN_SHARE)
		return NULL;
	*ret_share = share;
	return call;
}

/* Return the calls to @port; NULL: to none, or to that port of several addresses. */
static const struct run_timed_call *only_call(const struct run_service *front, uint16_t port)
{
	const struct run_timed_call *found = NULL;

	for (size_t i = 0; i < front->timed_call_count; i++) {
		if (run_towards_port(front->timed_calls[i].towards) != port)
			continue;
		if (found)
			return NULL;
		found = &front->timed_calls[i];
	}
	return found;
}

double report_call_wait(const struct run_service *front, const struct run_service *upstream)
{
	const struct run_timed_call *call = only_call(front, upstream->port);
	double calls = call ? (double)call->calls : 0, exchanges = (double)upstream->exchanges;
	char unknown[REPORT_CALL_UNKNOWN];

	if (!call || fabs(calls - exchanges) > NEGLIGIBLE * exchanges)
		return -1;
	report_call_unknown(call, call, unknown);
	return *unknown ? -1 : histogram_mean(&call->wait);
}

static void add_times(struct items *items, const struct run_service *service,
		      const struct run_timed_call *call)
{
	double share = share_of(service, call);

	if (service->exchanges)
		items_add(items, "%s calls, %s per request", as_count(call->calls),
			  as_rate_of((double)call->calls / (double)service->exchanges));
	else
		items_add(items, "%s calls", as_count(call->calls));
	items_time(items, "wait mean", histogram_mean(&call->wait));
	items_time(items, "p50", (double)histogram_quantile(&call->wait, 0.5));
	items_time(items, "p99", (double)histogram_quantile(&call->wait, 0.99));
	items_time(items, "max", (double)call->wait.max);
	items_time(items, "to the response's end mean", histogram_mean(&call->whole));
	if (share >= 0)
		items_add(items, "the wait is %s%s of its service",
			  report_least_share(service, call), as_share(100 * share));
	if (run_hidden_connections(service))
		items_add(items, "perhaps for requests that are not timed, of %s connections",
			  as_count(run_hidden_connections(service)));
	if (call->serves_too.known)
		items_add(items, "perhaps for port %ju, which its processes serve, too",
			  (uintmax_t)call->serves_too.value);
}

static void print_call(const struct page *page, const struct run_service *service,
		       const struct run_timed_call *call, const char *label)
{
	autoitems struct items items = items_begin(page, label, LABEL_COLUMNS);
	char unknown[REPORT_CALL_UNKNOWN];

	items_add(&items, "%s", call->towards);
	report_call_unknown(call, call, unknown);
	if (*unknown)
		items_add(&items, "times not known: %s", unknown);
	else if (call->calls)
		add_times(&items, service, call);
	items_some(&items, "without an answer", call->failed);
	items_some(&items, "open now", call->open);
	if (call->connects)
		items_add(&items, "%s connects, mean %s", as_count(call->connects),
			  as_time((double)call->connect_ns / (double)call->connects));
	items_some(&items, "failed connects", call->connects_failed);
	items_some(&items, "older connections picked up", call->older);
	items_some(&items, "not timed", call->untimed + call->handshakes);
	items_some(&items, "with late parts", call->trailing);
}

void report_calls(const struct page *page, const struct run_service *service)
{
	size_t most = page->verbose ? CALL_LINES : CALL_LINES / 2,
	       count = service->timed_call_count;

	for (size_t i = 0; i < count && i < most; i++)
		print_call(page, service, &service->timed_calls[i], i ? "" : "calls to");
	if (count > most) {
		page_left(page, LABEL_COLUMNS, "%s", "");
		page_wrap(page, LABEL_COLUMNS, "and %zu other places, in the document",
			  count - most);
	}
	if (service->calls_lost.known && service->calls_lost.value)
		page_counted(page, count ? "" : "calls to", service->calls_lost.value,
			     "connections to places without room: their calls are not known");
}
