/* SPDX-License-Identifier: MIT */
/* The members of the run document: see run_members.h and docs/run-document.md. */
#include "run_members.h"

#include "sojourn/cleanup.h"
#include "sojourn/finding.h"
#include "sojourn/join.h"
#include "sojourn/run.h"
#include "sojourn/sweep.h"

/* More than any real document has; a hostile one must not make the reader use all memory. */
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
#define MAX_TEXTS     1024
#define MAX_STEPS     1024

static const char *const status_names[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};
_Static_assert(ARRAY_SIZE(status_names) == ARRAY_SIZE(((struct run_driver *)NULL)->status),
	       "a name for every class of status");

/* clang-format off */
#define MEMBERS(type, table) {.size = sizeof(type), .list = (table), .count = ARRAY_SIZE(table)}
#define MEMBER(type, kind_, field) \
	.name = #field, .kind = RUN_KIND_##kind_, .offset = offsetof(type, field)
#define TEXT(type, field) \
	{MEMBER(type, TEXT, field), .size = sizeof(((type *)NULL)->field)}
#define STRING(type, field) \
	{MEMBER(type, STRING, field), .optional = true}
#define NUMBER(type, field) \
	{MEMBER(type, NUMBER, field), .optional = true}
#define COUNTERS(type, field, table) \
	{MEMBER(type, COUNTERS, field), .names = (table), .size = ARRAY_SIZE(table)}
#define ROWS(name_, by) \
	{.name = (name_), .kind = RUN_KIND_LIST, .offset = offsetof(struct run_driver, rows[by].list), \
	 .count_offset = offsetof(struct run_driver, rows[by].count), .members = &run_row_members, \
	 .limit = RUN_ROWS_MAX, .merging = RUN_MERGING_OWN, .optional = true}
#define STAGES(type, field, table, number) \
	{MEMBER(type, STAGES, field), .names = (table), .size = (number)}

static const struct run_member process_table[] = {
	{MEMBER(struct run_process, U32, pid)},
	TEXT(struct run_process, comm),
	NUMBER(struct run_process, open_fds),
	NUMBER(struct run_process, fd_limit),
};
static const struct run_members process_members = MEMBERS(struct run_process, process_table);

static const struct run_member accept_queue_table[] = {
	NUMBER(struct run_accept_queue, depth),
	NUMBER(struct run_accept_queue, depth_max),
	NUMBER(struct run_accept_queue, limit),
	NUMBER(struct run_accept_queue, overflows),
};
static const struct run_members accept_queue_members =
	MEMBERS(struct run_accept_queue, accept_queue_table);

static const struct run_member ports_table[] = {
	NUMBER(struct run_ports, used),
	NUMBER(struct run_ports, capacity),
	TEXT(struct run_ports, towards),
};
static const struct run_members ports_members = MEMBERS(struct run_ports, ports_table);

static const struct run_member service_table[] = {
	STRING(struct run_service, host),
	TEXT(struct run_service, protocol),
	TEXT(struct run_service, address),
	{MEMBER(struct run_service, U16, port)},
	{MEMBER(struct run_service, U32, netns)},
	{MEMBER(struct run_service, U64, accepted)},
	{MEMBER(struct run_service, U64, exchanges)},
	{MEMBER(struct run_service, U64, bytes_in)},
	{MEMBER(struct run_service, U64, bytes_out)},
	COUNTERS(struct run_service, closes, run_close_names),
	COUNTERS(struct run_service, losses, run_loss_names),
	{MEMBER(struct run_service, U64, first_message_ns)},
	{MEMBER(struct run_service, U64, last_message_ns)},
	STAGES(struct run_service, stages, run_stage_names, STAGE_COUNT),
	{MEMBER(struct run_service, U64, accept_delayed)},
	{MEMBER(struct run_service, U64, accept_delay_ns)},
	{MEMBER(struct run_service, STAGES, cpu), .names = run_cpu_names, .size = RUN_CPU_COUNT,
	 .optional = true},
	{MEMBER(struct run_service, U64, transmit_followed), .optional = true},
	NUMBER(struct run_service, connections),
	NUMBER(struct run_service, srtt_ns),
	NUMBER(struct run_service, min_rtt_ns),
	{MEMBER(struct run_service, U64, retransmits), .optional = true},
	NUMBER(struct run_service, time_wait),
	{MEMBER(struct run_service, U64, time_wait_created)},
	{MEMBER(struct run_service, OBJECT, ports), .members = &ports_members, .optional = true},
	{MEMBER(struct run_service, OBJECT, accept_queue), .members = &accept_queue_members},
	{MEMBER(struct run_service, LIST, processes), .members = &process_members,
	 .count_offset = offsetof(struct run_service, process_count),
	 .limit = MAX_PROCESSES, .optional = true},
	{MEMBER(struct run_service, SAMPLES, samples), .optional = true},
	{MEMBER(struct run_service, SERIES, series), .optional = true},
};
static const struct run_members service_members = MEMBERS(struct run_service, service_table);

