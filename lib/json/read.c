// SPDX-License-Identifier: MIT
/*
 * The run document from untrusted JSON text: everything is checked, and errors name the path.
 * Unknown members are ignored; run/members.c has the others.
 */
#include "sojourn/run.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "columns.h"
#include "run/members.h"
#include "sojourn/autojson.h"

static int read_object(struct reader *reader, const json_t *json, void *structure,
		       const struct run_members *members);

static int read_number(struct reader *reader, const json_t *json, struct run_number *number)
{
	int err = reader_integer(reader, json, INT64_MAX, &number->value);

	number->known = !err;
	return err;
}

static int read_signed(struct reader *reader, const json_t *json, struct run_signed *number)
{
	if (!json_is_integer(json))
		return reader_refuse(reader, json, "a whole number");
	*number = (struct run_signed){true, json_integer_value(json)};
	return 0;
}

static int read_ratio(struct reader *reader, const json_t *json, struct run_ratio *ratio)
{
	double value = json_number_value(json);

	if (!json_is_number(json) || value < -1 || value > 1)
		return reader_refuse(reader, json, "a number from -1 to 1");
	*ratio = (struct run_ratio){true, value};
	return 0;
}

static int read_string(struct reader *reader, const json_t *json, char **string)
{
	if (!json_is_string(json))
		return reader_refuse(reader, json, "a string");
	*string = strdup(json_string_value(json));
	return *string ? 0 : -ENOMEM;
}

static int read_text(struct reader *reader, const json_t *json, const struct run_member *member,
		     void *field)
{
	if (!json_is_string(json) || json_string_length(json) >= member->size)
		return reader_refuse(reader, json, "a string of at most %zu bytes",
				     member->size - 1);
	memcpy(field, json_string_value(json), json_string_length(json) + 1);
	return 0;
}

/* Return -EINVAL unless @json is an array of at most @limit elements. */
static int check_array(struct reader *reader, const json_t *json, size_t limit)
{
	if (!json_is_array(json) || json_array_size(json) > limit)
		return reader_refuse(reader, json, "an array of at most %zu elements", limit);
	return 0;
}

static int read_strings(struct reader *reader, const json_t *json, const struct run_member *member,
			void *field)
{
	int err = check_array(reader, json, member->limit);
	size_t count = json_array_size(json);
	char **strings;

	if (err)
		return err;
	strings = calloc(count + 1, sizeof(*strings));
	if (!strings)
		return -ENOMEM;
	*(char ***)field = strings;
	for (size_t i = 0; i < count && !err; i++) {
		size_t before = reader_enter(reader, "[%zu]", i);

		err = read_string(reader, json_array_get(json, i), &strings[i]);
		reader_leave(reader, before);
	}
	return err;
}

/* The state of reading pairs [index, count]. The first of @counts has the index @least. */
struct pairs {
	uint64_t *counts;
	uint64_t count;
	uint64_t least;
	uint64_t next; /* the lowest index that may follow */
};

static int read_pair(struct reader *reader, const json_t *pair, struct pairs *pairs)
{
	uint64_t most = pairs->least + pairs->count - 1, index = 0, count = 0;
	int err;

	if (!json_is_array(pair) || json_array_size(pair) != 2)
		return reader_refuse(reader, pair, "a pair [index, count]");
	err = reader_integer(reader, json_array_get(pair, 0), most, &index);
	if (!err)
		err = reader_integer(reader, json_array_get(pair, 1), INT64_MAX, &count);
	if (err)
		return err;
	if (index < pairs->least)
		return reader_refuse(reader, json_array_get(pair, 0), "at least %" PRIu64,
				     pairs->least);
	if (index < pairs->next)
		return reader_refuse(reader, json_array_get(pair, 0), "in ascending order");
	pairs->counts[index - pairs->least] = count;
	pairs->next = index + 1;
	return 0;
}

static int read_pairs(struct reader *reader, const json_t *json, struct pairs *pairs)
{
	int err = check_array(reader, json, pairs->count);

	for (size_t i = 0; i < json_array_size(json) && !err; i++) {
		size_t before = reader_enter(reader, "[%zu]", i);

		err = read_pair(reader, json_array_get(json, i), pairs);
		reader_leave(reader, before);
	}
	return err;
}

/* Check the sum of the counts for overflow too. */
static bool counts_agree(const struct histogram *h)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		if (__builtin_add_overflow(sum, h->buckets[i], &sum))
			return false;
	return sum == h->count;
}

static int read_buckets(struct reader *reader, const json_t *json, struct histogram *h)
{
	struct pairs pairs = {.counts = h->buckets, .count = BUCKET_COUNT};
	int err = read_pairs(reader, json, &pairs);

	if (!err && !counts_agree(h))
		err = reader_refuse(reader, json, "counts that add up to count, %" PRIu64,
				    h->count);
	return err;
}

