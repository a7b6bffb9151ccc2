/* SPDX-License-Identifier: MIT */
/* A service's past to and from JSON, in columns: a point takes about 200 bytes. */
#include "run_series.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "run_columns.h"

DEFINE_CLEANUP(json_t *, json_decref)
#define autojson CLEANUP(cleanup_json_decref)

/* As many as any document has, and some more. */
#define MAX_POINTS (4 * RUN_SERIES_MAX)

/* clang-format off */
#define COLUMN(field, bit) \
	{#field, offsetof(struct run_point, field), sizeof(uint64_t), (bit)}
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
};

#define STAGE_COLUMN(field, bit) \
	{#field, offsetof(struct run_point_stage, field), sizeof(uint64_t), (bit)}
static const struct run_column stage_columns[] = {
	STAGE_COLUMN(count, RUN_POINT_STAGE(0)),
	STAGE_COLUMN(sum_ns, RUN_POINT_STAGE(0)),
	STAGE_COLUMN(p50_ns, RUN_POINT_QUANTILE(0)),
	STAGE_COLUMN(p99_ns, RUN_POINT_QUANTILE(0)),
};

#define CPU_COLUMN(name, part) \
	{name, offsetof(struct run_point, cpu.sum_ns) + (part) * sizeof(uint64_t), sizeof(uint64_t), RUN_POINT_CPU}
static const struct run_column cpu_columns[] = {
	{"count", offsetof(struct run_point, cpu.count), sizeof(uint64_t), RUN_POINT_CPU},
	CPU_COLUMN("running_ns", RUN_CPU_RUNNING),
	CPU_COLUMN("runnable_ns", RUN_CPU_RUNNABLE),
	CPU_COLUMN("blocked_ns", RUN_CPU_BLOCKED),
};

/* Counts by kind, of which few ever occur: a kind that occurred at no point is left out. */
static const struct {
	const char *name;
	const char *const *kinds;
	unsigned int count;
	size_t offset;
} groups[] = {
	{"closes", run_close_names, RUN_CLOSE_COUNT, offsetof(struct run_point, closes)},
	{"losses", run_loss_names, RUN_LOSS_COUNT, offsetof(struct run_point, losses)},
};
/* clang-format on */

static struct run_column kind_column(size_t group, unsigned int kind)
{
	return (struct run_column){
		.name = groups[group].kinds[kind],
		.offset = groups[group].offset + kind * sizeof(uint64_t),
		.size = sizeof(uint64_t),
	};
}

static void columns_of(unsigned int stage, struct run_column ret_columns[])
{
	size_t offset = offsetof(struct run_point, stages) + stage * sizeof(struct run_point_stage);

	for (size_t i = 0; i < ARRAY_SIZE(stage_columns); i++) {
		ret_columns[i] = stage_columns[i];
		ret_columns[i].offset += offset;
		ret_columns[i].known <<= stage;
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

/* A stage that was not measured at any point is not there. */
static int write_stages(json_t *object, const struct run_rows *rows)
{
	for (unsigned int stage = 0; stage < STAGE_COUNT; stage++) {
		struct run_column of_stage[ARRAY_SIZE(stage_columns)];
		autojson json_t *member = json_object();

		columns_of(stage, of_stage);
		if (!member || run_columns_write(member, of_stage, ARRAY_SIZE(stage_columns), rows))
			return -ENOMEM;
		if (json_object_size(member) &&
		    json_object_set(object, run_stage_names[stage], member))
			return -ENOMEM;
	}
	return 0;
}

static bool occurred(const struct run_rows *rows, size_t offset)
{
	const char *value = (const char *)rows->rows + offset;

	for (size_t i = 0; i < rows->count; i++, value += rows->size)
		if (*(const uint64_t *)value)
			return true;
	return false;
}

static int write_groups(json_t *object, const struct run_rows *rows)
{
	for (size_t group = 0; group < ARRAY_SIZE(groups); group++) {
		json_t *member = json_object();

		if (json_object_set_new(object, groups[group].name, member))
			return -ENOMEM;
		for (unsigned int kind = 0; kind < groups[group].count; kind++) {
			struct run_column column = kind_column(group, kind);

			if (occurred(rows, column.offset) &&
			    run_columns_write(member, &column, 1, rows))
				return -ENOMEM;
		}
	}
	return 0;
}

static int write_cpu(json_t *object, const struct run_rows *rows)
{
	autojson json_t *member = json_object();

	if (!member || run_columns_write(member, cpu_columns, ARRAY_SIZE(cpu_columns), rows))
		return -ENOMEM;
	return json_object_size(member) ? json_object_set(object, "cpu", member) : 0;
}

json_t *run_series_write(const struct run_series *series)
{
	autojson json_t *object =
		json_pack("{s:I, s:{}}", "started_ns", (json_int_t)series->started_ns, "stages");
	struct run_rows rows = rows_of(series);

	if (!object || run_columns_write(object, columns, ARRAY_SIZE(columns), &rows) ||
	    write_stages(json_object_get(object, "stages"), &rows) || write_groups(object, &rows) ||
	    write_cpu(object, &rows))
		return NULL;
	return TAKE_PTR(object);
}

static int read_stages(struct reader *reader, const json_t *json, const struct run_rows *rows)
{
	int err = 0;

	if (json && !json_is_object(json))
		return reader_refuse(reader, json, "an object");
	for (unsigned int stage = 0; stage < STAGE_COUNT && !err; stage++) {
		struct run_column of_stage[ARRAY_SIZE(stage_columns)];
		const json_t *member = json_object_get(json, run_stage_names[stage]);
		size_t before = reader_enter_member(reader, run_stage_names[stage]);

		columns_of(stage, of_stage);
		if (member && !json_is_object(member))
			err = reader_refuse(reader, member, "an object");
		else
			err = run_columns_read(reader, member, of_stage, ARRAY_SIZE(stage_columns),
					       rows);
		reader_leave(reader, before);
	}
	return err;
}

static int read_group(struct reader *reader, const json_t *json, size_t group,
		      const struct run_rows *rows)
{
	int err = 0;

	if (json && !json_is_object(json))
		return reader_refuse(reader, json, "an object");
	for (unsigned int kind = 0; kind < groups[group].count && !err; kind++) {
		struct run_column column = kind_column(group, kind);

		if (json_object_get(json, column.name))
			err = run_columns_read(reader, json, &column, 1, rows);
	}
	return err;
}

static int read_groups(struct reader *reader, const json_t *json, const struct run_rows *rows)
{
	int err = 0;

	for (size_t group = 0; group < ARRAY_SIZE(groups) && !err; group++) {
		size_t before = reader_enter_member(reader, groups[group].name);

		err = read_group(reader, json_object_get(json, groups[group].name), group, rows);
		reader_leave(reader, before);
	}
	return err;
}

static int read_cpu(struct reader *reader, const json_t *json, const struct run_rows *rows)
{
	const json_t *member = json_object_get(json, "cpu");
	size_t before = reader_enter_member(reader, "cpu");
	int err = 0;

	if (member && !json_is_object(member))
		err = reader_refuse(reader, member, "an object");
	else
		err = run_columns_read(reader, member, cpu_columns, ARRAY_SIZE(cpu_columns), rows);
	reader_leave(reader, before);
	return err;
}

/* How many points there are is told by their begins. */
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
	struct run_rows rows = rows_of(series);
	int err = run_columns_read(reader, json, columns, ARRAY_SIZE(columns), &rows);
	size_t before = reader_enter_member(reader, "stages");

	if (!err)
		err = read_stages(reader, json_object_get(json, "stages"), &rows);
	reader_leave(reader, before);
	if (!err)
		err = read_groups(reader, json, &rows);
	return err ? err : read_cpu(reader, json, &rows);
}

int run_series_read(struct reader *reader, const json_t *json, const struct run_member *member,
		    void *field)
{
	struct run_series *series = run_series_new();
	size_t before;
	int err;

	if (!series)
		return -ENOMEM;
	(void)member;
	*(struct run_series **)field = series;
	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	before = reader_enter_member(reader, "started_ns");
	err = reader_integer(reader, json_object_get(json, "started_ns"), INT64_MAX,
			     &series->started_ns);
	reader_leave(reader, before);
	if (!err)
		err = read_points(reader, json, series);
	return err ? err : read_columns(reader, json, series);
}
