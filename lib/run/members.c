// SPDX-License-Identifier: MIT
/* The members of the run document: see members.h and docs/run-document.md. */
#include "members.h"

#include "sojourn/cleanup.h"
#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/run.h"
#include "sojourn/sweep.h"
#include "tables.h"

/* Far above any real document, so that a hostile one cannot exhaust the reader's memory. */
#define MAX_SERVICES  1024
#define MAX_PROCESSES 65536
#define MAX_PROGRAMS  1024
#define MAX_ARGUMENTS 65536
#define MAX_FAILURES  1024
#define MAX_INTERVALS 2048 /* each takes 18 KiB */
#define MAX_PARTS     1024
#define MAX_TAILS     64
#define MAX_SLOWEST   JOIN_SLOWEST_MAX
#define MAX_FINDINGS  4096
#define MAX_RESOURCES 65536
#define MAX_TEXTS     1024
#define MAX_SOURCES   65536 /* as --source takes them */
#define MAX_STEPS     1024
_Static_assert(RUN_ROUTE_STAGES == STAGE_RESPOND - STAGE_SOCKET_QUEUE + 1, "the stages of a route");

static const char *const status_names[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
_Static_assert(ARRAY_SIZE(status_names) == ARRAY_SIZE(((struct run_driver *)NULL)->status),
	       "a name for every class of status");

/* clang-format off */
#define PLACE(field) \
	{.name = #field, .kind = RUN_KIND_TEXT, .offset = offsetof(struct run_service, place.field), \
	 .size = sizeof(((struct run_place *)NULL)->field), .sparse = true}
#define ROWS(name_, by) \
	{.name = (name_), .kind = RUN_KIND_LIST, .offset = offsetof(struct run_driver, rows[by].list), \
	 .count_offset = offsetof(struct run_driver, rows[by].count), .members = &run_row_members, \
	 .limit = RUN_ROWS_MAX, .merging = RUN_MERGING_OWN, .optional = true}

static const struct run_member process_table[] = {
	{MEMBER(struct run_process, U32, pid)},
	TEXT(struct run_process, comm),
	NUMBER(struct run_process, open_fds),
	NUMBER(struct run_process, fd_limit),
	{MEMBER(struct run_process, TEXT, tls),
	 .size = sizeof(((struct run_process *)NULL)->tls), .sparse = true},
};
static const struct run_members process_members = MEMBERS(struct run_process, process);

static const struct run_member accept_queue_table[] = {
	{MEMBER(struct run_accept_queue, NUMBER, listeners), .optional = true},
	NUMBER(struct run_accept_queue, depth),
	NUMBER(struct run_accept_queue, depth_max),
	NUMBER(struct run_accept_queue, limit),
	{MEMBER(struct run_accept_queue, NUMBER, overflows), .counts = true, .optional = true},
	{MEMBER(struct run_accept_queue, NUMBER, drops), .counts = true, .optional = true},
};
static const struct run_members accept_queue_members =
	MEMBERS(struct run_accept_queue, accept_queue);

#define GROWING(type, field) \
	{MEMBER(type, NUMBER, field), .counts = true, .lasting = true, .optional = true}

#define RESETS(field)                                                                            \
	{MEMBER(struct run_http2, COUNTERS, field), .set = "http2_error", .names = run_reset_names, \
	 .size = RUN_RESET_COUNT, .counts = true, .optional = true}

static const struct run_member http2_table[] = {
	STRING(struct run_http2, reason),
	GROWING(struct run_http2, connections),
	GROWING(struct run_http2, given_up),
	GROWING(struct run_http2, streams),
	GROWING(struct run_http2, reset_by_client),
	GROWING(struct run_http2, reset_by_server),
	RESETS(client_resets),
	RESETS(server_resets),
	GROWING(struct run_http2, refused),
	GROWING(struct run_http2, lost),
	GROWING(struct run_http2, goaways),
	GROWING(struct run_http2, older),
	GROWING(struct run_http2, picked_up),
	GROWING(struct run_http2, earlier),
	GROWING(struct run_http2, perhaps_grpc),
	GROWING(struct run_http2, two_way),
	GROWING(struct run_http2, ended),
	GROWING(struct run_http2, ended_streams),
	NUMBER(struct run_http2, streams_highest),
	NUMBER(struct run_http2, open_highest),
	{MEMBER(struct run_http2, HISTOGRAM, stream_stalls), .counts = true, .optional = true},
	{MEMBER(struct run_http2, HISTOGRAM, connection_stalls), .counts = true, .optional = true},
	{MEMBER(struct run_http2, HISTOGRAM, pings), .counts = true, .optional = true},
};
static const struct run_members http2_members = MEMBERS(struct run_http2, http2);

static const struct run_member grpc_table[] = {
	COUNT(struct run_grpc, count),
	{MEMBER(struct run_grpc, COUNTERS, status), .set = "grpc_status",
	 .names = run_grpc_status_names, .size = RUN_GRPC_COUNT, .counts = true},
	{MEMBER(struct run_grpc, COUNTERS, kinds), .set = "grpc_kind",
	 .names = run_grpc_kind_names, .size = RUN_GRPC_KIND_COUNT, .counts = true},
	COUNT(struct run_grpc, messages_in),
	COUNT(struct run_grpc, messages_out),
	{MEMBER(struct run_grpc, HISTOGRAM, service_failed), .counts = true},
};
static const struct run_members grpc_members = MEMBERS(struct run_grpc, grpc);

static const struct run_member websocket_table[] = {
	COUNT(struct run_websocket, connections),
	COUNT(struct run_websocket, given_up),
	{MEMBER(struct run_websocket, U64, older), .counts = true, .optional = true},
	{MEMBER(struct run_websocket, U64, picked_up), .counts = true, .optional = true},
	COUNT(struct run_websocket, messages_in),
	COUNT(struct run_websocket, messages_out),
	COUNT(struct run_websocket, bytes_in),
	COUNT(struct run_websocket, bytes_out),
	COUNT(struct run_websocket, control_in),
	COUNT(struct run_websocket, control_out),
};
static const struct run_members websocket_members = MEMBERS(struct run_websocket, websocket);

static const struct run_member events_table[] = {
	COUNT(struct run_events, responses),
	COUNT(struct run_events, given_up),
	COUNT(struct run_events, count),
	COUNT(struct run_events, bytes),
};
static const struct run_members events_members = MEMBERS(struct run_events, events);

static const struct run_member responses_table[] = {
	COUNT(struct run_responses, count),
	COUNTERS(struct run_responses, status, status_names),
	{MEMBER(struct run_responses, STATUSES, statuses), .size = RUN_STATUS_COUNT, .counts = true},
	{MEMBER(struct run_responses, HISTOGRAM, service_4xx), .counts = true},
	{MEMBER(struct run_responses, HISTOGRAM, service_5xx), .counts = true},
};
static const struct run_members responses_members =
	MEMBERS(struct run_responses, responses);
_Static_assert(ARRAY_SIZE(status_names) == RUN_STATUS_CLASSES, "a name for every class of status");

static const struct run_member route_table[] = {
	STRING(struct run_route, route),
	COUNT(struct run_route, count),
	COUNTERS(struct run_route, status, status_names),
	GROWING(struct run_route, errors),
	{MEMBER(struct run_route, HISTOGRAM, socket_queue), .counts = true},
	{MEMBER(struct run_route, HISTOGRAM, receive), .counts = true},
	{MEMBER(struct run_route, HISTOGRAM, service), .counts = true},
	{MEMBER(struct run_route, HISTOGRAM, respond), .counts = true},
};
static const struct run_members route_members = MEMBERS(struct run_route, route);

static const struct run_member routes_table[] = {
	STRING(struct run_routes, protocol),
	{MEMBER(struct run_routes, LIST, list), .members = &route_members,
	 .count_offset = offsetof(struct run_routes, count),
	 .limit = RUN_ROUTES_MOST, .counts = true},
	COUNTERS(struct run_routes, not_known, run_routeless_names),
};
const struct run_members run_routes_members = MEMBERS(struct run_routes, routes);

static const struct run_member proposal_table[] = {
	STRING(struct run_proposal, route),
	{MEMBER(struct run_proposal, U64, paths)},
};
static const struct run_members proposal_members = MEMBERS(struct run_proposal, proposal);

static const struct run_member proposed_table[] = {
	{MEMBER(struct run_proposed, U64, most)},
	{MEMBER(struct run_proposed, U64, requests)},
	{MEMBER(struct run_proposed, U64, not_known), .optional = true},
	{MEMBER(struct run_proposed, U64, paths)},
	{MEMBER(struct run_proposed, LIST, list), .members = &proposal_members,
	 .count_offset = offsetof(struct run_proposed, count), .limit = RUN_PROPOSALS_MOST},
};
static const struct run_members proposed_members = MEMBERS(struct run_proposed, proposed);

static const struct run_member listener_table[] = {
	{MEMBER(struct run_listener, U64, inode)},
	TEXT(struct run_listener, address),
	NUMBER(struct run_listener, pid),
	TEXT(struct run_listener, comm),
	NUMBER(struct run_listener, holders),
	NUMBER(struct run_listener, depth),
	NUMBER(struct run_listener, depth_max),
	NUMBER(struct run_listener, limit),
	NUMBER(struct run_listener, overflows),
	NUMBER(struct run_listener, drops),
};
static const struct run_members listener_members = MEMBERS(struct run_listener, listener);

static const struct run_member open_table[] = {
	NUMBER(struct run_open, read),
	NUMBER(struct run_open, unread),
	NUMBER(struct run_open, unaccepted),
	NUMBER(struct run_open, oldest_ns),
	NUMBER(struct run_open, waiting_ns),
	{MEMBER(struct run_open, COUNTERS, ages), .set = "ages", .names = run_age_names, .size = RUN_AGE_COUNT},
	NUMBER(struct run_open, unread_bytes),
	NUMBER(struct run_open, closing),
	NUMBER(struct run_open, closing_bytes),
};
static const struct run_members open_members = MEMBERS(struct run_open, open);

static const struct run_member ports_table[] = {
	NUMBER(struct run_ports, used),
	NUMBER(struct run_ports, capacity),
	TEXT(struct run_ports, towards),
};
static const struct run_members ports_members = MEMBERS(struct run_ports, ports);

static const struct run_member service_table[] = {
	STRING(struct run_service, host),
	TEXT(struct run_service, protocol),
	TEXT(struct run_service, address),
	{MEMBER(struct run_service, U16, port)},
	{MEMBER(struct run_service, U32, netns)},
	PLACE(cgroup),
	PLACE(container_id),
	PLACE(container),
	PLACE(pod_uid),
	PLACE(pod),
	PLACE(pod_namespace),
	{MEMBER(struct run_service, U64, turn), .sparse = true},
	COUNT(struct run_service, accepted),
	COUNT(struct run_service, exchanges),
	COUNT(struct run_service, bytes_in),
	COUNT(struct run_service, bytes_out),
	COUNTERS(struct run_service, closes, run_close_names),
	COUNTERS(struct run_service, losses, run_loss_names),
	{MEMBER(struct run_service, U64, first_message_ns)},
	{MEMBER(struct run_service, U64, last_message_ns)},
	STAGES(struct run_service, stages, run_stage_names, STAGE_COUNT),
	COUNT(struct run_service, accept_delayed),
	COUNT(struct run_service, accept_delay_ns),
	{MEMBER(struct run_service, STAGES, cpu), .set = "cpu", .names = run_cpu_names, .size = RUN_CPU_COUNT,
	 .counts = true, .optional = true},
	{MEMBER(struct run_service, U64, transmit_followed), .counts = true, .optional = true},
	{MEMBER(struct run_service, U64, tls), .counts = true, .optional = true},
	{MEMBER(struct run_service, HISTOGRAM, tls_handshake), .counts = true, .optional = true},
	{MEMBER(struct run_service, U64, looked), .counts = true, .optional = true},
	{MEMBER(struct run_service, U64, looked_requests), .counts = true, .optional = true},
	{MEMBER(struct run_service, U64, nagle_held), .counts = true, .optional = true},
	GROWING(struct run_service, pipelined),
	GROWING(struct run_service, pipelines_given_up),
	{MEMBER(struct run_service, OBJECT, http2), .members = &http2_members, .optional = true},
	{MEMBER(struct run_service, OBJECT, responses), .members = &responses_members, .sparse = true},
	{MEMBER(struct run_service, OBJECT, grpc), .members = &grpc_members, .sparse = true},
	{MEMBER(struct run_service, OBJECT, websocket), .members = &websocket_members, .sparse = true},
	{MEMBER(struct run_service, OBJECT, events), .members = &events_members, .sparse = true},
	{MEMBER(struct run_service, OBJECT, routes), .members = &run_routes_members, .sparse = true},
	{MEMBER(struct run_service, OBJECT, proposed), .members = &proposed_members, .sparse = true},
	NUMBER(struct run_service, quiet_ns),
	NUMBER(struct run_service, connections),
	NUMBER(struct run_service, srtt_ns),
	NUMBER(struct run_service, min_rtt_ns),
	{MEMBER(struct run_service, U64, retransmits), .counts = true, .optional = true},
	NUMBER(struct run_service, time_wait),
	COUNT(struct run_service, time_wait_created),
	{MEMBER(struct run_service, OBJECT, open), .members = &open_members, .optional = true},
	{MEMBER(struct run_service, HISTOGRAM, abandoned), .counts = true, .optional = true},
	{MEMBER(struct run_service, OBJECT, ports), .members = &ports_members, .optional = true},
	{MEMBER(struct run_service, OBJECT, accept_queue), .members = &accept_queue_members},
	{MEMBER(struct run_service, LIST, listeners), .members = &listener_members,
	 .count_offset = offsetof(struct run_service, listener_count),
	 .limit = MAX_PROCESSES, .optional = true},
	{MEMBER(struct run_service, LIST, processes), .members = &process_members,
	 .count_offset = offsetof(struct run_service, process_count),
	 .limit = MAX_PROCESSES, .optional = true},
	{MEMBER(struct run_service, LIST, upstreams), .members = &run_upstream_members,
	 .count_offset = offsetof(struct run_service, upstream_count),
	 .limit = MAX_SERVICES, .sparse = true},
	{MEMBER(struct run_service, LIST, called), .members = &run_call_members,
	 .count_offset = offsetof(struct run_service, called_count),
	 .limit = MAX_SERVICES, .sparse = true},
	{MEMBER(struct run_service, LIST, timed_calls), .members = &run_timed_call_members,
	 .count_offset = offsetof(struct run_service, timed_call_count),
	 .limit = MAX_SERVICES, .sparse = true},
	{MEMBER(struct run_service, NUMBER, calls_lost), .counts = true, .lasting = true, .sparse = true,
	 .optional = true},
	NUMBER(struct run_service, older_connections),
	{MEMBER(struct run_service, STRING, calls), .sparse = true, .optional = true},
	{MEMBER(struct run_service, SAMPLES, samples), .optional = true},
	{MEMBER(struct run_service, SAMPLES, call_samples), .sparse = true},
	{MEMBER(struct run_service, SERIES, series), .optional = true},
};
const struct run_members run_service_members = MEMBERS(struct run_service, service);

static const struct run_member program_table[] = {
	TEXT(struct run_program, name),
	{MEMBER(struct run_program, NUMBER, runs), .counts = true, .optional = true},
	{MEMBER(struct run_program, NUMBER, run_ns), .counts = true, .optional = true},
	COUNT(struct run_program, recursion_misses),
};
const struct run_members run_program_members = MEMBERS(struct run_program, program);

static const struct run_member machine_table[] = {
	{MEMBER(struct run_machine, STRINGS, mitigations), .limit = MAX_TEXTS, .optional = true},
	STRING(struct run_machine, clock_source),
	STRING(struct run_machine, virtualisation),
};
const struct run_members run_machine_members = MEMBERS(struct run_machine, machine);

static const struct run_member cost_table[] = {
	COUNT(struct run_cost, cpu_ns),
	{MEMBER(struct run_cost, U64, resident_bytes)},
	{MEMBER(struct run_cost, U64, map_bytes)},
	{MEMBER(struct run_cost, NUMBER, sharing_cpus), .optional = true},
	{MEMBER(struct run_cost, LIST, programs), .members = &run_program_members,
	 .count_offset = offsetof(struct run_cost, program_count),
	 .limit = MAX_PROGRAMS, .optional = true},
	{MEMBER(struct run_cost, OBJECT, machine), .members = &run_machine_members, .optional = true},
};
const struct run_members run_cost_members = MEMBERS(struct run_cost, cost);

static const struct run_member failure_table[] = {
	TEXT(struct run_failure, kind),
	{MEMBER(struct run_failure, U64, count)},
	{MEMBER(struct run_failure, U64, first_ns)},
	{MEMBER(struct run_failure, U64, last_ns)},
	STRING(struct run_failure, explanation),
};
static const struct run_members failure_members = MEMBERS(struct run_failure, failure);

static const struct run_member interval_table[] = {
	{MEMBER(struct run_interval, U64, begin_ns)},
	{MEMBER(struct run_interval, U64, duration_ns)},
	COUNT(struct run_interval, requests),
	COUNT(struct run_interval, errors),
	COUNT(struct run_interval, connects),
	COUNT(struct run_interval, bytes_in),
	COUNT(struct run_interval, bytes_out),
	NUMBER(struct run_interval, ports),
	{MEMBER(struct run_interval, HISTOGRAM, latency), .counts = true},
};
const struct run_members run_interval_members = MEMBERS(struct run_interval, interval);

static const struct run_member driver_part_table[] = {
	STRING(struct run_part, host),
	STRING(struct run_part, target),
	{MEMBER(struct run_part, U32, connections)},
	{MEMBER(struct run_part, U64, begin_ns)},
	{MEMBER(struct run_part, U64, duration_ns)},
	{MEMBER(struct run_part, U64, requests)},
	{MEMBER(struct run_part, U64, drained), .optional = true},
	{MEMBER(struct run_part, U64, errors)},
	{MEMBER(struct run_part, HISTOGRAM, latency)},
};
static const struct run_members part_members = MEMBERS(struct run_part, driver_part);

static const struct run_member fleet_member_table[] = {
	STRING(struct run_fleet_member, host),
	{MEMBER(struct run_fleet_member, U32, connections)},
	{MEMBER(struct run_fleet_member, U64, rate)},
	{MEMBER(struct run_fleet_member, U64, requests)},
	{MEMBER(struct run_fleet_member, STRINGS, sources), .limit = MAX_SOURCES, .optional = true},
	STRING(struct run_fleet_member, limited),
	{MEMBER(struct run_fleet_member, SIGNED, clock_offset_ns), .optional = true},
	NUMBER(struct run_fleet_member, clock_uncertainty_ns),
	NUMBER(struct run_fleet_member, start_skew_ns),
	{MEMBER(struct run_fleet_member, BOOL, lost)},
	STRING(struct run_fleet_member, reason),
};
static const struct run_members fleet_member_members =
	MEMBERS(struct run_fleet_member, fleet_member);

static const struct run_member row_table[] = {
	STRING(struct run_row, name),
	STRING(struct run_row, target),
	STRING(struct run_row, method),
	{MEMBER(struct run_row, U64, requests)},
	{MEMBER(struct run_row, U64, drained), .optional = true},
	{MEMBER(struct run_row, U64, bytes_in)},
	{MEMBER(struct run_row, U64, bytes_out)},
	COUNTERS(struct run_row, status, status_names),
	COUNTERS(struct run_row, errors, run_error_names),
	{MEMBER(struct run_row, HISTOGRAM, round_trip)},
	{MEMBER(struct run_row, HISTOGRAM, response_time), .optional = true},
};
const struct run_members run_row_members = MEMBERS(struct run_row, row);

static const struct run_member limited_table[] = {
	STRING(struct run_limited, by),
	STRING(struct run_limited, why),
};
static const struct run_members limited_members = MEMBERS(struct run_limited, limited);

static const struct run_member interrupted_table[] = {
	NUMBER(struct run_interrupted, duration_ns),
	NUMBER(struct run_interrupted, requests),
};
static const struct run_members interrupted_members =
	MEMBERS(struct run_interrupted, interrupted);

static const struct run_member driver_table[] = {
	{MEMBER(struct run_driver, STRING, host), .optional = true, .merging = RUN_MERGING_OWN},
	STRING(struct run_driver, target),
	STRING(struct run_driver, method),
	{MEMBER(struct run_driver, STRINGS, sources), .limit = MAX_SOURCES, .optional = true,
	 .merging = RUN_MERGING_OWN},
	{MEMBER(struct run_driver, U32, connections)},
	{MEMBER(struct run_driver, U32, processes), .merging = RUN_MERGING_OWN, .optional = true},
	{MEMBER(struct run_driver, U32, threads)},
	{MEMBER(struct run_driver, BOOL, new_connections)},
	{MEMBER(struct run_driver, U64, begin_ns), .merging = RUN_MERGING_OWN, .optional = true},
	{MEMBER(struct run_driver, U64, duration_ns), .merging = RUN_MERGING_OWN},
	{MEMBER(struct run_driver, U64, warmup_ns), .merging = RUN_MERGING_LARGEST},
	{MEMBER(struct run_driver, U64, cooldown_ns),
	 .merging = RUN_MERGING_LARGEST, .optional = true},
	{MEMBER(struct run_driver, STRING, arrival), .optional = true, .merging = RUN_MERGING_OWN},
	{MEMBER(struct run_driver, U64, rate), .optional = true},
	{MEMBER(struct run_driver, U64, think_ns), .merging = RUN_MERGING_SAME, .optional = true},
	{MEMBER(struct run_driver, U64, scheduled), .optional = true},
	{MEMBER(struct run_driver, U64, unsent), .optional = true},
	{MEMBER(struct run_driver, U64, requests)},
	{MEMBER(struct run_driver, U64, drained), .optional = true},
	{MEMBER(struct run_driver, U64, connects)},
	{MEMBER(struct run_driver, U64, bytes_in)},
	{MEMBER(struct run_driver, U64, bytes_out)},
	COUNTERS(struct run_driver, status, status_names),
	{MEMBER(struct run_driver, COUNTERS, grpc), .set = "grpc_status",
	 .names = run_grpc_status_names, .size = RUN_GRPC_STATUS_COUNT, .optional = true},
	{MEMBER(struct run_driver, U64, messages_sent), .optional = true},
	{MEMBER(struct run_driver, U64, messages_received), .optional = true},
	{MEMBER(struct run_driver, U32, streams), .merging = RUN_MERGING_LARGEST, .optional = true},
	{MEMBER(struct run_driver, NUMBER, streams_allowed),
	 .merging = RUN_MERGING_OWN, .optional = true},
	COUNTERS(struct run_driver, errors, run_error_names),
	{MEMBER(struct run_driver, COUNTERS, datagrams), .set = "datagrams",
	 .names = run_datagram_names, .size = ARRAY_SIZE(run_datagram_names), .optional = true},
	{MEMBER(struct run_driver, LIST, failures),
	 .merging = RUN_MERGING_OWN, .members = &failure_members,
	 .count_offset = offsetof(struct run_driver, failure_count),
	 .limit = MAX_FAILURES, .optional = true},
	{MEMBER(struct run_driver, U64, cpu_user_ns)},
	{MEMBER(struct run_driver, U64, cpu_system_ns)},
	{MEMBER(struct run_driver, OBJECT, ports),
	 .merging = RUN_MERGING_OWN, .members = &ports_members, .optional = true},
	NUMBER(struct run_driver, cpu_wait_ns),
	{MEMBER(struct run_driver, HISTOGRAM, round_trip)},
	{MEMBER(struct run_driver, HISTOGRAM, connect)},
	{MEMBER(struct run_driver, HISTOGRAM, tls), .optional = true},
	{MEMBER(struct run_driver, HISTOGRAM, first_byte), .optional = true},
	{MEMBER(struct run_driver, HISTOGRAM, response_time), .optional = true},
	{MEMBER(struct run_driver, HISTOGRAM, schedule_delay), .optional = true},
	{MEMBER(struct run_driver, U64, interval_ns), .merging = RUN_MERGING_OWN, .optional = true},
	{MEMBER(struct run_driver, LIST, intervals),
	 .merging = RUN_MERGING_OWN, .members = &run_interval_members,
	 .count_offset = offsetof(struct run_driver, interval_count),
	 .limit = MAX_INTERVALS, .optional = true},
	{MEMBER(struct run_driver, RATIO, drift), .merging = RUN_MERGING_OWN, .optional = true},
	{MEMBER(struct run_driver, STRING, scenario), .optional = true},
	ROWS("steps", RUN_ROWS_STEP),
	ROWS("targets", RUN_ROWS_TARGET),
	ROWS("statuses", RUN_ROWS_STATUS),
	{MEMBER(struct run_driver, LIST, parts),
	 .merging = RUN_MERGING_OWN, .members = &part_members,
	 .count_offset = offsetof(struct run_driver, part_count),
	 .limit = MAX_PARTS, .optional = true},
	{MEMBER(struct run_driver, LIST, members),
	 .merging = RUN_MERGING_OWN, .members = &fleet_member_members,
	 .count_offset = offsetof(struct run_driver, member_count),
	 .limit = MAX_PARTS, .sparse = true},
	{MEMBER(struct run_driver, POINTER, limited),
	 .merging = RUN_MERGING_OWN, .members = &limited_members,
	 .optional = true},
	{MEMBER(struct run_driver, POINTER, interrupted),
	 .merging = RUN_MERGING_OWN, .members = &interrupted_members,
	 .optional = true},
	STRING(struct run_driver, expected),
	{MEMBER(struct run_driver, STRING, unsampled), .optional = true,
	 .merging = RUN_MERGING_FIRST},
	{MEMBER(struct run_driver, STRING, observer_error), .optional = true,
	 .merging = RUN_MERGING_FIRST},
	{MEMBER(struct run_driver, SAMPLES, samples), .optional = true},
};
const struct run_members run_driver_members = MEMBERS(struct run_driver, driver);

static const struct run_member round_trip_parts_table[] = {
	{MEMBER(struct run_parts, U64, wait_ns)},
	{MEMBER(struct run_parts, U64, round_trip_ns)},
	{MEMBER(struct run_parts, U64, network_ns)},
	{MEMBER(struct run_parts, U64, overhang_ns)},
	{MEMBER(struct run_parts, NUMBERS, stages), .names = run_stage_names, .size = STAGE_COUNT},
	NUMBER(struct run_parts, running_ns),
	NUMBER(struct run_parts, runnable_ns),
	NUMBER(struct run_parts, blocked_ns),
};
static const struct run_members parts_members = MEMBERS(struct run_parts, round_trip_parts);

static const struct run_member tail_table[] = {
	{MEMBER(struct run_tail, U32, per_mille)},
	{MEMBER(struct run_tail, U64, above_ns)},
	{MEMBER(struct run_tail, U64, count)},
	{MEMBER(struct run_tail, OBJECT, sum), .members = &parts_members},
};
static const struct run_members tail_members = MEMBERS(struct run_tail, tail);

static const struct run_member joined_step_table[] = {
	STRING(struct run_joined_step, name),
	{MEMBER(struct run_joined_step, STRING, place), .optional = true},
	{MEMBER(struct run_joined_step, U64, count)},
	{MEMBER(struct run_joined_step, OBJECT, sum), .members = &parts_members},
};
static const struct run_members joined_step_members =
	MEMBERS(struct run_joined_step, joined_step);

static const struct run_member exchange_table[] = {
	TEXT(struct run_exchange, client),
	TEXT(struct run_exchange, server),
	{MEMBER(struct run_exchange, U32, index)},
	NUMBER(struct run_exchange, pid),
	NUMBER(struct run_exchange, bytes_in),
	NUMBER(struct run_exchange, bytes_out),
	{MEMBER(struct run_exchange, U64, start_ns)},
	{MEMBER(struct run_exchange, U64, arrival_ns)},
	{MEMBER(struct run_exchange, OBJECT, parts), .members = &parts_members},
};
static const struct run_members exchange_members = MEMBERS(struct run_exchange, exchange);

static const struct run_member joined_table[] = {
	STRING(struct run_joined, reason),
	{MEMBER(struct run_joined, U64, threshold)},
	{MEMBER(struct run_joined, U64, joined)},
	{MEMBER(struct run_joined, U64, early)},
	{MEMBER(struct run_joined, U64, repeated)},
	{MEMBER(struct run_joined, U64, driver_only)},
	{MEMBER(struct run_joined, U64, unknown_flow)},
	{MEMBER(struct run_joined, U64, observer_only)},
	{MEMBER(struct run_joined, U64, unmeasured)},
	{MEMBER(struct run_joined, U64, other_clients)},
	{MEMBER(struct run_joined, U64, ambiguous)},
	{MEMBER(struct run_joined, U64, implausible)},
	{MEMBER(struct run_joined, U64, begin_ns)},
	{MEMBER(struct run_joined, OBJECT, sum), .members = &parts_members},
	{MEMBER(struct run_joined, HISTOGRAM, round_trip)},
	{MEMBER(struct run_joined, HISTOGRAM, network)},
	STAGES(struct run_joined, stages, run_stage_names, STAGE_COUNT),
	{MEMBER(struct run_joined, LIST, tail), .members = &tail_members,
	 .count_offset = offsetof(struct run_joined, tail_count), .limit = MAX_TAILS},
	{MEMBER(struct run_joined, LIST, steps), .members = &joined_step_members, .optional = true,
	 .count_offset = offsetof(struct run_joined, step_count), .limit = RUN_ROWS_MAX},
	{MEMBER(struct run_joined, LIST, hosts), .members = &joined_step_members, .optional = true,
	 .count_offset = offsetof(struct run_joined, host_count), .limit = MAX_SERVICES},
	{MEMBER(struct run_joined, LIST, slowest), .members = &exchange_members,
	 .count_offset = offsetof(struct run_joined, slowest_count), .limit = MAX_SLOWEST},
};
const struct run_members run_joined_members = MEMBERS(struct run_joined, joined);

static const struct run_member owner_table[] = {
	{MEMBER(struct run_owner, U32, pid)},
	TEXT(struct run_owner, comm),
	TEXT(struct run_owner, unit),
	NUMBER(struct run_owner, sockets),
	{MEMBER(struct run_owner, TEXT, did), .size = sizeof(((struct run_owner *)NULL)->did),
	 .sparse = true},
};
static const struct run_members owner_members = MEMBERS(struct run_owner, owner);

static const struct run_member finding_table[] = {
	{MEMBER(struct run_finding, STRING, host), .optional = true},
	TEXT(struct run_finding, id),
	TEXT(struct run_finding, severity),
	TEXT(struct run_finding, resource),
	TEXT(struct run_finding, object),
	{MEMBER(struct run_finding, U16, port)},
	{MEMBER(struct run_finding, U32, netns)},
	{MEMBER(struct run_finding, TEXT, netns_name),
	 .size = sizeof(((struct run_finding *)NULL)->netns_name), .sparse = true},
	NUMBER(struct run_finding, used),
	NUMBER(struct run_finding, capacity),
	NUMBER(struct run_finding, ends_in_ns),
	STRING(struct run_finding, what),
	{MEMBER(struct run_finding, STRINGS, evidence), .limit = MAX_TEXTS, .optional = true},
	STRING(struct run_finding, outlook),
	STRING(struct run_finding, command),
	STRING(struct run_finding, change),
	STRING(struct run_finding, risk),
	STRING(struct run_finding, link),
	{MEMBER(struct run_finding, LIST, owners), .members = &owner_members,
	 .count_offset = offsetof(struct run_finding, owner_count),
	 .limit = MAX_PROCESSES, .optional = true},
};
static const struct run_members finding_members = MEMBERS(struct run_finding, finding);

static const struct run_member resource_table[] = {
	TEXT(struct run_finding, resource),
	TEXT(struct run_finding, object),
	{MEMBER(struct run_finding, U16, port)},
	{MEMBER(struct run_finding, U32, netns)},
	{MEMBER(struct run_finding, TEXT, netns_name),
	 .size = sizeof(((struct run_finding *)NULL)->netns_name), .sparse = true},
	NUMBER(struct run_finding, used),
	NUMBER(struct run_finding, capacity),
	NUMBER(struct run_finding, deepest),
	NUMBER(struct run_finding, growth_per_hour),
	NUMBER(struct run_finding, ends_in_ns),
	{MEMBER(struct run_finding, LIST, owners), .members = &owner_members,
	 .count_offset = offsetof(struct run_finding, owner_count),
	 .limit = MAX_PROCESSES, .optional = true},
};
static const struct run_members resource_members = MEMBERS(struct run_finding, resource);

static const struct run_member look_table[] = {
	{MEMBER(struct run_look, U32, namespaces)},
	{MEMBER(struct run_look, U64, sockets)},
	{MEMBER(struct run_look, U32, descriptor_walks)},
	{MEMBER(struct run_look, U64, cpu_ns)},
};
static const struct run_members look_members = MEMBERS(struct run_look, look);

static const struct run_member sweep_target_table[] = {
	STRING(struct run_sweep_target, name),
	{MEMBER(struct run_sweep_target, U64, requests)},
	{MEMBER(struct run_sweep_target, U64, drained), .optional = true},
	NUMBER(struct run_sweep_target, good),
	{MEMBER(struct run_sweep_target, U64, errors)},
	{MEMBER(struct run_sweep_target, HISTOGRAM, latency)},
};
static const struct run_members sweep_target_members =
	MEMBERS(struct run_sweep_target, sweep_target);

static const struct run_member sweep_step_table[] = {
	{MEMBER(struct run_sweep_step, U64, load)},
	{MEMBER(struct run_sweep_step, U64, warmup_ns)},
	{MEMBER(struct run_sweep_step, U64, duration_ns)},
	{MEMBER(struct run_sweep_step, U64, requests)},
	{MEMBER(struct run_sweep_step, U64, drained), .optional = true},
	NUMBER(struct run_sweep_step, good),
	{MEMBER(struct run_sweep_step, U64, errors)},
	{MEMBER(struct run_sweep_step, U64, unsent)},
	{MEMBER(struct run_sweep_step, U32, attempts)},
	{MEMBER(struct run_sweep_step, BOOL, steady)},
	NUMBER(struct run_sweep_step, first_throughput),
	NUMBER(struct run_sweep_step, server_exchanges),
	NUMBER(struct run_sweep_step, server_duration_ns),
	STRING(struct run_sweep_step, limited),
	{MEMBER(struct run_sweep_step, HISTOGRAM, latency)},
	{MEMBER(struct run_sweep_step, LIST, targets), .members = &sweep_target_members,
	 .count_offset = offsetof(struct run_sweep_step, target_count),
	 .limit = RUN_ROWS_MAX, .optional = true},
	{MEMBER(struct run_sweep_step, LIST, members), .members = &fleet_member_members,
	 .count_offset = offsetof(struct run_sweep_step, member_count),
	 .limit = MAX_PARTS, .sparse = true},
};
const struct run_members run_sweep_step_members = MEMBERS(struct run_sweep_step, sweep_step);

static const struct run_member sweep_table[] = {
	STRING(struct run_sweep, target),
	STRING(struct run_sweep, method),
	STRING(struct run_sweep, over),
	{MEMBER(struct run_sweep, U32, connections), .optional = true},
	{MEMBER(struct run_sweep, LIST, steps), .members = &run_sweep_step_members,
	 .count_offset = offsetof(struct run_sweep, step_count), .limit = MAX_STEPS},
	NUMBER(struct run_sweep, plateau),
	NUMBER(struct run_sweep, knee),
	NUMBER(struct run_sweep, misfit_per_mille),
	STRING(struct run_sweep, unfitted),
	STRING(struct run_sweep, stopped),
	STRING(struct run_sweep, resumed),
	{MEMBER(struct run_sweep, POINTER, three_quarters), .members = &run_sweep_step_members,
	 .optional = true},
};
static const struct run_members sweep_members = MEMBERS(struct run_sweep, sweep);

static const struct run_member reclaimed_table[] = {
	COUNT(struct run_reclaimed, services),
	COUNT(struct run_reclaimed, accepted),
	COUNT(struct run_reclaimed, exchanges),
	COUNT(struct run_reclaimed, bytes_in),
	COUNT(struct run_reclaimed, bytes_out),
};
static const struct run_members reclaimed_members = MEMBERS(struct run_reclaimed, reclaimed);

static const struct run_member namespaces_table[] = {
	{MEMBER(struct run_namespaces, U64, observed)},
	{MEMBER(struct run_namespaces, U64, ended)},
	{MEMBER(struct run_namespaces, U64, not_entered)},
	{MEMBER(struct run_namespaces, U64, left_out)},
	{MEMBER(struct run_namespaces, U64, unseen_processes)},
	{MEMBER(struct run_namespaces, U64, visited)},
	{MEMBER(struct run_namespaces, U64, visit_ns)},
	{MEMBER(struct run_namespaces, TEXT, reason),
	 .size = sizeof(((struct run_namespaces *)NULL)->reason), .sparse = true},
};
static const struct run_members namespaces_members = MEMBERS(struct run_namespaces, namespaces);

static const struct run_member document_table[] = {
	STRING(struct run, host),
	STRING(struct run, kernel),
	STRING(struct run, tool),
	STRING(struct run, started_at),
	COUNT(struct run, duration_ns),
	{MEMBER(struct run, STRINGS, command), .limit = MAX_ARGUMENTS, .optional = true},
	{MEMBER(struct run, LIST, services), .members = &run_service_members,
	 .count_offset = offsetof(struct run, service_count),
	 .limit = MAX_SERVICES, .optional = true},
	{MEMBER(struct run, U64, services_dropped), .counts = true, .optional = true},
	{MEMBER(struct run, U64, connections_dropped), .counts = true, .sparse = true},
	{MEMBER(struct run, U64, listeners_idle), .sparse = true},
	{MEMBER(struct run, OBJECT, reclaimed), .members = &reclaimed_members, .sparse = true},
	{MEMBER(struct run, OBJECT, namespaces), .members = &namespaces_members, .sparse = true},
	{MEMBER(struct run, POINTER, cost), .members = &run_cost_members, .optional = true},
	{MEMBER(struct run, POINTER, driver), .members = &run_driver_members, .optional = true},
	{MEMBER(struct run, POINTER, joined), .members = &run_joined_members, .optional = true},
	{MEMBER(struct run, POINTER, sweep), .members = &sweep_members, .optional = true},
	{MEMBER(struct run, LIST, findings), .members = &finding_members,
	 .count_offset = offsetof(struct run, finding_count),
	 .limit = MAX_FINDINGS, .optional = true},
	{MEMBER(struct run, STRINGS, not_seen), .limit = MAX_TEXTS, .optional = true},
	{MEMBER(struct run, LIST, resources), .members = &resource_members,
	 .count_offset = offsetof(struct run, resource_count),
	 .limit = MAX_RESOURCES, .sparse = true},
	{MEMBER(struct run, POINTER, looked_at), .members = &look_members, .sparse = true},
};
const struct run_members run_document_members = MEMBERS(struct run, document);
/* clang-format on */
