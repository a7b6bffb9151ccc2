// SPDX-License-Identifier: MIT
/*
 * Means that sum to the driver's round trip: from its joined exchanges, or else the service's means
 * subtracted from the driver's. The latter requires that both are of the same requests.
 */
#include "means.h"

#include <math.h>

#include "parts.h"
#include "sojourn/remedy.h"
#include "sojourn/run_sum.h"

static void subtract(const struct run *run, const struct run_service *service,
		     struct report_means *means)
{
	*means = (struct report_means){.round_trip_ns = histogram_mean(&run->driver->round_trip)};
	means->network_ns = means->round_trip_ns;
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++) {
		struct report_mean *mean = &means->stages[i];

		mean->name = run_stage_label(service->stages, i);
		mean->missing = report_missing(&service->stages[i], i);
		mean->histogram = &service->stages[i].histogram;
		if (mean->missing)
			continue;
		mean->mean_ns = run_stage_mean(service, i);
		means->network_ns -= mean->mean_ns;
	}
}

static void divide(const struct run_joined *joined, struct report_means *means)
{
	const struct run_stage *transmit = &joined->stages[STAGE_TRANSMIT_QUEUE];
	double count = (double)joined->joined;

	*means = (struct report_means){
		.of_joined = joined->joined,
		.round_trip_ns = (double)joined->sum.round_trip_ns / count,
		.network_ns = (double)joined->sum.network_ns / count,
		.overhang_ns = (double)joined->sum.overhang_ns / count,
	};
	for (unsigned int i = 0; i < REPORT_MEAN_STAGES; i++) {
		struct report_mean *mean = &means->stages[i];

		mean->name = run_stage_label(joined->stages, i);
		mean->histogram = &joined->stages[i].histogram;
		if (joined->sum.stages[i].known)
			mean->mean_ns = (double)joined->sum.stages[i].value / count;
		else
			mean->missing = joined->stages[i].reason ? joined->stages[i].reason
								 : "no joined exchange has it";
	}
	if (transmit->histogram.count && transmit->histogram.count < joined->joined)
		means->transmit_unknown = joined->joined - transmit->histogram.count;
}

/* Return whether the stages exceed the round trip, by more than rounding. */
static bool is_negative(const struct report_means *means)
{
	return means->network_ns < -0.5;
}

/* Counts of the same requests differ by less, due to requests in flight at the ends of a phase. */
#define SAME_SHARE 0.05

static bool counts_differ(const struct run *run, const struct run_service *service)
{
	double seen = (double)service->exchanges, sent = (double)run->driver->requests;

	return fabs(seen - sent) > SAME_SHARE * fmax(seen, sent);
}

/* Return whether nearly all exchanges sampled by both sides were joined: they represent all. */
static bool is_representative(const struct run *run)
{
	const struct run_joined *joined = run->joined;
	double chosen;

	if (!joined || !joined->joined)
		return false;
	chosen = (double)run->driver->requests * (double)joined->threshold / (double)RUN_SAMPLE_ALL;
	/* The number of hashes below the threshold also varies by chance. */
	return (double)joined->joined >=
	       (1 - SAME_SHARE) * chosen -
		       (joined->threshold < RUN_SAMPLE_ALL ? 4 * sqrt(chosen) : 0);
}

const char *report_unfollowed(const struct run_service *service)
{
	static const char *const advice[RUN_REMEDY_COUNT] = {
		[RUN_REMEDY_NONE] = "",
		[RUN_REMEDY_TLS] = (" (--tls of the observer times them in TLS of OpenSSL, "
				    "BoringSSL, GnuTLS and Go)"),
		[RUN_REMEDY_TLS_SHOWS] = " (in TLS whose text --tls does not show)",
		[RUN_REMEDY_NO_HTTP2] = " (without --no-http2 the observer times them)",
		[RUN_REMEDY_HTTP] = " (--http of the observer times them)",
		[RUN_REMEDY_FROM_START] = (" (on connections from before streams were followed; "
					   "--http of the observer follows them from its start)"),
	};

	return advice[run_http2_remedy(service)];
}

/* Multiplexed exchanges are never joined. */
static bool is_multiplexed(const struct run *run, const struct run_service *service)
{
	bool late = service->http2.older.value && counts_differ(run, service);

	return (service->losses[RUN_LOSS_MULTIPLEXED] || late) && !is_representative(run);
}

bool report_undivided(const struct run *run, const struct run_service *service,
		      char ret_why[static REPORT_UNDIVIDED_TEXT])
{
	const char *seen = as_count(service->exchanges), *sent = as_count(run->driver->requests);

	if (is_multiplexed(run, service))
		snprintf(ret_why, REPORT_UNDIVIDED_TEXT,
			 "the service speaks HTTP/2, whose requests overlap on a connection%s: the "
			 "observer timed %s exchanges, the driver completed %s requests",
			 report_unfollowed(service), seen, sent);
	else if (counts_differ(run, service) && !is_representative(run))
		snprintf(ret_why, REPORT_UNDIVIDED_TEXT,
			 "the observer saw %s exchanges at port %u, the driver completed %s "
			 "requests: these are not the same%s",
			 seen, service->port, sent,
			 service->exchanges > run->driver->requests
				 ? ", but also those of others, of a warm-up or given up"
				 : "");
	else
		return false;
	return true;
}

/* Prefer joined exchanges if the service's means include others' or cannot be the driver's. */
static bool is_better_joined(const struct run *run, const struct run_service *service,
			     const struct report_means *subtracted)
{
	const struct run_joined *joined = run->joined;

	if (!joined || !joined->joined)
		return false;
	return joined->joined == run->driver->requests || joined->other_clients ||
	       is_negative(subtracted) || counts_differ(run, service);
}

void report_means(const struct run *run, const struct run_service *service,
		  struct report_means *ret_means)
{
	struct report_means means;

	subtract(run, service, &means);
	if (is_better_joined(run, service, &means))
		divide(run->joined, &means);
	else if (is_negative(&means))
		means.network_unknown =
			service->exchanges > run->driver->requests
				? "the service's means are also of requests by others or given up, "
				  "and no"
				  " exchange was joined"
				: "the stages hold more than the driver's round trips, and no"
				  " exchange was joined";
	if (means.network_unknown || means.network_ns < 0)
		means.network_ns = 0;
	*ret_means = means;
}

double report_quiet_ns(const struct run_service *service)
{
	return service->quiet_ns.known ? (double)service->quiet_ns.value
				       : (double)REPORT_USUAL_QUIET_NS;
}

bool report_trails(const struct run_service *service, double share, double network_ns)
{
	double late = (double)service->losses[RUN_LOSS_TRAILING];

	/* Half: a mean is also of responses without a pause. */
	return late > 0 && late >= share * (double)service->exchanges &&
	       network_ns >= report_quiet_ns(service) / 2;
}

bool report_means_basis(const struct run *run, const struct report_means *means,
			char ret_text[static REPORT_MEANS_TEXT])
{
	const char *count = as_count(means->of_joined);

	if (!means->of_joined)
		return false;
	if (means->of_joined == run->driver->requests)
		snprintf(ret_text, REPORT_MEANS_TEXT, "the driver's %s requests, all joined",
			 count);
	else
		snprintf(ret_text, REPORT_MEANS_TEXT,
			 "the %s joined of the driver's %s requests: round trip %s", count,
			 as_count(run->driver->requests), as_time(means->round_trip_ns));
	return true;
}
