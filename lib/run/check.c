/* SPDX-License-Identifier: MIT */
/* Invariants of run documents: the table of rules; see sojourn/check.h. */
#include "check_rules.h"

#include "sojourn/cleanup.h"

static const struct {
	const char *name;
	void (*check)(struct checking *checking);
} rules[] = {
	{"buckets-add-up", check_buckets},
	{"mean-below-max", check_means},
	{"sum-in-buckets", check_sums},
	{"max-in-last-bucket", check_maxima},
	{"exchanges-timed", check_timed},
	{"stages-agree", check_stages_agree},
	{"split-is-service", check_split},
	{"parts-of-exchanges", check_parts_of_exchanges},
	{"statuses-add-up", check_statuses},
	{"connections-balance", check_connections},
	{"time-wait-of-closes", check_time_wait},
	{"followed-responses", check_transmit},
	{"open-requests", check_open},
	{"within-the-period", check_long_values},
	{"samples-agree", check_service_samples},
	{"series-tiled", check_series_tiled},
	{"series-is-total", check_series_sums},
	{"percentiles-ascend", check_series_percentiles},
	{"responses-add-up", check_responses},
	{"latencies-nest", check_latencies},
	{"within-the-phase", check_driver_length},
	{"failures-are-errors", check_failures},
	{"intervals-are-total", check_intervals},
	{"rows-are-total", check_rows},
	{"drivers-add-up", check_drivers_parts},
	{"members-add-up", check_members},
	{"sweep-steps", check_sweep},
	{"round-trip-parts", check_joined_parts},
	{"joined-sums", check_joined_sums},
	{"stage-in-round-trip", check_joined_stages},
	{"tail-order", check_joined_tail},
	{"joined-of-requests", check_joined_counts},
	{"both-sides-agree", check_both_sides},
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
		rules[i].check(&checking);
	}
	return checking.error;
}
