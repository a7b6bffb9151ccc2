// SPDX-License-Identifier: MIT
/*
 * Sampled exchanges as JSON, about 80 bytes each: every flow once, and a column per number.
 * Addresses are text; IPv4 ones are written as IPv4 for any socket family.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "print.h"
#include "schema_parts.h"
#include "sojourn/address.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"

/* The maximum that fits into RUN_TEXT_LIMIT. */
#define MAX_SAMPLES (1U << 20)

/* A sample in JSON: its flow is an index. */
struct row {
	struct run_sample sample; /* first, so that offsets in it are offsets in the row */
	uint32_t flow;
};

#define FLOW_COLUMN 0 /* index of the one column that struct run_sample lacks */

/* clang-format off */
#define COLUMN(field, bit) \
	{.name = #field, .offset = offsetof(struct row, sample.field), \
	 .size = sizeof(((struct run_sample *)NULL)->field), .known = (bit)}
static const struct run_column columns[] = {
	{.name = "flow", .offset = offsetof(struct row, flow), .size = sizeof(uint32_t)},
	COLUMN(index, 0),
	COLUMN(pid, RUN_SAMPLE_PID),
	COLUMN(bytes_in, RUN_SAMPLE_BYTES_IN),
	COLUMN(bytes_out, RUN_SAMPLE_BYTES_OUT),
	COLUMN(arrival_ns, RUN_SAMPLE_ARRIVAL),
	COLUMN(running_ns, RUN_SAMPLE_RUNNING),
	COLUMN(runnable_ns, RUN_SAMPLE_RUNNABLE),
	COLUMN(start_ns, RUN_SAMPLE_START),
	COLUMN(round_trip_ns, RUN_SAMPLE_ROUND_TRIP),
	COLUMN(response_ns, RUN_SAMPLE_RESPONSE),
	COLUMN(step, RUN_SAMPLE_STEP),
};
/* clang-format on */

static void stage_columns(struct run_column ret_columns[STAGE_COUNT])
{
	for (unsigned int i = 0; i < STAGE_COUNT; i++)
		ret_columns[i] = (struct run_column){
			.within = {"stages"},
			.name = run_stage_names[i],
			.offset = offsetof(struct row, sample.stage_ns) + i * sizeof(uint64_t),
			.size = sizeof(uint64_t),
			.known = RUN_SAMPLE_STAGE(i),
		};
}

static struct run_rows rows_of(struct row *rows, size_t count)
{
	return (struct run_rows){
		.rows = rows,
		.count = count,
		.size = sizeof(*rows),
		.known_offset = offsetof(struct row, sample.known),
	};
}

/* Print without escaping: addresses have no special characters. */
static void print_address(const uint32_t words[4], FILE *file)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)words);
	char text[INET6_ADDRSTRLEN];

	fprintf(file, "\"%s\"",
		address_format(v4 ? AF_INET : AF_INET6, v4 ? &words[3] : words, 0, text,
			       sizeof(text)));
}

static const char *const flow_names[] = {"client", "client_port", "server", "server_port"};

static void print_flow_member(const struct flow *flow, unsigned int member, FILE *file)
{
	switch (member) {
	case 0:
		print_address(flow->client, file);
		break;
	case 1:
		print_integer(flow->client_port, file);
		break;
	case 2:
		print_address(flow->server, file);
		break;
	default:
		print_integer(flow->server_port, file);
	}
}

/* Return whether the sample at @i of the order is of another flow than the one before it. */
static bool begins_flow(const struct run_samples *samples, const uint32_t *order, size_t i)
{
	return !i || memcmp(&samples->samples[order[i]].flow, &samples->samples[order[i - 1]].flow,
			    sizeof(struct flow));
}

static void print_flows(const struct run_samples *samples, const uint32_t *order, FILE *file)
{
	for (unsigned int member = 0; member < ARRAY_SIZE(flow_names); member++) {
		fprintf(file, "%s\"%s\":[", member ? "," : "", flow_names[member]);
		for (size_t i = 0; i < samples->count; i++) {
			if (!begins_flow(samples, order, i))
				continue;
			if (i)
				fputc(',', file);
			print_flow_member(&samples->samples[order[i]].flow, member, file);
		}
		fputc(']', file);
	}
}

