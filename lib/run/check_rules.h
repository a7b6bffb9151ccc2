/* SPDX-License-Identifier: MIT */
/* The rules of check.c's table, by file and subject. */
#ifndef LIB_RUN_CHECK_RULES_H
#define LIB_RUN_CHECK_RULES_H

#include "checking.h"

/* check_histogram.c */
void check_buckets(struct checking *checking);
void check_means(struct checking *checking);
void check_sums(struct checking *checking);
void check_maxima(struct checking *checking);

/* check_service.c */

/*
 * Estimate how many exchanges and connections passed while the period's first and last reading were
 * under way, from the series' first and last point. None if the service was idle or has no series.
 */
struct check_moving {
	uint64_t exchanges, connections;
};

struct check_moving check_moving(const struct run_service *service);
void check_timed(struct checking *checking);
void check_stages_agree(struct checking *checking);
void check_split(struct checking *checking);
void check_parts_of_exchanges(struct checking *checking);
void check_statuses(struct checking *checking);
void check_connections(struct checking *checking);
void check_time_wait(struct checking *checking);
void check_transmit(struct checking *checking);
void check_open(struct checking *checking);
void check_long_values(struct checking *checking);
void check_service_samples(struct checking *checking);

/* check_series.c */
void check_series_tiled(struct checking *checking);
void check_series_sums(struct checking *checking);
void check_series_percentiles(struct checking *checking);

/* check_driver.c */
void check_responses(struct checking *checking);
void check_latencies(struct checking *checking);
void check_driver_length(struct checking *checking);
void check_failures(struct checking *checking);
void check_intervals(struct checking *checking);
void check_rows(struct checking *checking);
void check_drivers_parts(struct checking *checking);
void check_members(struct checking *checking);
void check_sweep(struct checking *checking);

/* check_joined.c */
void check_joined_parts(struct checking *checking);
void check_joined_sums(struct checking *checking);
void check_joined_stages(struct checking *checking);
void check_joined_tail(struct checking *checking);
void check_joined_counts(struct checking *checking);
void check_both_sides(struct checking *checking);

#endif
