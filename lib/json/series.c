// SPDX-License-Identifier: MIT
/* A service's history as JSON, in columns: about 200 bytes per point. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "columns.h"
#include "print.h"
#include "schema_parts.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"

/* Above any document's maximum: a day's history at the endpoint has a point every ten seconds. */
#define MAX_POINTS (16 * RUN_SERIES_MAX)

/* clang-format off */
#define COLUMN(field, bit) \
	{.name = #field, .offset = offsetof(struct run_point, field), .size = sizeof(uint64_t), .known = (bit)}
static const struct run_column columns[] = {
	COLUMN(begin_ns, 0),
	COLUMN(duration_ns, 0),
	COLUMN(accepted, 0),
	COLUMN(exchanges, 0),
	COLUMN(bytes_in, 0),
	COLUMN(bytes_out, 0),
	COLUMN(retransmits, 0),
	COLUMN(resets, 0),
	COLUMN(time_wait_created, 0),
	COLUMN(overflows, RUN_POINT_OVERFLOWS),
	COLUMN(connections, RUN_POINT_CONNECTIONS),
	COLUMN(time_wait, RUN_POINT_TIME_WAIT),
	COLUMN(depth, RUN_POINT_DEPTH),
	COLUMN(depth_max, RUN_POINT_DEPTH_MAX),
	COLUMN(fds, RUN_POINT_FDS),
	COLUMN(srtt_ns, RUN_POINT_SRTT),
	COLUMN(min_rtt_ns, RUN_POINT_MIN_RTT),
	COLUMN(ports, RUN_POINT_PORTS),
	COLUMN(open, RUN_POINT_OPEN),
	COLUMN(open_oldest_ns, RUN_POINT_OPEN),
};

#define CPU_COLUMN(name_, field) \
	{.within = {"cpu"}, .name = (name_), .offset = offsetof(struct run_point, cpu.field), \
	 .size = sizeof(uint64_t), .known = RUN_POINT_CPU}
static const struct run_column cpu_columns[] = {
	CPU_COLUMN("count", count),
	CPU_COLUMN("running_ns", sum_ns[RUN_CPU_RUNNING]),
	CPU_COLUMN("runnable_ns", sum_ns[RUN_CPU_RUNNABLE]),
	CPU_COLUMN("blocked_ns", sum_ns[RUN_CPU_BLOCKED]),
};
/* clang-format on */

/* Each stage has four columns, or none if it was not measured at any point. */
#define STAGE_COLUMNS (4 * STAGE_COUNT)

static void stage_columns(struct run_column ret_columns[static STAGE_COLUMNS])
{
	static const char *const names[] = {"count", "sum_ns", "p50_ns", "p99_ns"};
	static const size_t offsets[] = {
		offsetof(struct run_point, stages[0].count),
		offsetof(struct run_point, stages[0].sum_ns),
		offsetof(struct run_point, stages[0].p50_ns),
		offsetof(struct run_point, stages[0].p99_ns),
	};

	for (unsigned int i = 0; i < STAGE_COLUMNS; i++) {
		unsigned int stage = i / 4, which = i % 4;

		ret_columns[i] = (struct run_column){
			.within = {"stages", run_stage_names[stage]},
			.name = names[which],
			.offset = offsets[which] + stage * sizeof(struct run_point_stage),
			.size = sizeof(uint64_t),
			.known = which < 2 ? RUN_POINT_STAGE(stage) : RUN_POINT_QUANTILE(stage),
		};
	}
}

/* Counts by kind, few of which occur. */
#define KIND_COLUMNS (RUN_CLOSE_COUNT + RUN_LOSS_COUNT)

static void kind_columns(struct run_column ret_columns[static KIND_COLUMNS])
{
	for (unsigned int i = 0; i < KIND_COLUMNS; i++) {
		bool close = i < RUN_CLOSE_COUNT;
		unsigned int kind = close ? i : i - RUN_CLOSE_COUNT;

		ret_columns[i] = (struct run_column){
			.within = {close ? "closes" : "losses"},
			.name = close ? run_close_names[kind] : run_loss_names[kind],
			.offset = (close ? offsetof(struct run_point, closes)
					 : offsetof(struct run_point, losses)) +
				  kind * sizeof(uint64_t),
			.size = sizeof(uint64_t),
			.occurring = true,
		};
	}
}

static struct run_rows rows_of(const struct run_series *series)
{
	return (struct run_rows){
		.rows = series->points,
		.count = series->count,
		.size = sizeof(struct run_point),
		.known_offset = offsetof(struct run_point, known),
	};
}

void run_series_print(const struct run_series *series, FILE *file)
{
	struct run_column stages[STAGE_COLUMNS], kinds[KIND_COLUMNS];
	struct run_rows rows = rows_of(series);

	stage_columns(stages);
	kind_columns(kinds);
	print_name("{", "started_ns", file);
	print_integer(series->started_ns, file);
	print_plain(",\"stages\":{", file);
	run_columns_print(stages, STAGE_COLUMNS, &rows, 1, "", file);
	print_char('}', file);
	run_columns_print(columns, ARRAY_SIZE(columns), &rows, 0, ",", file);
	print_plain(",\"closes\":{", file);
	run_columns_print(kinds, RUN_CLOSE_COUNT, &rows, 1, "", file);
	print_plain("},\"losses\":{", file);
	run_columns_print(kinds + RUN_CLOSE_COUNT, RUN_LOSS_COUNT, &rows, 1, "", file);
	print_char('}', file);
	run_columns_print(cpu_columns, ARRAY_SIZE(cpu_columns), &rows, 0, ",", file);
	print_char('}', file);
}

json_t *run_series_schema(void)
{
	struct run_column stages[STAGE_COLUMNS], kinds[KIND_COLUMNS];
	autojson json_t *object = schema_object();

	stage_columns(stages);
	kind_columns(kinds);
	if (schema_add(object, "started_ns", schema_integer(INT64_MAX), true) ||
	    run_columns_schema(object, columns, ARRAY_SIZE(columns), MAX_POINTS) ||
	    run_columns_schema(object, stages, STAGE_COLUMNS, MAX_POINTS) ||
	    run_columns_schema(object, kinds, KIND_COLUMNS, MAX_POINTS) ||
	    run_columns_schema(object, cpu_columns, ARRAY_SIZE(cpu_columns), MAX_POINTS))
		return NULL;
	return TAKE_PTR(object);
}

/* The number of points is that of their starts. */
static int read_points(struct reader *reader, const json_t *json, struct run_series *series)
{
	const json_t *begins = json_object_get(json, columns[0].name);
	size_t before = reader_enter_member(reader, columns[0].name);
	int err = 0;

	if (!json_is_array(begins) || json_array_size(begins) > MAX_POINTS)
		err = reader_refuse(reader, begins, "an array of at most %u elements", MAX_POINTS);
	reader_leave(reader, before);
	if (err)
		return err;
	series->count = json_array_size(begins);
	series->capacity = series->count + 1;
	series->points = calloc(series->capacity, sizeof(*series->points));
	return series->points ? 0 : -ENOMEM;
}

static int read_columns(struct reader *reader, const json_t *json, const struct run_series *series)
{
	struct run_column stages[STAGE_COLUMNS], kinds[KIND_COLUMNS];
	struct run_rows rows = rows_of(series);
	int err = run_columns_read(reader, json, columns, ARRAY_SIZE(columns), &rows);

	stage_columns(stages);
	kind_columns(kinds);
	if (!err)
		err = run_columns_read(reader, json, stages, STAGE_COLUMNS, &rows);
	if (!err)
		err = run_columns_read(reader, json, kinds, KIND_COLUMNS, &rows);
	return err ? err
		   : run_columns_read(reader, json, cpu_columns, ARRAY_SIZE(cpu_columns), &rows);
}

int run_series_read(struct reader *reader, const json_t *json, struct run_series **ret_series)
{
	struct run_series *series = run_series_new();
	int err;

	if (!series)
		return -ENOMEM;
	*ret_series = series;
	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	err = reader_member(reader, json, "started_ns", INT64_MAX, &series->started_ns);
	if (!err)
		err = read_points(reader, json, series);
	return err ? err : read_columns(reader, json, series);
}
