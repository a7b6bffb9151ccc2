// SPDX-License-Identifier: MIT
/* HTTP and gRPC of one observed service: streams and statuses. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* Add the streams that one side has reset, by error code. */
static void add_resets(struct items *items, const char *by, const uint64_t *resets)
{
	for (unsigned int i = 0; i < RUN_RESET_COUNT; i++)
		if (resets[i])
			items_add(items, "%s: %s %s", by, as_words(run_reset_names[i]),
				  as_count(resets[i]));
}

void report_pipelines(const struct page *page, const struct run_service *service)
{
	uint64_t followed = service->pipelined.value, given_up = service->pipelines_given_up.value;
	autoitems struct items items = items_begin(page, "pipelined", LABEL_COLUMNS);

	if (followed)
		items_add(&items, "on %s connections, each request an exchange",
			  as_count(followed));
	if (given_up)
		items_add(&items,
			  "not looked for on %s connections, whose bytes were not seen or not "
			  "understood",
			  as_count(given_up));
}

/* Add how many streams a connection carried, and how many at once: the latter of those that go on, too. */
static void add_streams(struct items *items, const struct run_http2 *http2)
{
	if (http2->ended.value)
		items_add(
			items, "%s ended connections with %s streams on average, at most %s",
			as_count(http2->ended.value),
			as_rate_of((double)http2->ended_streams.value / (double)http2->ended.value),
			as_count(http2->streams_highest.value));
	if (http2->open_highest.value)
		items_add(items, "at most %s open at once on one",
			  as_count(http2->open_highest.value));
}

void report_http2(const struct page *page, const struct run_service *service)
{
	const struct run_http2 *http2 = &service->http2;
	autoitems struct items items = items_begin(page, "HTTP/2", LABEL_COLUMNS);

	if (!http2->streams.value && !http2->older.value)
		return;
	items_add(&items, "%s streams on %s connections", as_count(http2->streams.value),
		  as_count(http2->connections.value));
	if (http2->connections.value)
		items_add(&items, "%s streams/connection",
			  as_rate_of((double)http2->streams.value /
				     (double)http2->connections.value));
	if (page->verbose)
		add_streams(&items, http2);
	add_resets(&items, "reset by client", http2->client_resets);
	add_resets(&items, "reset by server", http2->server_resets);
	if (http2->older.value)
		items_add(&items, "%s of %s older connections picked up",
			  as_count(http2->picked_up.value), as_count(http2->older.value));
	items_some(&items, "refused", http2->refused.value);
	items_some(&items, "lost", http2->lost.value);
	items_some(&items, "GOAWAY", http2->goaways.value);
	items_some(&items, "connections given up", http2->given_up.value);
	items_some(&items, "begun before the observation", http2->earlier.value);
	items_some(&items, "perhaps of gRPC", http2->perhaps_grpc.value);
}

/* Maximum of statuses that are named, the most frequent first; the rest are others. */
#define MAX_STATUSES 6

/* Return the next of @count statuses after @last, by falling number of responses; @count: there is none. */
static unsigned int next_status(const uint64_t *responses, unsigned int count, unsigned int last)
{
	unsigned int found = count;

	for (unsigned int i = 0; i < count; i++) {
		bool told = last < count && (responses[i] > responses[last] ||
					     (responses[i] == responses[last] && i <= last));

		if (responses[i] && !told && (found == count || responses[i] > responses[found]))
			found = i;
	}
	return found;
}

static void add_status(struct items *items, const char *what, uint64_t count, uint64_t all)
{
	if (count)
		items_add(items, "%s %s (%s)", what, as_count(count),
			  as_share(100.0 * (double)count / (double)all));
}

typedef const char *status_name(unsigned int status, char buffer[static SHORT_TEXT]);

static const char *name_of_http(unsigned int status, char buffer[static SHORT_TEXT])
{
	snprintf(buffer, SHORT_TEXT, "%u", RUN_STATUS_LEAST + status);
	return buffer;
}

static const char *name_of_grpc(unsigned int status, char buffer[static SHORT_TEXT])
{
	return page_words(run_grpc_status_names[status], buffer);
}

/* Add the most frequent of @count statuses, and the rest as others. */
static void add_statuses(struct items *items, const uint64_t *responses, unsigned int count,
			 status_name *name, uint64_t all)
{
	unsigned int status = count;
	uint64_t left = 0;

	for (unsigned int i = 0; i < count; i++)
		left += responses[i];
	for (unsigned int i = 0; i < MAX_STATUSES; i++) {
		status = next_status(responses, count, status);
		if (status == count)
			break;
		add_status(items, name(status, UNITS_ROOM), responses[status], all);
		left -= responses[status];
	}
	add_status(items, "others", left, all);
}

void report_grpc_unsure(const struct page *page, const struct run_http2 *http2)
{
	autoitems struct items items = items_begin(page, "gRPC", LABEL_COLUMNS);

	if (http2->perhaps_grpc.value)
		items_add(
			&items,
			"statuses, kinds and messages of %s calls not known, if they are of gRPC: "
			"their connections are older than the observation",
			as_count(http2->perhaps_grpc.value));
}

void report_grpc_statuses(const struct page *page, const struct run_grpc *grpc)
{
	autoitems struct items items = items_begin(page, "gRPC", LABEL_COLUMNS);

	add_statuses(&items, grpc->status, RUN_GRPC_STATUS_COUNT, name_of_grpc, grpc->count);
	add_status(&items, "without a status", grpc->status[RUN_GRPC_MISSING], grpc->count);
	add_status(&items, "not known", grpc->status[RUN_GRPC_NOT_KNOWN], grpc->count);
}

