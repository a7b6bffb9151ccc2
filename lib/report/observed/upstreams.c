// SPDX-License-Identifier: MIT
/* Which part of a service's time its upstreams took: services that are observed, too, and that its processes call. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/text.h"

/* Calls of others, untimed ones and those without an answer may make this part of all, and no more. */
#define NEGLIGIBLE 0.01
/* So much more than all of the service may be calls that were under way when the period began. */
#define EXCESS 1.02
/* More calls per request may overlap. The sum of their times is then more than the wait for them. */
#define ONE_CALL 1.02
/* From this share of the service on, the upstream is the answer. */
#define MAIN_SHARE 0.5

/* The documents' clocks and periods are compared to within this. */
#define PERIODS_NS (10 * NSEC_PER_MSEC)

static bool all_timed(const struct run_service *service)
{
	uint64_t timed = service->stages[STAGE_SERVICE].histogram.count;

	return (double)service->exchanges - (double)timed <=
	       NEGLIGIBLE * (double)service->exchanges;
}

/*
 * Return the mean time of a call within the front's service, until the first byte of its response. While the request
 * still arrives, the front may be receiving it itself; while the response is written, it may be passing it on.
 */
static double mean_wait(const struct run_service *upstream)
{
	return run_stage_mean(upstream, STAGE_ACCEPT_QUEUE) +
	       run_stage_mean(upstream, STAGE_SOCKET_QUEUE) +
	       run_stage_mean(upstream, STAGE_SERVICE);
}

/*
 * Return whether the upstream's first and last requests were within the time of the front's. Each host has a clock of
 * its own, so only the length is compared. If it is not known, no other period can be ruled out.
 */
static bool same_period(const struct run_service *front, const struct run_service *upstream)
{
	uint64_t own = front->last_message_ns - front->first_message_ns;
	uint64_t other = upstream->last_message_ns - upstream->first_message_ns;

	return !upstream->exchanges ||
	       (front->first_message_ns && upstream->first_message_ns &&
		(double)other <= (double)own * (1 + NEGLIGIBLE) + (double)PERIODS_NS);
}

/* Write why the upstream's time cannot be compared with the front's; "": it can. */
static void write_unknown(const struct run_service *front, const struct run_upstream *row,
			  struct report_upstream *upstream)
{
	const struct run_service *service = upstream->service;
	uint64_t all = row->connections + row->others,
		 silent = run_upstream_given_up(front, service);
	char *text = upstream->unknown;
	size_t size = sizeof(upstream->unknown);

	if (row->reason)
		snprintf(text, size, "%s", row->reason);
	else if (row->host && !same_period(front, service))
		snprintf(text, size, "the documents of the two hosts are not of one period");
	else if ((double)row->others > NEGLIGIBLE * (double)all)
		snprintf(text, size, "%s of %s connections to it are of others",
			 as_count(row->others), as_count(all));
	else if (row->serves_too.known)
		snprintf(text, size,
			 "the calls may be for port %ju, which its processes serve, too",
			 (uintmax_t)row->serves_too.value);
	else if (!all_timed(service) || !all_timed(front) || run_hidden_connections(service) ||
		 run_hidden_connections(front))
		snprintf(text, size, "not all exchanges of both are timed");
	else if ((double)silent > NEGLIGIBLE * (double)(service->exchanges + silent))
		snprintf(text, size, "%s of %s calls got no answer", as_count(silent),
			 as_count(service->exchanges + silent));
	else if (upstream->share > EXCESS)
		snprintf(
			text, size,
			"the calls take longer than the whole service: some overlap, or are for no "
			"request");
}

/* Return the part of the front's wait, per request, in which the upstream did not have the call; negative: not known. */
static double between(const struct run_service *front, const struct report_upstream *upstream)
{
	double wait_ns = report_call_wait(front, upstream->service);

	return wait_ns < upstream->call_ns ? -1 : upstream->calls * (wait_ns - upstream->call_ns);
}

static void judge(const struct run_service *front, const struct run_upstream *row,
		  struct report_upstream *upstream)
{
	double service_ns = (double)front->stages[STAGE_SERVICE].histogram.sum;

	report_server_name(upstream->service, upstream->name);
	if (row->host)
		snprintf(upstream->on, sizeof(upstream->on), " on %.63s", row->host);
	upstream->calls = (double)upstream->service->exchanges / (double)front->exchanges;
	upstream->at_most = upstream->calls > ONE_CALL;
	upstream->call_ns = mean_wait(upstream->service);
	upstream->wait_ns = upstream->calls * upstream->call_ns;
	upstream->between_ns = between(front, upstream);
	upstream->share = upstream->call_ns * (double)upstream->service->exchanges / service_ns;
	write_unknown(front, row, upstream);
}

