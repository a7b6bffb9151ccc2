/* SPDX-License-Identifier: MIT */
/* What the driver's round trips consist of on average, and of which exchanges that is known. */
#ifndef LIB_REPORT_MEANS_H
#define LIB_REPORT_MEANS_H

#include "sojourn/run.h"

/*
 * The stages of the residence, and the transmit queue where it was measured. `ack` is no part: it
 * passes while the response is under way to the client and after that.
 */
#define REPORT_MEAN_STAGES (STAGE_TRANSMIT_QUEUE + 1)

struct report_mean {
	const char *name;    /* as run_stage_label() */
	const char *missing; /* why there is none; NULL if there is */
	double mean_ns;
	const struct histogram *histogram; /* of the same exchanges */
};

/* round_trip_ns = network_ns + the stages − overhang_ns, unless the network is not known. */
struct report_means {
	uint64_t of_joined; /* so many joined exchanges; 0: all that each side saw, subtracted */
	double round_trip_ns;
	double network_ns;	     /* never negative */
	const char *network_unknown; /* why; NULL: it is known */
	double overhang_ns;	     /* only of joined exchanges */
	uint64_t transmit_unknown;   /* of joined ones: their transmit queue is in the network */
	struct report_mean stages[REPORT_MEAN_STAGES];
};

/*
 * Exact where exchanges were joined: that is taken if all of the driver's were, or if the service served
 * others too. Otherwise the whole service's means are subtracted. @service and the driver have requests;
 * @ret_means points into @run.
 */
void report_means(const struct run *run, const struct run_service *service,
		  struct report_means *ret_means);

#define REPORT_UNDIVIDED_TEXT 320

/* What the observer could have done for a service that speaks HTTP/2: words behind a sentence, or none. */
const char *report_unfollowed(const struct run_service *service);

/* Whether the round trip cannot be divided, for the two sides did not see the same requests; and why. */
bool report_undivided(const struct run *run, const struct run_service *service,
		      char ret_why[static REPORT_UNDIVIDED_TEXT]);

#define REPORT_MEANS_TEXT 160

/* "the driver's 200 requests, all joined"; false: they are simply of all that each side saw. */
bool report_means_basis(const struct run *run, const struct report_means *means,
			char ret_text[static REPORT_MEANS_TEXT]);

#endif
