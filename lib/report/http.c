// SPDX-License-Identifier: MIT
/* HTTP and gRPC of one observed service: streams and statuses. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "parts.h"

/* Add the streams that one side has reset, by error code. */
static void add_resets(struct items *items, const char *by, const uint64_t *resets)
{
	char text[SHORT_TEXT], words[SHORT_TEXT];

	for (unsigned int i = 0; i < RUN_RESET_COUNT; i++)
		if (resets[i])
			items_add(items, "%s: %s %s", by, page_words(run_reset_names[i], words),
				  page_count(resets[i], text));
}

void report_pipelines(const struct page *page, const struct run_service *service)
{
	uint64_t followed = service->pipelined.value, given_up = service->pipelines_given_up.value;
	autoitems struct items items = items_begin(page, "pipelined", LABEL_COLUMNS);
	char text[SHORT_TEXT];

	if (followed)
		items_add(&items, "on %s connections, each request an exchange",
			  page_count(followed, text));
	if (given_up)
		items_add(&items,
			  "not looked for on %s connections, whose bytes were not seen or not "
			  "understood",
			  page_count(given_up, text));
}

/* Add how many streams a connection carried, and how many at once: the latter of those that go on, too. */
static void add_streams(struct items *items, const struct run_http2 *http2)
{
	char ended[SHORT_TEXT], mean[SHORT_TEXT], most[SHORT_TEXT];

	if (http2->ended.value)
		items_add(items, "%s ended connections with %s streams on average, at most %s",
			  page_count(http2->ended.value, ended),
			  page_rate_of((double)http2->ended_streams.value /
					       (double)http2->ended.value,
				       mean),
			  page_count(http2->streams_highest.value, most));
	if (http2->open_highest.value)
		items_add(items, "at most %s open at once on one",
			  page_count(http2->open_highest.value, most));
}

void report_http2(const struct page *page, const struct run_service *service)
{
	const struct run_http2 *http2 = &service->http2;
	autoitems struct items items = items_begin(page, "HTTP/2", LABEL_COLUMNS);
	char text[SHORT_TEXT], connections[SHORT_TEXT];

	if (!http2->streams.value && !http2->older.value)
		return;
	items_add(&items, "%s streams on %s connections", page_count(http2->streams.value, text),
		  page_count(http2->connections.value, connections));
	if (http2->connections.value)
		items_add(&items, "%s streams/connection",
			  page_rate_of((double)http2->streams.value /
					       (double)http2->connections.value,
				       text));
	if (page->verbose)
		add_streams(&items, http2);
	add_resets(&items, "reset by client", http2->client_resets);
	add_resets(&items, "reset by server", http2->server_resets);
	if (http2->older.value)
		items_add(&items, "%s of %s older connections picked up",
			  page_count(http2->picked_up.value, text),
			  page_count(http2->older.value, connections));
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
	char text[SHORT_TEXT], share[SHORT_TEXT];

	if (count)
		items_add(items, "%s %s (%s)", what, page_count(count, text),
			  page_share(100.0 * (double)count / (double)all, share));
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
	char text[SHORT_TEXT];

	for (unsigned int i = 0; i < count; i++)
		left += responses[i];
	for (unsigned int i = 0; i < MAX_STATUSES; i++) {
		status = next_status(responses, count, status);
		if (status == count)
			break;
		add_status(items, name(status, text), responses[status], all);
		left -= responses[status];
	}
	add_status(items, "others", left, all);
}

void report_grpc_unsure(const struct page *page, const struct run_http2 *http2)
{
	autoitems struct items items = items_begin(page, "gRPC", LABEL_COLUMNS);
	char text[SHORT_TEXT];

	if (http2->perhaps_grpc.value)
		items_add(
			&items,
			"statuses, kinds and messages of %s calls not known, if they are of gRPC: "
			"their connections are older than the observation",
			page_count(http2->perhaps_grpc.value, text));
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
	char text[SHORT_TEXT];

	if (!grpc->count)
		return;
	for (unsigned int i = 0; i < RUN_GRPC_KIND_COUNT; i++)
		add_status(&items, page_words(run_grpc_kind_names[i], text), grpc->kinds[i],
			   grpc->count);
	items_count(&items, "messages in", grpc->messages_in);
	items_count(&items, "messages out", grpc->messages_out);
}

static void report_websocket(const struct page *page, const struct run_websocket *websocket)
{
	char text[SHORT_TEXT], bytes[SHORT_TEXT];
	struct items items;

	if (!websocket->connections && !websocket->messages_in && !websocket->messages_out &&
	    !websocket->older)
		return;
	items = items_begin(page, "WebSocket", LABEL_COLUMNS);
	items_add(&items, "%s connections", page_count(websocket->connections, text));
	items_add(&items, "messages in %s (%s)", page_count(websocket->messages_in, text),
		  page_bytes(websocket->bytes_in, bytes));
	items_add(&items, "messages out %s (%s)", page_count(websocket->messages_out, text),
		  page_bytes(websocket->bytes_out, bytes));
	if (websocket->control_in || websocket->control_out) {
		items_add(&items, "control frames in %s", page_count(websocket->control_in, text));
		items_add(&items, "out %s", page_count(websocket->control_out, text));
	}
	if (websocket->given_up)
		items_add(&items, "connections given up %s", page_count(websocket->given_up, text));
	if (websocket->older)
		items_add(&items, "%s of %s older connections picked up",
			  page_count(websocket->picked_up, text),
			  page_count(websocket->older, bytes));
	if (websocket->older > websocket->picked_up)
		items_add(&items,
			  "messages of the others not known: their frames were not seen in both "
			  "directions");
	items_add(&items, "service of messages not known: none says which one it answers");
	items_end(&items);
}

static void report_events(const struct page *page, const struct run_events *events)
{
	char text[SHORT_TEXT], bytes[SHORT_TEXT];
	struct items items;

	if (!events->responses && !events->count)
		return;
	items = items_begin(page, "events", LABEL_COLUMNS);
	items_add(&items, "%s sent", page_count(events->count, text));
	items_add(&items, "%s", page_bytes(events->bytes, bytes));
	items_add(&items, "%s responses begun", page_count(events->responses, text));
	if (events->given_up)
		items_add(&items, "given up %s", page_count(events->given_up, text));
	items_end(&items);
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
	char in[SHORT_TEXT], out[SHORT_TEXT];

	if (websocket->messages_in || websocket->messages_out)
		outcome_add(text, "messages in %s, out %s", page_count(websocket->messages_in, in),
			    page_count(websocket->messages_out, out));
	if (service->events.count)
		outcome_add(text, "events %s", page_count(service->events.count, in));
	if (given_up)
		outcome_add(text, "given up %s", page_count(given_up, in));
	if (websocket->older > websocket->picked_up)
		outcome_add(text, "messages of %s older connections not known",
			    page_count(websocket->older - websocket->picked_up, in));
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
	char count[SHORT_TEXT], share[SHORT_TEXT];

	*ret_text = 0;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		double part =
			statuses[i].all ? (double)statuses[i].count / (double)statuses[i].all : 0;

		if (statuses[i].count && part >= statuses[i].least)
			outcome_add(ret_text, "%s %s (%s)", statuses[i].name,
				    page_count(statuses[i].count, count),
				    page_share(100 * part, share));
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