static const struct run_member program_table[] = {
	TEXT(struct run_program, name),
	NUMBER(struct run_program, runs),
	NUMBER(struct run_program, run_ns),
	{MEMBER(struct run_program, U64, recursion_misses)},
};
static const struct run_members program_members = MEMBERS(struct run_program, program_table);

static const struct run_member cost_table[] = {
	{MEMBER(struct run_cost, U64, cpu_ns)},
	{MEMBER(struct run_cost, U64, resident_bytes)},
	{MEMBER(struct run_cost, U64, map_bytes)},
	{MEMBER(struct run_cost, LIST, programs), .members = &program_members,
	 .count_offset = offsetof(struct run_cost, program_count),
	 .limit = MAX_PROGRAMS, .optional = true},
};
static const struct run_members cost_members = MEMBERS(struct run_cost, cost_table);

static const struct run_member failure_table[] = {
	TEXT(struct run_failure, kind),
	{MEMBER(struct run_failure, U64, count)},
	{MEMBER(struct run_failure, U64, first_ns)},
	{MEMBER(struct run_failure, U64, last_ns)},
	STRING(struct run_failure, explanation),
};
static const struct run_members failure_members = MEMBERS(struct run_failure, failure_table);

static const struct run_member interval_table[] = {
	{MEMBER(struct run_interval, U64, begin_ns)},
	{MEMBER(struct run_interval, U64, duration_ns)},
	{MEMBER(struct run_interval, U64, requests)},
	{MEMBER(struct run_interval, U64, errors)},
	{MEMBER(struct run_interval, U64, connects)},
	{MEMBER(struct run_interval, U64, bytes_in)},
	{MEMBER(struct run_interval, U64, bytes_out)},
	NUMBER(struct run_interval, ports),
	{MEMBER(struct run_interval, HISTOGRAM, latency)},
};
static const struct run_members interval_members = MEMBERS(struct run_interval, interval_table);

static const struct run_member part_table[] = {
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
static const struct run_members part_members = MEMBERS(struct run_part, part_table);

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
const struct run_members run_row_members = MEMBERS(struct run_row, row_table);

static const struct run_member limited_table[] = {
	STRING(struct run_limited, by),
	STRING(struct run_limited, why),
};
static const struct run_members limited_members = MEMBERS(struct run_limited, limited_table);

static const struct run_member driver_table[] = {
	{MEMBER(struct run_driver, STRING, host), .optional = true, .merging = RUN_MERGING_OWN},
	STRING(struct run_driver, target),
	STRING(struct run_driver, method),
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
	{MEMBER(struct run_driver, COUNTERS, grpc), .names = run_grpc_status_names,
	 .size = RUN_GRPC_STATUS_COUNT, .optional = true},
	{MEMBER(struct run_driver, U32, streams), .merging = RUN_MERGING_LARGEST, .optional = true},
	{MEMBER(struct run_driver, NUMBER, streams_allowed),
	 .merging = RUN_MERGING_OWN, .optional = true},
	COUNTERS(struct run_driver, errors, run_error_names),
	{MEMBER(struct run_driver, COUNTERS, datagrams), .names = run_datagram_names,
	 .size = ARRAY_SIZE(run_datagram_names), .optional = true},
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
	 .merging = RUN_MERGING_OWN, .members = &interval_members,
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
	{MEMBER(struct run_driver, POINTER, limited),
	 .merging = RUN_MERGING_OWN, .members = &limited_members,
	 .optional = true},
	{MEMBER(struct run_driver, STRING, unsampled), .optional = true,
	 .merging = RUN_MERGING_FIRST},
	{MEMBER(struct run_driver, STRING, observer_error), .optional = true,
	 .merging = RUN_MERGING_FIRST},
	{MEMBER(struct run_driver, SAMPLES, samples), .optional = true},
};
const struct run_members run_driver_members = MEMBERS(struct run_driver, driver_table);

static const struct run_member parts_table[] = {
	{MEMBER(struct run_parts, U64, wait_ns)},
	{MEMBER(struct run_parts, U64, round_trip_ns)},
	{MEMBER(struct run_parts, U64, network_ns)},
	{MEMBER(struct run_parts, U64, overhang_ns)},
	{MEMBER(struct run_parts, NUMBERS, stages), .names = run_stage_names, .size = STAGE_COUNT},
	NUMBER(struct run_parts, running_ns),
	NUMBER(struct run_parts, runnable_ns),
	NUMBER(struct run_parts, blocked_ns),
};
static const struct run_members parts_members = MEMBERS(struct run_parts, parts_table);

static const struct run_member tail_table[] = {
	{MEMBER(struct run_tail, U32, per_mille)},
	{MEMBER(struct run_tail, U64, above_ns)},
	{MEMBER(struct run_tail, U64, count)},
	{MEMBER(struct run_tail, OBJECT, sum), .members = &parts_members},
};
static const struct run_members tail_members = MEMBERS(struct run_tail, tail_table);

static const struct run_member joined_step_table[] = {
	STRING(struct run_joined_step, name),
	{MEMBER(struct run_joined_step, U64, count)},
	{MEMBER(struct run_joined_step, OBJECT, sum), .members = &parts_members},
};
static const struct run_members joined_step_members =
	MEMBERS(struct run_joined_step, joined_step_table);

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
static const struct run_members exchange_members = MEMBERS(struct run_exchange, exchange_table);

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
	{MEMBER(struct run_joined, LIST, slowest), .members = &exchange_members,
	 .count_offset = offsetof(struct run_joined, slowest_count), .limit = MAX_SLOWEST},
};
static const struct run_members joined_members = MEMBERS(struct run_joined, joined_table);