/* Print the kinds of the calls that are over, and the messages of all. */
void report_grpc_calls(const struct page *page, const struct run_grpc *grpc)
{
	autoitems struct items items = items_begin(page, "gRPC calls", LABEL_COLUMNS);

	if (!grpc->count)
		return;
	for (unsigned int i = 0; i < RUN_GRPC_KIND_COUNT; i++)
		add_status(&items, as_words(run_grpc_kind_names[i]), grpc->kinds[i], grpc->count);
	items_count(&items, "messages in", grpc->messages_in);
	items_count(&items, "messages out", grpc->messages_out);
}

static void report_websocket(const struct page *page, const struct run_websocket *websocket)
{
	autoitems struct items items = items_begin(page, "WebSocket", LABEL_COLUMNS);

	if (!websocket->connections && !websocket->messages_in && !websocket->messages_out &&
	    !websocket->older)
		return;
	items_add(&items, "%s connections", as_count(websocket->connections));
	items_add(&items, "messages in %s (%s)", as_count(websocket->messages_in),
		  as_bytes(websocket->bytes_in));
	items_add(&items, "messages out %s (%s)", as_count(websocket->messages_out),
		  as_bytes(websocket->bytes_out));
	if (websocket->control_in || websocket->control_out) {
		items_add(&items, "control frames in %s", as_count(websocket->control_in));
		items_add(&items, "out %s", as_count(websocket->control_out));
	}
	items_some(&items, "connections given up", websocket->given_up);
	if (websocket->older)
		items_add(&items, "%s of %s older connections picked up",
			  as_count(websocket->picked_up), as_count(websocket->older));
	if (websocket->older > websocket->picked_up)
		items_add(&items,
			  "messages of the others not known: their frames were not seen in both "
			  "directions");
	items_add(&items, "service of messages not known: none says which one it answers");
}

static void report_events(const struct page *page, const struct run_events *events)
{
	autoitems struct items items = items_begin(page, "events", LABEL_COLUMNS);

	if (!events->responses && !events->count)
		return;
	if (events->count || !events->given_up) {
		items_add(&items, "%s sent", as_count(events->count));
		items_add(&items, "%s", as_bytes(events->bytes));
	} else {
		items_add(&items, "not counted");
	}
	items_add(&items, "%s responses begun", as_count(events->responses));
	items_some(&items, "given up", events->given_up);
}

void report_pushes(const struct page *page, const struct run_service *service)
{
	report_websocket(page, &service->websocket);
	report_events(page, &service->events);
}

uint64_t report_pushed(const struct run_service *service)
{
	return service->websocket.messages_in + service->websocket.messages_out +
	       service->events.count;
}

/* Smaller shares of responses that are not known need no word. */
#define UNKNOWN_SHARE 0.01

static uint64_t grpc_failed(const struct run_grpc *grpc)
{
	uint64_t failed = grpc->status[RUN_GRPC_MISSING];

	for (unsigned int i = 1; i < RUN_GRPC_STATUS_COUNT; i++)
		failed += grpc->status[i];
	return failed;
}

__attribute__((format(printf, 2, 3))) static void outcome_add(char text[static REPORT_OUTCOME],
							      const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	used += (size_t)snprintf(text + used, REPORT_OUTCOME - used, " \u00b7 ");
	if (used >= REPORT_OUTCOME)
		return;
	va_start(arguments, format);
	vsnprintf(text + used, REPORT_OUTCOME - used, format, arguments);
	va_end(arguments);
}

static void outcome_pushes(const struct run_service *service, char text[static REPORT_OUTCOME])
{
	const struct run_websocket *websocket = &service->websocket;
	uint64_t given_up = websocket->given_up + service->events.given_up;

	if (websocket->messages_in || websocket->messages_out)
		outcome_add(text, "messages in %s, out %s", as_count(websocket->messages_in),
			    as_count(websocket->messages_out));
	if (service->events.count)
		outcome_add(text, "events %s", as_count(service->events.count));
	if (given_up)
		outcome_add(text, "given up %s", as_count(given_up));
	if (service->http2.two_way.value)
		outcome_add(text, "both ways at once %s (tunnels, as of WebSocket over HTTP/2?)",
			    as_count(service->http2.two_way.value));
	if (websocket->older > websocket->picked_up)
		outcome_add(text, "messages of %s older connections not known",
			    as_count(websocket->older - websocket->picked_up));
}

void report_outcome(const struct run_service *service, char ret_text[static REPORT_OUTCOME])
{
	const struct run_responses *responses = &service->responses;
	const struct {
		const char *name;
		uint64_t count, all;
		double least;
	} statuses[] = {
		{"5xx", responses->status[5], responses->count, 0},
		{"4xx", responses->status[4], responses->count, 0},
		{"gRPC failed", grpc_failed(&service->grpc), service->grpc.count, 0},
		{"statuses not known", responses->status[0], responses->count, UNKNOWN_SHARE},
	};

	*ret_text = 0;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		double part =
			statuses[i].all ? (double)statuses[i].count / (double)statuses[i].all : 0;

		if (statuses[i].count && part >= statuses[i].least)
			outcome_add(ret_text, "%s %s (%s)", statuses[i].name,
				    as_count(statuses[i].count), as_share(100 * part));
	}
	outcome_pushes(service, ret_text);
}

void report_outcome_line(const struct page *page, const struct run_service *service)
{
	char text[REPORT_OUTCOME];

	report_outcome(service, text);
	if (*text)
		page_wrap(page, 0, "%s", text + strlen(" \u00b7 "));
}

void report_http_statuses(const struct page *page, const struct run_responses *responses)
{
	autoitems struct items items = items_begin(page, "statuses", LABEL_COLUMNS);

	add_statuses(&items, responses->statuses, RUN_STATUS_COUNT, name_of_http, responses->count);
	add_status(&items, "not known", responses->status[0], responses->count);
}