/* Return the number of upstreams of @front that were asked. */
static size_t judge_all(const struct run *run, const struct run_service *front,
			struct report_upstream *ret_upstreams, size_t size)
{
	size_t count = 0;

	if (!front->exchanges || !front->stages[STAGE_SERVICE].histogram.sum)
		return 0;
	for (size_t i = 0; i < front->upstream_count && count < size; i++) {
		struct report_upstream *upstream = &ret_upstreams[count];

		*upstream = (struct report_upstream){
			.row = &front->upstreams[i],
			.service = run_upstream_service(run, front, &front->upstreams[i])};
		if (!upstream->service ||
		    (!upstream->service->exchanges && !run_hidden_connections(upstream->service) &&
		     !run_upstream_given_up(front, upstream->service)))
			continue;
		judge(front, &front->upstreams[i], upstream);
		count++;
	}
	return count;
}

bool report_main_upstream(const struct run *run, const struct run_service *front,
			  struct report_upstream *ret_upstream)
{
	struct report_upstream upstreams[REPORT_UPSTREAMS];
	size_t count = judge_all(run, front, upstreams, REPORT_UPSTREAMS);
	bool found = false;

	for (size_t i = 0; i < count; i++) {
		if (!*upstreams[i].unknown && upstreams[i].share < MAIN_SHARE)
			continue;
		*ret_upstream = upstreams[i];
		if (!*upstreams[i].unknown)
			return true;
		found = true;
	}
	return found;
}

static int compare_waits(const void *a, const void *b)
{
	const struct report_upstream *x = a, *y = b;

	return x->wait_ns == y->wait_ns ? 0 : x->wait_ns < y->wait_ns ? 1 : -1;
}

/* "php-fpm (port 9000) for 97.1 % of its service: 1.00 calls of 48.6 ms per request". */
static void print_wait(FILE *file, const struct report_upstream *upstream)
{
	fprintf(file, "%s%s (port %u) for %s%s of its service: %.2f calls of %s per request",
		upstream->name, upstream->on, upstream->service->port,
		upstream->at_most ? "at most " : "",
		as_share(100 * (upstream->share > 1 ? 1 : upstream->share)), upstream->calls,
		as_time(upstream->call_ns));
}

/* Return the time between the front and all upstreams; negative: it is not known. */
static double all_between(const struct report_upstream *upstreams, size_t count)
{
	double sum_ns = 0;

	for (size_t i = 0; i < count; i++) {
		if (upstreams[i].between_ns < 0)
			return -1;
		sum_ns += upstreams[i].between_ns;
	}
	return sum_ns;
}

/* Print the rest, which no upstream holds. On the way to another host it is at least one round trip of TCP's. */
static void print_rest(FILE *file, const struct run_service *front,
		       const struct report_upstream *upstreams, size_t count, double own_ns)
{
	double between_ns = all_between(upstreams, count);

	if (between_ns >= 0 && between_ns <= own_ns) {
		fprintf(file, ". %s are its own%s", as_time(own_ns - between_ns),
			front->calls ? ", or of calls that are not observed" : "");
		fprintf(file, ", and %s passed between both: in the network, and until they read",
			as_time(between_ns));
		return;
	}
	fprintf(file, ". %s are its own%s", as_time(own_ns),
		front->calls ? ", the network's, or of calls that are not observed"
			     : " and the network's");
	for (size_t i = 0; i < count; i++)
		if (*upstreams[i].on && upstreams[i].service->min_rtt_ns.known)
			fprintf(file, "; a round trip of TCP's to%s takes %s at least",
				upstreams[i].on + strlen(" on"),
				as_time((double)upstreams[i].service->min_rtt_ns.value));
}

/*
 * Print how the service of the slowest requests divides, as far as their calls are paired with exchanges there. The rest may
 * be of another upstream's calls.
 */
static void print_divided(FILE *file, const struct run_service *front,
			  const struct run_nested *nested)
{
	const struct run_divided *divided = nested->divided;
	uint64_t sum_ns = !divided ? 0
				   : divided->slowest_own_ns + divided->slowest_there_ns +
					     divided->slowest_between_ns;
	double part = sum_ns ? 100.0 / (double)sum_ns : 0;

	if (!sum_ns)
		return;
	if (divided->slowest < nested->slowest.count)
		fprintf(file, ". Of the %s whose calls are paired", as_count(divided->slowest));
	else
		fputs(":", file);
	fprintf(file, " %s were there, %s between both, and %s its own%s",
		as_share(part * (double)divided->slowest_there_ns),
		as_share(part * (double)divided->slowest_between_ns),
		as_share(part * (double)divided->slowest_own_ns),
		front->upstream_count > 1 || front->calls ? ", or of calls to others" : "");
}

