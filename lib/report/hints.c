// SPDX-License-Identifier: MIT
/* Sentences on the possible meaning of ambiguous figures of a service, and how to find out. */
#include <stdio.h>

#include "parts.h"
#include "report/observed/means.h"
#include "sojourn/clock.h"
#include "sojourn/report.h"

/* Shorter waits need no hint. */
#define LONG_WAIT_NS (10 * NSEC_PER_MSEC)

/*
 * Return an upper bound of the connections that ever waited for accept() at once: the deepest
 * queue, for each listener. Assume at least one each, as a short wait may not have been seen.
 */
static struct run_number deepest(const struct run_service *service)
{
	const struct run_accept_queue *queue = &service->accept_queue;

	return (struct run_number){
		.known = queue->depth_max.known && queue->listeners.known && queue->listeners.value,
		.value = (queue->depth_max.value ? queue->depth_max.value : 1) *
			 queue->listeners.value,
	};
}

/*
 * Return the share of inferred waits that was certainly outside the accept queue. Connections that
 * wait there for S ns within T ns are S / T on average (Little's law), at most the deepest queue.
 */
static double share_after_accept(const struct run *run, const struct run_service *service)
{
	const struct histogram *waits = &service->stages[STAGE_ACCEPT_QUEUE].histogram;
	/* Waits that end in the period may have started before. */
	double span_ns = (double)run->duration_ns + (double)waits->max;
	struct run_number most = deepest(service);
	double possible_ns = (double)most.value * span_ns;

	if (!most.known || !run->duration_ns || possible_ns >= (double)waits->sum)
		return 0;
	return 1 - possible_ns / (double)waits->sum;
}

static bool hint_accept(const struct run *run, const struct run_service *service,
			struct report_hint *hint)
{
	const struct histogram *waits = &service->stages[STAGE_ACCEPT_QUEUE].histogram;
	double after = share_after_accept(run, service);
	int used;

	if (!run_accept_is_inferred(service->stages) || waits->max < LONG_WAIT_NS)
		return false;
	used = snprintf(
		hint->text, sizeof(hint->text),
		"accept or socket queue (mean %s, max %s) was inferred from the first read. Either "
		"accept() comes late, or the first read after it, for want of a free worker. ",
		as_time(histogram_mean(waits)), as_time((double)waits->max));
	if (after >= 0.01)
		used += snprintf(hint->text + used, sizeof(hint->text) - (size_t)used,
				 "At least %.0f %% of it came after accept(): the accept queue "
				 "never held more than %ju. ",
				 100 * after, (uintmax_t)deepest(service).value);
	snprintf(hint->text + used, sizeof(hint->text) - (size_t)used,
		 "sojourn observe --accept-source syscall distinguishes them");
	return true;
}

/* From this share of exchanges on, Nagle's algorithm regularly delays the server's responses. */
#define HELD_SHARE 0.01

/* The kernel's own condition was true: this is no guess. */
static bool hint_nagle(const struct run *run, const struct run_service *service,
		       struct report_hint *hint)
{
	(void)run;
	if (!service->nagle_held ||
	    (double)service->nagle_held < HELD_SHARE * (double)service->exchanges)
		return false;
	snprintf(
		hint->text, sizeof(hint->text),
		"the end of %s of %s responses waited for the client's ACK of their beginning "
		"(Nagle's "
		"algorithm). A client may delay that by 40 ms, which is in network + client, or in "
		"transmit queue with --transmit. The server has to set TCP_NODELAY, or write each "
		"response at once",
		as_count(service->nagle_held), as_count(service->exchanges));
	return true;
}

/* The network and client take this many times the best time of a packet and its ACK. */
#define FAR_ABOVE 10

/* The cause is not known: suggest where to look. */
static bool hint_network(const struct run *run, const struct run_service *service,
			 struct report_hint *hint)
{
	char why[REPORT_UNDIVIDED_TEXT];
	struct report_means means;

	if (service->nagle_held || service->stages[STAGE_TRANSMIT_QUEUE].measured ||
	    !service->min_rtt_ns.known || report_driven_service(run) != service ||
	    report_undivided(run, service, why))
		return false;
	report_means(run, service, &means);
	if (means.network_unknown || means.network_ns < LONG_WAIT_NS ||
	    report_trails(service, HELD_SHARE, means.network_ns) ||
	    means.network_ns < FAR_ABOVE * (double)service->min_rtt_ns.value)
		return false;
	snprintf(hint->text, sizeof(hint->text),
		 "network + client (mean %s) is far above the shortest round trip of TCP (%s); "
		 "sojourn --transmit all shows how long the response waited on this host",
		 as_time(means.network_ns), as_time((double)service->min_rtt_ns.value));
	return true;
}

/* From this share of exchanges on, late writes are not only farewells. */
#define LATE_SHARE 0.5

