/* SPDX-License-Identifier: MIT */
/* A service's past to and from JSON, in columns: a point takes about 150 bytes. */
#include "run_series.h"

#include <errno.h>
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
	COLUMN(connections, RUN_POINT_CONNECTIONS),
	COLUMN(time_wait, RUN_POINT_TIME_WAIT),
	COLUMN(depth, RUN_POINT_DEPTH),
	COLUMN(fds, RUN_POINT_FDS),
	COLUMN(srtt_ns, RUN_POINT_SRTT),
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
/* clang-format on */

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

json_t *run_series_write(const struct run_series *series)
{
	autojson json_t *object =
		json_pack("{s:I, s:{}}", "started_ns", (json_int_t)series->started_ns, "stages");
	struct run_rows rows = rows_of(series);

	if (!object || run_columns_write(object, columns, ARRAY_SIZE(columns), &rows) ||
	    write_stages(json_object_get(object, "stages"), &rows))
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
	return err;
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
