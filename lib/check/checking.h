/* SPDX-License-Identifier: MIT */
/* Shared by the rules about run documents: reporting what is broken. Neighbour: rules.h. */
#ifndef LIB_CHECK_CHECKING_H
#define LIB_CHECK_CHECKING_H

#include "sojourn/check.h"

#define CHECK_PLACE 160

struct checking;
typedef void check_service_rule(struct checking *checking, const struct run_service *service,
				const char *place);
typedef void check_histogram_rule(struct checking *checking, const char *place,
				  const struct histogram *h);

struct checking {
	const struct run *run;
	const char *rule;
	char ***broken;
	int error; /* -ENOMEM: sentences are missing */
	/* histogram.c: */
	check_histogram_rule *of_histogram;
	uint64_t apart; /* maximum of values in the sum but not in the buckets, or vice versa */
};

/* Append "RULE: ...". */
__attribute__((format(printf, 2, 3))) void check_say(struct checking *checking, const char *format,
						     ...);

/* Report at @place if the left value is above the right one, or if they differ. */
void check_at_most(struct checking *checking, const char *place, const char *left_name,
		   uint64_t left, const char *right_name, uint64_t right);
void check_same(struct checking *checking, const char *place, const char *left_name, uint64_t left,
		const char *right_name, uint64_t right);

/* Write "tcp port 8080" or "tcp port 8080 of host server-2". */
void check_place_of(const struct run_service *service, char ret_place[static CHECK_PLACE]);

/* Call the rule for every service. */
void check_each_service(struct checking *checking, check_service_rule *rule);

#endif
