// SPDX-License-Identifier: MIT
/* Invariants of run documents: the table of rules; see sojourn/check.h. */
#include "rules.h"

#include "sojourn/cleanup.h"

static const struct {
	const char *name;
	/* One of these. */
	check_histogram_rule *of_histogram;
	check_service_rule *of_service;
	void (*check)(struct checking *checking);
} rules[] = {
	{"buckets-add-up", .of_histogram = check_buckets},
	{"mean-below-max", .of_histogram = check_means},
	{"sum-in-buckets", .of_histogram = check_sums},
	{"max-in-last-bucket", .of_histogram = check_maxima},
	{"exchanges-timed", .of_service = check_timed},
	{"stages-agree", .of_service = check_stages_agree},
	{"split-is-service", .of_service = check_split},
	{"parts-of-exchanges", .of_service = check_parts_of_exchanges},
	{"statuses-add-up", .check = check_statuses},
	{"connections-balance", .of_service = check_connections},
	{"time-wait-of-closes", .of_service = check_time_wait},
	{"followed-responses", .of_service = check_transmit},
	{"open-requests", .of_service = check_open},
	{"within-the-period", .of_service = check_long_values},
	{"samples-agree", .of_service = check_service_samples},
	{"series-tiled", .of_service = check_series_tiled},
	{"series-is-total", .of_service = check_series_sums},
	{"percentiles-ascend", .of_service = check_series_percentiles},
	{"responses-add-up", .check = check_responses},
	{"latencies-nest", .check = check_latencies},
	{"within-the-phase", .check = check_driver_length},
	{"failures-are-errors", .check = check_failures},
	{"intervals-are-total", .check = check_intervals},
	{"rows-are-total", .check = check_rows},
	{"drivers-add-up", .check = check_drivers_parts},
	{"members-add-up", .check = check_members},
	{"sweep-steps", .check = check_sweep},
	{"round-trip-parts", .check = check_joined_parts},
	{"joined-sums", .check = check_joined_sums},
	{"stage-in-round-trip", .check = check_joined_stages},
	{"tail-order", .check = check_joined_tail},
	{"joined-of-requests", .check = check_joined_counts},
	{"both-sides-agree", .check = check_both_sides},
};

const char *run_check_rule(size_t index)
{
	return index < ARRAY_SIZE(rules) ? rules[index].name : NULL;
}

int run_check(const struct run *run, char ***broken)
{
	struct checking checking = {.run = run, .broken = broken};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		checking.rule = rules[i].name;
		if (rules[i].of_histogram)
			check_each_histogram(&checking, rules[i].of_histogram);
		else if (rules[i].of_service)
			check_each_service(&checking, rules[i].of_service);
		else
			rules[i].check(&checking);
	}
	return checking.error;
}
