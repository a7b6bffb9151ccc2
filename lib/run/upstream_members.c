// SPDX-License-Identifier: MIT
/* The members of a service's calls and upstreams: see members.h. */
#include "sojourn/run.h"
#include "tables.h"

/* clang-format off */
static const struct run_member call_table[] = {
	TEXT(struct run_call, towards),
	{MEMBER(struct run_call, U64, connections)},
	NUMBER(struct run_call, serves_too),
};
const struct run_members run_call_members = MEMBERS(struct run_call, call);

static const struct run_member timed_call_table[] = {
	TEXT(struct run_timed_call, towards),
	NUMBER(struct run_timed_call, serves_too),
	{MEMBER(struct run_timed_call, U64, connects), .counts = true},
	{MEMBER(struct run_timed_call, U64, connect_ns), .counts = true},
	{MEMBER(struct run_timed_call, U64, connects_failed), .counts = true},
	{MEMBER(struct run_timed_call, U64, older), .counts = true},
	{MEMBER(struct run_timed_call, U64, calls), .counts = true},
	{MEMBER(struct run_timed_call, U64, failed), .counts = true},
	{MEMBER(struct run_timed_call, U64, open)},
	{MEMBER(struct run_timed_call, U64, untimed), .counts = true},
	{MEMBER(struct run_timed_call, U64, handshakes), .counts = true},
	{MEMBER(struct run_timed_call, U64, trailing), .counts = true},
	{MEMBER(struct run_timed_call, U64, carried), .counts = true},
	{MEMBER(struct run_timed_call, COUNTERS, uncut), .set = "uncut", .names = run_uncut_names,
	 .size = RUN_UNCUT_COUNT},
	{MEMBER(struct run_timed_call, HISTOGRAM, wait), .counts = true},
	{MEMBER(struct run_timed_call, HISTOGRAM, whole), .counts = true},
};
const struct run_members run_timed_call_members = MEMBERS(struct run_timed_call, timed_call);

static const struct run_member nested_sum_table[] = {
	{MEMBER(struct run_nested_sum, U64, from_ns)},
	{MEMBER(struct run_nested_sum, U64, count)},
	{MEMBER(struct run_nested_sum, U64, service_ns)},
	{MEMBER(struct run_nested_sum, U64, least_ns)},
	{MEMBER(struct run_nested_sum, U64, most_ns)},
};
static const struct run_members nested_sum_members = MEMBERS(struct run_nested_sum, nested_sum);

static const struct run_member divided_table[] = {
	{MEMBER(struct run_divided, HISTOGRAM, own)},
	{MEMBER(struct run_divided, HISTOGRAM, there)},
	{MEMBER(struct run_divided, HISTOGRAM, between)},
	{MEMBER(struct run_divided, U64, slowest)},
	{MEMBER(struct run_divided, U64, slowest_own_ns)},
	{MEMBER(struct run_divided, U64, slowest_there_ns)},
	{MEMBER(struct run_divided, U64, slowest_between_ns)},
};
static const struct run_members divided_members = MEMBERS(struct run_divided, divided);

static const struct run_member nested_table[] = {
	STRING(struct run_nested, reason),
	{MEMBER(struct run_nested, U64, paired)},
	{MEMBER(struct run_nested, U64, ambiguous)},
	{MEMBER(struct run_nested, U64, alone)},
	{MEMBER(struct run_nested, U64, outside)},
	{MEMBER(struct run_nested, HISTOGRAM, upstream)},
	{MEMBER(struct run_nested, HISTOGRAM, rest)},
	{MEMBER(struct run_nested, OBJECT, all), .members = &nested_sum_members},
	{MEMBER(struct run_nested, OBJECT, slowest), .members = &nested_sum_members},
	{MEMBER(struct run_nested, POINTER, divided), .members = &divided_members, .sparse = true},
};
static const struct run_members nested_members = MEMBERS(struct run_nested, nested);

static const struct run_member call_pairs_table[] = {
	STRING(struct run_call_pairs, reason),
	{MEMBER(struct run_call_pairs, U64, threshold)},
	{MEMBER(struct run_call_pairs, U64, calls)},
	{MEMBER(struct run_call_pairs, U64, paired)},
	{MEMBER(struct run_call_pairs, U64, unknown_flow)},
	{MEMBER(struct run_call_pairs, U64, unmatched)},
	{MEMBER(struct run_call_pairs, U64, ambiguous)},
	{MEMBER(struct run_call_pairs, U64, implausible)},
	{MEMBER(struct run_call_pairs, U64, early)},
	{MEMBER(struct run_call_pairs, HISTOGRAM, whole)},
	{MEMBER(struct run_call_pairs, HISTOGRAM, there)},
	{MEMBER(struct run_call_pairs, HISTOGRAM, between)},
};
static const struct run_members call_pairs_members = MEMBERS(struct run_call_pairs, call_pairs);

static const struct run_member upstream_table[] = {
	{MEMBER(struct run_upstream, STRING, host), .sparse = true, .optional = true},
	{MEMBER(struct run_upstream, STRING, reason), .sparse = true, .optional = true},
	{MEMBER(struct run_upstream, U32, netns), .optional = true},
	{MEMBER(struct run_upstream, U16, port)},
	{MEMBER(struct run_upstream, U64, connections)},
	{MEMBER(struct run_upstream, U64, others)},
	NUMBER(struct run_upstream, serves_too),
	{MEMBER(struct run_upstream, POINTER, nested), .members = &nested_members, .sparse = true},
	{MEMBER(struct run_upstream, POINTER, pairs), .members = &call_pairs_members, .sparse = true},
};
const struct run_members run_upstream_members = MEMBERS(struct run_upstream, upstream);
/* clang-format on */