/* Write the flow of each sample. */
static void print_flow_column(const struct run_samples *samples, const uint32_t *order, FILE *file)
{
	uint32_t flows = 0;

	fprintf(file, ",\"%s\":[", columns[FLOW_COLUMN].name);
	for (size_t i = 0; i < samples->count; i++) {
		flows += begins_flow(samples, order, i);
		print_plain(i ? "," : "", file);
		print_integer(flows - 1, file);
	}
	fputc(']', file);
}

static int compare_places(const void *a, const void *b, void *samples)
{
	const struct run_sample *list = samples;

	return run_sample_compare(&list[*(const uint32_t *)a], &list[*(const uint32_t *)b]);
}

/* Return the samples' indices, sorted by flow, then index; NULL without memory. */
static uint32_t *order_of(const struct run_samples *samples)
{
	uint32_t *order = calloc(samples->count + 1, sizeof(*order));

	if (!order)
		return NULL;
	for (size_t i = 0; i < samples->count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, samples->count, sizeof(*order), compare_places, samples->samples);
	return order;
}

/* Print directly: a JSON tree would take five times the memory. Sort only indices, not a copy. */
int run_samples_print(const struct run_samples *samples, FILE *file)
{
	autofree uint32_t *order = order_of(samples);
	struct run_column stages[STAGE_COUNT];
	const struct run_rows table = {
		.rows = samples->samples,
		.order = order,
		.count = samples->count,
		.size = sizeof(*samples->samples),
		.known_offset = offsetof(struct run_sample, known),
	};

	if (!order)
		return -ENOMEM;
	stage_columns(stages);
	fprintf(file,
		"{\"threshold\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"inconsistent\":%" PRIu64
		",\"flows\":{",
		samples->threshold, samples->lost, samples->inconsistent);
	print_flows(samples, order, file);
	fputs("},\"stages\":{", file);
	run_columns_print(stages, STAGE_COUNT, &table, 1, "", file);
	fputc('}', file);
	print_flow_column(samples, order, file);
	run_columns_print(columns + FLOW_COLUMN + 1, ARRAY_SIZE(columns) - FLOW_COLUMN - 1, &table,
			  0, ",", file);
	fputc('}', file);
	return 0;
}

static int add_flows(json_t *object)
{
	json_t *flows = schema_object();

	if (schema_add(object, "flows", flows, true))
		return -ENOMEM;
	for (unsigned int i = 0; i < ARRAY_SIZE(flow_names); i++) {
		json_t *element =
			i % 2 ? schema_integer(UINT16_MAX) : json_pack("{s:s}", "type", "string");

		if (schema_add(flows, flow_names[i], schema_array(MAX_SAMPLES, element), true))
			return -ENOMEM;
	}
	return 0;
}

json_t *run_samples_schema(void)
{
	autojson json_t *object = schema_object();
	struct run_column stages[STAGE_COUNT];

	stage_columns(stages);
	if (schema_add(object, "threshold", schema_integer(RUN_SAMPLE_ALL), true) ||
	    schema_add(object, "lost", schema_integer(INT64_MAX), true) ||
	    schema_add(object, "inconsistent", schema_integer(INT64_MAX), true) ||
	    add_flows(object) ||
	    run_columns_schema(object, columns, ARRAY_SIZE(columns), MAX_SAMPLES) ||
	    run_columns_schema(object, stages, STAGE_COUNT, MAX_SAMPLES))
		return NULL;
	return TAKE_PTR(object);
}

static int read_address(struct reader *reader, const json_t *json, uint32_t words[4])
{
	const char *text = json_string_value(json);

	if (text && inet_pton(AF_INET6, text, words) == 1)
		return 0;
	if (!text || inet_pton(AF_INET, text, &words[3]) != 1)
		return reader_refuse(reader, json, "an IPv4 or IPv6 address");
	words[2] = htonl(0xffff);
	return 0;
}

static int read_port(struct reader *reader, const json_t *json, uint16_t *ret_port)
{
	uint64_t port = 0;
	int err = reader_integer(reader, json, UINT16_MAX, &port);

	if (!err)
		*ret_port = (uint16_t)port;
	return err;
}

static int read_flow_member(struct reader *reader, const json_t *json, unsigned int member,
			    struct flow *flow)
{
	switch (member) {
	case 0:
		return read_address(reader, json, flow->client);
	case 1:
		return read_port(reader, json, &flow->client_port);
	case 2:
		return read_address(reader, json, flow->server);
	default:
		return read_port(reader, json, &flow->server_port);
	}
}

