/* SPDX-License-Identifier: MIT */
/* The rules of check.c's table, by file and subject. */
#ifndef LIB_CHECK_RULES_H
#define LIB_CHECK_RULES_H

#include "checking.h"

/* histogram.c */

/* Call the rule for every histogram of the document. */
void check_each_histogram(struct checking *checking, check_histogram_rule *rule);
check_histogram_rule check_buckets;
check_histogram_rule check_means;
check_histogram_rule check_sums;
check_histogram_rule check_maxima;

/* service.c */

/*
 * Estimate how many exchanges and connections passed while the period's first and last reading were
 * under way, from the series' first and last point. None if the service was idle or has no series.
 */
struct check_moving {
	uint64_t exchanges, connections;
};

struct check_moving check_moving(const struct run_service *service);
check_service_rule check_timed;
check_service_rule check_stages_agree;
check_service_rule check_split;
check_service_rule check_parts_of_exchanges;
void check_statuses(struct checking *checking);
check_service_rule check_connections;
check_service_rule check_time_wait;
check_service_rule check_transmit;
check_service_rule check_open;
check_service_rule check_long_values;
check_service_rule check_service_samples;

/* series.c */
check_service_rule check_series_tiled;
check_service_rule check_series_sums;
check_service_rule check_series_percentiles;

/* driver.c */
void check_responses(struct checking *checking);
void check_latencies(struct checking *checking);
void check_driver_length(struct checking *checking);
void check_failures(struct checking *checking);
void check_intervals(struct checking *checking);
void check_rows(struct checking *checking);
void check_drivers_parts(struct checking *checking);
void check_members(struct checking *checking);
void check_sweep(struct checking *checking);

/* joined.c */
void check_joined_parts(struct checking *checking);
void check_joined_sums(struct checking *checking);
void check_joined_stages(struct checking *checking);
void check_joined_tail(struct checking *checking);
void check_joined_counts(struct checking *checking);
void check_both_sides(struct checking *checking);

#endif