/* Print what single calls took longer for the front than there. */
static void print_pairs(FILE *file, const struct report_upstream *upstream)
{
	const struct run_call_pairs *pairs = upstream->row->pairs;
	const struct histogram *between = &pairs->between;

	if (!pairs->paired) {
		fprintf(file, ". No call is paired with an exchange there: %s",
			pairs->reason ? pairs->reason : "there is none");
		return;
	}
	fprintf(file,
		". %s calls are paired with their exchanges on %s. On average %s passed between "
		"both "
		"(p50 %s, p99 %s, max %s), and %s there until the response",
		as_count(pairs->paired), upstream->row->host, as_time(histogram_mean(between)),
		as_time((double)histogram_quantile(between, 0.5)),
		as_time((double)histogram_quantile(between, 0.99)), as_time((double)between->max),
		as_time(histogram_mean(&pairs->there)));
	if (pairs->reason)
		fprintf(file, "; %s", pairs->reason);
}

/* Print the wait of the slowest requests, which is not known better than to the calls within them. */
static void print_slowest(FILE *file, const struct run_service *front,
			  const struct report_upstream *upstream)
{
	const struct run_nested *nested = upstream->row->nested;
	const struct run_nested_sum *slowest = &nested->slowest;
	double part = slowest->service_ns ? 100.0 / (double)slowest->service_ns : 0;
	const char *least = as_share(part * (double)slowest->least_ns);
	const char *most = as_share(part * (double)slowest->most_ns);

	if (nested->reason) {
		fprintf(file, ". How long the slowest ones wait for %s is not known: %s",
			upstream->name, nested->reason);
		return;
	}
	fprintf(file, ". Of its slowest 1 %% (%s from %s on) ", as_count(slowest->count),
		as_time((double)slowest->from_ns));
	if (!strcmp(least, most))
		fprintf(file, "%s was the wait for %s", most, upstream->name);
	else
		fprintf(file, "%s to %s was the wait for %s: other requests were in flight", least,
			most, upstream->name);
	print_divided(file, front, nested);
}

/* Print all upstreams, @count of them, those that take most first. */
static void print_upstreams(FILE *file, const struct run_service *front,
			    struct report_upstream *upstreams, size_t count)
{
	double own_ns = run_stage_mean(front, STAGE_SERVICE), sum = 0;
	char name[SHORT_TEXT];
	bool at_most = false;
	size_t known = 0;

	qsort(upstreams, count, sizeof(*upstreams), compare_waits);
	report_server_name(front, name);
	for (size_t i = 0; i < count; i++) {
		if (*upstreams[i].unknown)
			continue;
		if (known++)
			fputs("; and for ", file);
		else
			fprintf(file, "%s waits for ", name);
		print_wait(file, &upstreams[i]);
		own_ns -= upstreams[i].wait_ns;
		sum += upstreams[i].share;
		at_most |= upstreams[i].at_most;
	}
	if (known == count && sum <= 1 && !at_most)
		print_rest(file, front, upstreams, count, own_ns);
	else if (known == count && sum > EXCESS)
		fputs(". Together these are more than its service, so some calls overlap", file);
	for (size_t i = 0; i < count; i++)
		if (!*upstreams[i].unknown && upstreams[i].row->nested)
			print_slowest(file, front, &upstreams[i]);
	for (size_t i = 0; i < count; i++)
		if (*upstreams[i].unknown)
			fprintf(file,
				"%s%s calls %s%s (port %u), and how long it waits is not known: %s",
				known++ ? ". " : "", name, upstreams[i].name, upstreams[i].on,
				upstreams[i].service->port, upstreams[i].unknown);
	for (size_t i = 0; i < count; i++)
		if (upstreams[i].row->pairs)
			print_pairs(file, &upstreams[i]);
}

bool report_upstreams_text(const struct run *run, const struct run_service *front, size_t size,
			   char *ret_text)
{
	struct report_upstream upstreams[REPORT_UPSTREAMS];
	size_t count = judge_all(run, front, upstreams, REPORT_UPSTREAMS);
	FILE *file = count || front->calls ? fmemopen(ret_text, size, "w") : NULL;

	if (!file)
		return false;
	if (count)
		print_upstreams(file, front, upstreams, count);
	if (front->calls)
		fprintf(file,
			"%sits processes have connections to %s. These are not observed%s, and the "
			"wait for them is in its service%s",
			count ? "; " : "", front->calls,
			front->host && front->called_count
				? ", or under other addresses (translated between the hosts)"
				: "",
			front->timed_call_count ? " (see calls)" : "");
	fclose(file);
	ret_text[size - 1] = '\0';
	text_make_utf8(ret_text); /* its end may have been cut */
	return true;
}
