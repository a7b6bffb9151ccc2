/* SPDX-License-Identifier: MIT */
/* What the rules about run documents share: saying what is broken. Neighbour: check_rules.h. */
#ifndef LIB_RUN_CHECKING_H
#define LIB_RUN_CHECKING_H

#include "sojourn/check.h"

#define CHECK_PLACE 160

struct checking {
	const struct run *run;
	const char *rule;
	char ***broken;
	int error; /* -ENOMEM: sentences are missing */
	/* check_histogram.c: values that may be in one part of the histogram and not in the other. */
	uint64_t apart;
};

/* Appends "RULE: ...". */
__attribute__((format(printf, 2, 3))) void check_say(struct checking *checking, const char *format,
						     ...);

/* One side of a comparison: what it is called, and its value. */
struct check_value {
	const char *name;
	uint64_t value;
};

/* Where of @place the left value must not be above the right one, and where both must be the same. */
void check_at_most(struct checking *checking, const char *place, struct check_value left,
		   struct check_value right);
void check_same(struct checking *checking, const char *place, struct check_value left,
		struct check_value right);

/* "tcp port 8080", "tcp port 8080 of host server-2". */
void check_place_of(const struct run_service *service, char ret_place[static CHECK_PLACE]);

typedef void (*check_service_rule)(struct checking *checking, const struct run_service *service,
				   const char *place);

/* Calls @rule for every service. */
void check_each_service(struct checking *checking, check_service_rule rule);

#endif