/* Read an integer member of a histogram; with @nullable it may be null or missing. */
static int read_value(struct reader *reader, const json_t *json, const char *name, bool nullable,
		      uint64_t *ret_value)
{
	const json_t *value = json_object_get(json, name);
	size_t before = reader_enter_member(reader, name);
	int err = 0;

	if (!nullable || (value && !json_is_null(value)))
		err = reader_integer(reader, value, INT64_MAX, ret_value);
	reader_leave(reader, before);
	return err;
}

static int read_histogram(struct reader *reader, const json_t *json, struct histogram *h)
{
	static const char *const derived[] = {"mean_ns", "stddev_ns", "p50_ns",	  "p90_ns",
					      "p99_ns",	 "p999_ns",   "p9999_ns", "p99999_ns"};
	uint64_t ignored;
	size_t before;
	int err = 0;

	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	err = read_value(reader, json, "count", false, &h->count);
	if (!err)
		err = read_value(reader, json, "sum_ns", false, &h->sum);
	if (!err)
		err = read_value(reader, json, "max_ns", !h->count, &h->max);
	for (size_t i = 0; i < ARRAY_SIZE(derived) && !err; i++)
		err = read_value(reader, json, derived[i], true, &ignored);
	if (err)
		return err;
	before = reader_enter_member(reader, "buckets");
	err = read_buckets(reader, json_object_get(json, "buckets"), h);
	reader_leave(reader, before);
	return err;
}

static const struct run_member stage_table[] = {
	{.name = "measured", .kind = RUN_KIND_BOOL, .offset = offsetof(struct run_stage, measured)},
	{.name = "source",
	 .kind = RUN_KIND_STRING,
	 .offset = offsetof(struct run_stage, source),
	 .optional = true},
	{.name = "reason",
	 .kind = RUN_KIND_STRING,
	 .offset = offsetof(struct run_stage, reason),
	 .optional = true},
};
static const struct run_members stage_members = {
	.size = sizeof(struct run_stage),
	.list = stage_table,
	.count = ARRAY_SIZE(stage_table),
};

/* A missing stage is like one marked as missing. */
static int read_stage(struct reader *reader, const json_t *json, struct run_stage *stage)
{
	int err;

	if (!json || json_is_null(json)) {
		stage->reason = strdup("absent from the document");
		return stage->reason ? 0 : -ENOMEM;
	}
	err = read_object(reader, json, stage, &stage_members);
	if (!err && stage->measured)
		err = read_histogram(reader, json, &stage->histogram);
	return err;
}

/* An older writer's missing counter is 0, its missing number is not known. */
static int read_element(struct reader *reader, const json_t *json, enum run_kind kind, void *field,
			size_t i)
{
	if (kind == RUN_KIND_STAGES)
		return read_stage(reader, json, (struct run_stage *)field + i);
	if (kind == RUN_KIND_NUMBERS)
		return json && !json_is_null(json)
			       ? read_number(reader, json, (struct run_number *)field + i)
			       : 0;
	return json ? reader_integer(reader, json, INT64_MAX, (uint64_t *)field + i) : 0;
}

static int read_named(struct reader *reader, const json_t *json, const struct run_member *member,
		      void *field)
{
	int err = 0;

	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	for (size_t i = 0; i < member->size && !err; i++) {
		size_t before = reader_enter_member(reader, member->names[i]);

		err = read_element(reader, json_object_get(json, member->names[i]), member->kind,
				   field, i);
		reader_leave(reader, before);
	}
	return err;
}

static int read_pointer(struct reader *reader, const json_t *json, const struct run_member *member,
			void *field)
{
	void *object = calloc(1, member->members->size);

	if (!object)
		return -ENOMEM;
	*(void **)field = object;
	return read_object(reader, json, object, member->members);
}

static int read_list(struct reader *reader, const json_t *json, const struct run_member *member,
		     void *field)
{
	char *structure = (char *)field - member->offset, *elements;
	int err = check_array(reader, json, member->limit);
	size_t count = json_array_size(json);

	if (err || !count)
		return err;
	elements = calloc(count, member->members->size);
	if (!elements)
		return -ENOMEM;
	/* Zeroed elements are valid: the structure's owner frees them from here on. */
	*(char **)field = elements;
	*(size_t *)(structure + member->count_offset) = count;
	for (size_t i = 0; i < count && !err; i++) {
		size_t before = reader_enter(reader, "[%zu]", i);

		err = read_object(reader, json_array_get(json, i),
				  elements + i * member->members->size, member->members);
		reader_leave(reader, before);
	}
	return err;
}