static int read_flow_column(struct reader *reader, const json_t *json, unsigned int member,
			    struct flow *flows, size_t count)
{
	int err = 0;

	if (!json_is_array(json) || json_array_size(json) != count)
		return reader_refuse(reader, json, "an array of %zu elements", count);
	for (size_t i = 0; i < count && !err; i++) {
		size_t before = reader_enter(reader, "[%zu]", i);

		err = read_flow_member(reader, json_array_get(json, i), member, &flows[i]);
		reader_leave(reader, before);
	}
	return err;
}

static int read_flows(struct reader *reader, const json_t *json, struct flow *flows, size_t count)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(flow_names) && !err; i++) {
		size_t before = reader_enter_member(reader, flow_names[i]);

		err = read_flow_column(reader, json_object_get(json, flow_names[i]), i, flows,
				       count);
		reader_leave(reader, before);
	}
	return err;
}

/* Return the length of the array @name of @json; at most MAX_SAMPLES. */
static int read_count(struct reader *reader, const json_t *json, const char *name,
		      size_t *ret_count)
{
	const json_t *array = json_object_get(json, name);
	size_t before = reader_enter_member(reader, name);
	int err = 0;

	if (!json_is_array(array) || json_array_size(array) > MAX_SAMPLES)
		err = reader_refuse(reader, array, "an array of at most %u elements", MAX_SAMPLES);
	else
		*ret_count = json_array_size(array);
	reader_leave(reader, before);
	return err;
}

static int read_flow_table(struct reader *reader, const json_t *json, struct flow **ret_flows,
			   size_t *ret_count)
{
	const json_t *table = json_object_get(json, "flows");
	size_t before = reader_enter_member(reader, "flows");
	autofree struct flow *flows = NULL;
	size_t count = 0;
	int err = read_count(reader, table, flow_names[0], &count);

	if (!err) {
		flows = calloc(count + 1, sizeof(*flows));
		err = flows ? read_flows(reader, table, flows, count) : -ENOMEM;
	}
	reader_leave(reader, before);
	if (err)
		return err;
	*ret_flows = TAKE_PTR(flows);
	*ret_count = count;
	return 0;
}

static int read_rows(struct reader *reader, const json_t *json, struct row *rows, size_t count)
{
	struct run_column stages[STAGE_COUNT];
	struct run_rows table = rows_of(rows, count);
	int err = run_columns_read(reader, json, columns, ARRAY_SIZE(columns), &table);

	stage_columns(stages);
	return err ? err : run_columns_read(reader, json, stages, STAGE_COUNT, &table);
}

/* Combine rows and their flows into samples. */
static int take_rows(struct reader *reader, const struct row *rows, size_t count,
		     const struct flow *flows, size_t flow_count, struct run_samples *samples)
{
	for (size_t i = 0; i < count; i++) {
		struct run_sample *sample;

		if (rows[i].flow >= flow_count) {
			reader_enter(reader, ".flow[%zu]", i);
			return reader_refuse(reader, NULL, "one of the %zu flows", flow_count);
		}
		sample = run_add_sample(samples);
		if (!sample)
			return -ENOMEM;
		*sample = rows[i].sample;
		sample->flow = flows[rows[i].flow];
	}
	return 0;
}

static int read_all(struct reader *reader, const json_t *json, struct run_samples *samples)
{
	autofree struct flow *flows = NULL;
	autofree struct row *rows = NULL;
	size_t count = 0, flow_count = 0;
	int err;

	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	err = reader_member(reader, json, "threshold", RUN_SAMPLE_ALL, &samples->threshold);
	if (!err)
		err = reader_member(reader, json, "lost", INT64_MAX, &samples->lost);
	if (!err)
		err = reader_member(reader, json, "inconsistent", INT64_MAX,
				    &samples->inconsistent);
	if (!err)
		err = read_flow_table(reader, json, &flows, &flow_count);
	if (!err)
		err = read_count(reader, json, "flow", &count);
	if (err)
		return err;
	rows = calloc(count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	err = read_rows(reader, json, rows, count);
	return err ? err : take_rows(reader, rows, count, flows, flow_count, samples);
}

int run_samples_read(struct reader *reader, const json_t *json, struct run_samples **ret_samples)
{
	struct run_samples *samples = run_samples_new();

	if (!samples)
		return -ENOMEM;
	*ret_samples = samples;
	return read_all(reader, json, samples);
}
