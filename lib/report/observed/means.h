/* SPDX-License-Identifier: MIT */
/* The average parts of the driver's round trips, and which exchanges they are of. */
#ifndef LIB_REPORT_OBSERVED_MEANS_H
#define LIB_REPORT_OBSERVED_MEANS_H

#include "sojourn/clock.h"
#include "sojourn/run.h"

/*
 * The stages of the residence, and the transmit queue if measured. `ack` is no part: it passes
 * during and after the response's way to the client.
 */
#define REPORT_MEAN_STAGES (STAGE_TRANSMIT_QUEUE + 1)

struct report_mean {
	const char *name;    /* see run_stage_label() */
	const char *missing; /* why there is no mean; NULL: there is */
	double mean_ns;
	const struct histogram *histogram; /* of the same exchanges */
};

/* round_trip_ns = network_ns + the stages − overhang_ns, if the network is known. */
struct report_means {
	uint64_t of_joined; /* number of joined exchanges; 0: subtracted means of all */
	double round_trip_ns;
	double network_ns;	     /* not negative */
	const char *network_unknown; /* why it is not known; NULL: it is */
	double overhang_ns;	     /* only of joined exchanges */
	uint64_t transmit_unknown;   /* of joined ones: transmit queue included in the network */
	struct report_mean stages[REPORT_MEAN_STAGES];
};

/*
 * Compute the means. Use joined exchanges if all of the driver's were joined, or if the service's
 * means cannot be the driver's, as with other clients. Otherwise subtract the service's means.
 * @service and the driver have requests; @ret_means points into @run.
 */
void report_means(const struct run *run, const struct run_service *service,
		  struct report_means *ret_means);

#define REPORT_UNDIVIDED_TEXT 320

/* Return advice on observing a service with HTTP/2, to follow a sentence, or "". */
const char *report_unfollowed(const struct run_service *service);

/* Return whether both sides saw different requests, so that the round trip is not divided. */
bool report_undivided(const struct run *run, const struct run_service *service,
		      char ret_why[static REPORT_UNDIVIDED_TEXT]);

/*
 * Return whether the time of @network_ns may be that of late writes: parts of responses with pauses, which count for
 * no response. @share: of the exchanges that have to have one.
 */
bool report_trails(const struct run_service *service, double share, double network_ns);
/* That of --quiet-time unless given. */
#define REPORT_USUAL_QUIET_NS (200 * NSEC_PER_MSEC)
/* Return the pause after which a write is late. */
double report_quiet_ns(const struct run_service *service);

#define REPORT_MEANS_TEXT 160

/* Write "the driver's 200 requests, all joined"; false: the means are of all that each side saw. */
bool report_means_basis(const struct run *run, const struct report_means *means,
			char ret_text[static REPORT_MEANS_TEXT]);

#endif