static const struct run_member owner_table[] = {
	{MEMBER(struct run_owner, U32, pid)},
	TEXT(struct run_owner, comm),
	TEXT(struct run_owner, unit),
	NUMBER(struct run_owner, sockets),
};
static const struct run_members owner_members = MEMBERS(struct run_owner, owner_table);

static const struct run_member finding_table[] = {
	{MEMBER(struct run_finding, STRING, host), .optional = true},
	TEXT(struct run_finding, id),
	TEXT(struct run_finding, severity),
	TEXT(struct run_finding, resource),
	TEXT(struct run_finding, object),
	{MEMBER(struct run_finding, U16, port)},
	{MEMBER(struct run_finding, U32, netns)},
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
static const struct run_members finding_members = MEMBERS(struct run_finding, finding_table);

static const struct run_member sweep_target_table[] = {
	STRING(struct run_sweep_target, name),
	{MEMBER(struct run_sweep_target, U64, requests)},
	{MEMBER(struct run_sweep_target, U64, drained), .optional = true},
	NUMBER(struct run_sweep_target, good),
	{MEMBER(struct run_sweep_target, U64, errors)},
	{MEMBER(struct run_sweep_target, HISTOGRAM, latency)},
};
static const struct run_members sweep_target_members =
	MEMBERS(struct run_sweep_target, sweep_target_table);

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
	NUMBER(struct run_sweep_step, server_exchanges),
	NUMBER(struct run_sweep_step, server_duration_ns),
	STRING(struct run_sweep_step, limited),
	{MEMBER(struct run_sweep_step, HISTOGRAM, latency)},
	{MEMBER(struct run_sweep_step, LIST, targets), .members = &sweep_target_members,
	 .count_offset = offsetof(struct run_sweep_step, target_count),
	 .limit = RUN_ROWS_MAX, .optional = true},
};
static const struct run_members sweep_step_members = MEMBERS(struct run_sweep_step, sweep_step_table);

static const struct run_member sweep_table[] = {
	STRING(struct run_sweep, target),
	STRING(struct run_sweep, method),
	STRING(struct run_sweep, over),
	{MEMBER(struct run_sweep, U32, connections), .optional = true},
	{MEMBER(struct run_sweep, LIST, steps), .members = &sweep_step_members,
	 .count_offset = offsetof(struct run_sweep, step_count), .limit = MAX_STEPS},
	NUMBER(struct run_sweep, plateau),
	NUMBER(struct run_sweep, knee),
	NUMBER(struct run_sweep, misfit_per_mille),
	STRING(struct run_sweep, unfitted),
	STRING(struct run_sweep, stopped),
	{MEMBER(struct run_sweep, POINTER, three_quarters), .members = &sweep_step_members,
	 .optional = true},
};
static const struct run_members sweep_members = MEMBERS(struct run_sweep, sweep_table);

static const struct run_member document_table[] = {
	STRING(struct run, host),
	STRING(struct run, kernel),
	STRING(struct run, tool),
	STRING(struct run, started_at),
	{MEMBER(struct run, U64, duration_ns)},
	{MEMBER(struct run, STRINGS, command), .limit = MAX_ARGUMENTS, .optional = true},
	{MEMBER(struct run, LIST, services), .members = &service_members,
	 .count_offset = offsetof(struct run, service_count),
	 .limit = MAX_SERVICES, .optional = true},
	{MEMBER(struct run, U64, services_dropped), .optional = true},
	STRING(struct run, connections_in),
	{MEMBER(struct run, POINTER, cost), .members = &cost_members, .optional = true},
	{MEMBER(struct run, POINTER, driver), .members = &run_driver_members, .optional = true},
	{MEMBER(struct run, POINTER, joined), .members = &joined_members, .optional = true},
	{MEMBER(struct run, POINTER, sweep), .members = &sweep_members, .optional = true},
	{MEMBER(struct run, LIST, findings), .members = &finding_members,
	 .count_offset = offsetof(struct run, finding_count),
	 .limit = MAX_FINDINGS, .optional = true},
	{MEMBER(struct run, STRINGS, not_seen), .limit = MAX_TEXTS, .optional = true},
};
const struct run_members run_document_members = MEMBERS(struct run, document_table);
/* clang-format on */