/* The server may push events, or pause within its responses: their bytes do not show which. */
static bool hint_trailing(const struct run *run, const struct run_service *service,
			  struct report_hint *hint)
{
	uint64_t trailing = service->losses[RUN_LOSS_TRAILING];

	(void)run;
	if (!trailing || (double)trailing < LATE_SHARE * (double)service->exchanges)
		return false;
	snprintf(hint->text, sizeof(hint->text),
		 "%s writes came after a pause of %s or more, and count for no response. If "
		 "responses have such pauses, sojourn observe --quiet-time with a longer one makes "
		 "these writes a part of respond",
		 as_count(trailing), as_time(report_quiet_ns(service)));
	return true;
}

/* From this share of exchanges on, clients regularly have several requests in flight on a connection. */
#define OVERLAPPED_SHARE 0.01

/* How many requests the server has read before an answer is not known. */
static bool hint_overlapped(const struct run *run, const struct run_service *service,
			    struct report_hint *hint)
{
	uint64_t overlapped = service->losses[RUN_LOSS_OVERLAPPED];

	(void)run;
	if (!overlapped || (double)overlapped < OVERLAPPED_SHARE * (double)service->exchanges)
		return false;
	snprintf(
		hint->text, sizeof(hint->text),
		"%s of %s exchanges overlap: their request came before the response to an "
		"earlier one was complete. Requests that the server reads before it answers are "
		"one exchange. So exchanges and throughput are a lower bound of the requests. "
		"Each one of HTTP/1 is counted with --http, and of other protocols with --protocol",
		as_count(overlapped), as_count(service->exchanges));
	return true;
}

/* The bytes of a few reads look so. With --http the observer follows the frames. */
static bool hint_websocket(const struct run *run, const struct run_service *service,
			   struct report_hint *hint)
{
	uint64_t connections = service->losses[RUN_LOSS_PERHAPS_WEBSOCKET];

	(void)run;
	if (!connections)
		return false;
	snprintf(hint->text, sizeof(hint->text),
		 "%s connections that are older than the observation seem to be WebSocket's. "
		 "Each of their messages that the server answered counts as an exchange. "
		 "sojourn observe --http counts messages apart",
		 as_count(connections));
	return true;
}

/* Without the hint a service with such clients alone seems to be idle. */
static bool hint_mptcp(const struct run *run, const struct run_service *service,
		       struct report_hint *hint)
{
	uint64_t connections = service->losses[RUN_LOSS_MPTCP];

	(void)run;
	if (!connections)
		return false;
	snprintf(hint->text, sizeof(hint->text),
		 "%s connections are of MPTCP, because client and server both use it. Their data "
		 "passes another socket than the observed one, so their requests are in no "
		 "figure. Servers in Go use it unless GODEBUG=multipathtcp=0 is set",
		 as_count(connections));
	return true;
}

/* Nothing in HTTP/2 says where a message of such a stream ends, or which one it answers. */
static bool hint_two_way(const struct run *run, const struct run_service *service,
			 struct report_hint *hint)
{
	uint64_t streams = service->http2.two_way.value;

	(void)run;
	if (!streams)
		return false;
	snprintf(hint->text, sizeof(hint->text),
		 "%s responses of HTTP/2 were under way while data of their request still came, as "
		 "in tunnels (WebSocket over HTTP/2). Each is one exchange: its service ends with "
		 "the tunnel's first answer, and its respond with the tunnel",
		 as_count(streams));
	return true;
}

/* This is no guess either, where the share is known. */
static bool hint_upstreams(const struct run *run, const struct run_service *service,
			   struct report_hint *hint)
{
	return report_upstreams_text(run, service, sizeof(hint->text), hint->text);
}

static bool (*const hints[])(const struct run *run, const struct run_service *service,
			     struct report_hint *hint) = {
	hint_upstreams,	 hint_accept,	 hint_nagle, hint_network, hint_trailing,
	hint_overlapped, hint_websocket, hint_mptcp, hint_two_way,
};

size_t report_hints(const struct run *run, const struct run_service *service,
		    struct report_hint ret_hints[static REPORT_HINTS])
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		count += hints[i](run, service, &ret_hints[count]);
	return count;
}

_Static_assert(ARRAY_SIZE(hints) == REPORT_HINTS, "report.h says how many");

void report_print_hints(const struct page *page, const struct run *run,
			const struct run_service *service)
{
	struct report_hint found[REPORT_HINTS];
	size_t count = page->tight == TIGHT_MOST ? 0 : report_hints(run, service, found);

	for (size_t i = 0; i < count; i++) {
		page_left(page, LABEL_COLUMNS, "%s", i ? "" : "hint");
		page_wrap(page, LABEL_COLUMNS, "%s", found[i].text);
	}
}