static int read_value_of(struct reader *reader, const json_t *json, const struct run_member *member,
			 void *field)
{
	struct pairs statuses = {.counts = field, .count = member->size, .least = RUN_STATUS_LEAST};
	uint64_t value = 0;
	int err = 0;

	switch (member->kind) {
	case RUN_KIND_U64:
		return reader_integer(reader, json, INT64_MAX, field);
	case RUN_KIND_U32:
		err = reader_integer(reader, json, UINT32_MAX, &value);
		if (!err)
			*(uint32_t *)field = (uint32_t)value;
		return err;
	case RUN_KIND_U16:
		err = reader_integer(reader, json, UINT16_MAX, &value);
		if (!err)
			*(uint16_t *)field = (uint16_t)value;
		return err;
	case RUN_KIND_BOOL:
		if (!json_is_boolean(json))
			return reader_refuse(reader, json, "true or false");
		*(bool *)field = json_is_true(json);
		return 0;
	case RUN_KIND_NUMBER:
		return read_number(reader, json, field);
	case RUN_KIND_SIGNED:
		return read_signed(reader, json, field);
	case RUN_KIND_RATIO:
		return read_ratio(reader, json, field);
	case RUN_KIND_STRING:
		return read_string(reader, json, field);
	case RUN_KIND_TEXT:
		return read_text(reader, json, member, field);
	case RUN_KIND_STRINGS:
		return read_strings(reader, json, member, field);
	case RUN_KIND_COUNTERS:
	case RUN_KIND_NUMBERS:
	case RUN_KIND_STAGES:
		return read_named(reader, json, member, field);
	case RUN_KIND_STATUSES:
		return read_pairs(reader, json, &statuses);
	case RUN_KIND_HISTOGRAM:
		return read_histogram(reader, json, field);
	case RUN_KIND_OBJECT:
		return read_object(reader, json, field, member->members);
	case RUN_KIND_POINTER:
		return read_pointer(reader, json, member, field);
	case RUN_KIND_LIST:
		return read_list(reader, json, member, field);
	case RUN_KIND_SAMPLES:
		return run_samples_read(reader, json, field);
	default: /* SERIES */
		return run_series_read(reader, json, field);
	}
}

static int read_member(struct reader *reader, const json_t *json, void *structure,
		       const struct run_member *member)
{
	const json_t *value = json_object_get(json, member->name);
	size_t before;
	int err;

	if ((member->optional || member->sparse) && (!value || json_is_null(value)))
		return 0;
	before = reader_enter_member(reader, member->name);
	err = read_value_of(reader, value, member, (char *)structure + member->offset);
	reader_leave(reader, before);
	return err;
}

static int read_object(struct reader *reader, const json_t *json, void *structure,
		       const struct run_members *members)
{
	int err = 0;

	if (!json_is_object(json))
		return reader_refuse(reader, json, "an object");
	for (size_t i = 0; i < members->count && !err; i++)
		err = read_member(reader, json, structure, &members->list[i]);
	return err;
}

static int check_string(struct reader *reader, const json_t *json, const char *name,
			const char *expected)
{
	const json_t *value = json_object_get(json, name);
	size_t before = reader_enter_member(reader, name);
	int err = 0;

	if (!json_is_string(value) || strcmp(json_string_value(value), expected))
		err = reader_refuse(reader, value, "\"%s\"", expected);
	reader_leave(reader, before);
	return err;
}

static int check_integer(struct reader *reader, const json_t *json, const char *name,
			 json_int_t expected)
{
	const json_t *value = json_object_get(json, name);
	size_t before = reader_enter_member(reader, name);
	int err = 0;

	if (!json_is_integer(value) || json_integer_value(value) != expected)
		err = reader_refuse(reader, value, "%" JSON_INTEGER_FORMAT, expected);
	reader_leave(reader, before);
	return err;
}

/* Counts in another layout would silently mean other values. */
static int check_layout(struct reader *reader, const json_t *document)
{
	const json_t *layout = json_object_get(document, "buckets");
	size_t before = reader_enter_member(reader, "buckets");
	int err = json_is_object(layout) ? 0 : reader_refuse(reader, layout, "an object");

	if (!err)
		err = check_string(reader, layout, "layout", RUN_BUCKET_LAYOUT);
	if (!err)
		err = check_integer(reader, layout, "sub_bits", BUCKET_SUB_BITS);
	if (!err)
		err = check_integer(reader, layout, "value_bits", BUCKET_VALUE_BITS);
	reader_leave(reader, before);
	return err;
}

static int read_document(struct reader *reader, const json_t *document, struct run *run)
{
	int err;

	if (!json_is_object(document)) {
		reader_enter(reader, "document");
		return reader_refuse(reader, document, "an object");
	}
	err = check_string(reader, document, "schema", RUN_SCHEMA);
	if (!err)
		err = check_layout(reader, document);
	return err ? err : read_object(reader, document, run, &run_document_members);
}

int run_from_json(const char *text, size_t length, struct run **ret_run, char **ret_error)
{
	struct reader reader = {0};
	autojson json_t *document = NULL;
	autorun struct run *run = NULL;
	int err;

	err = reader_parse(text, length, &document, ret_error);
	if (err)
		return err;
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	err = read_document(&reader, document, run);
	if (err) {
		if (reader.error)
			*ret_error = reader.error;
		return err;
	}
	*ret_run = TAKE_PTR(run);
	return 0;
}
