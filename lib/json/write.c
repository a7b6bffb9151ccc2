/* SPDX-License-Identifier: MIT */
/* The run document as JSON text; run/members.c has its contents, read.c reads it. */
#include "sojourn/run.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "columns.h"
#include "run/members.h"
#include "sojourn/text.h"

DEFINE_CLEANUP(json_t *, json_decref)
#define autojson CLEANUP(cleanup_json_decref)

static json_t *write_object(const void *object, const struct run_members *members);

/* Most JSON readers use 64 signed bits for integers: that is the document's range. */
static json_t *json_from_u64(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* A process may have any name, UTF-8 or not. */
static json_t *json_from_text(const char *text, size_t length)
{
	json_t *json = json_stringn(text, length);
	autofree char *copy = NULL;

	if (json)
		return json;
	copy = strndup(text, length);
	if (!copy)
		return NULL;
	text_make_utf8(copy);
	return json_string(copy);
}

static json_t *write_u64(const struct run_member *member, const void *field)
{
	(void)member;
	return json_from_u64(*(const uint64_t *)field);
}

static json_t *write_u32(const struct run_member *member, const void *field)
{
	(void)member;
	return json_from_u64(*(const uint32_t *)field);
}

static json_t *write_u16(const struct run_member *member, const void *field)
{
	(void)member;
	return json_from_u64(*(const uint16_t *)field);
}

static json_t *write_bool(const struct run_member *member, const void *field)
{
	(void)member;
	return json_boolean(*(const bool *)field);
}

static json_t *write_number(const struct run_member *member, const void *field)
{
	const struct run_number *number = field;

	(void)member;
	return number->known ? json_from_u64(number->value) : json_null();
}

static json_t *write_ratio(const struct run_member *member, const void *field)
{
	const struct run_ratio *ratio = field;

	(void)member;
	return ratio->known ? json_real(ratio->value) : json_null();
}

static json_t *write_string(const struct run_member *member, const void *field)
{
	const char *string = *(char *const *)field;

	(void)member;
	return string ? json_from_text(string, strlen(string)) : json_null();
}

static json_t *write_text(const struct run_member *member, const void *field)
{
	return json_from_text(field, strnlen(field, member->size));
}

static json_t *write_strings(const struct run_member *member, const void *field)
{
	char *const *strings = *(char **const *)field;
	autojson json_t *array = NULL;

	(void)member;
	if (!strings)
		return json_null();
	array = json_array();
	for (; *strings; strings++)
		if (json_array_append_new(array, json_from_text(*strings, strlen(*strings))))
			return NULL;
	return TAKE_PTR(array);
}

static json_t *write_counters(const struct run_member *member, const void *field)
{
	autojson json_t *object = json_object();
	const uint64_t *counters = field;

	for (size_t i = 0; i < member->size; i++)
		if (json_object_set_new(object, member->names[i], json_from_u64(counters[i])))
			return NULL;
	return TAKE_PTR(object);
}

static json_t *write_numbers(const struct run_member *member, const void *field)
{
	autojson json_t *object = json_object();
	const struct run_number *numbers = field;

	for (size_t i = 0; i < member->size; i++)
		if (json_object_set_new(object, member->names[i], write_number(NULL, &numbers[i])))
			return NULL;
	return TAKE_PTR(object);
}

static json_t *write_buckets(const struct histogram *h)
{
	autojson json_t *array = json_array();

	for (unsigned int i = 0; i < BUCKET_COUNT; i++) {
		json_t *pair;

		if (!h->buckets[i])
			continue;
		pair = json_pack("[i, o]", (int)i, json_from_u64(h->buckets[i]));
		if (json_array_append_new(array, pair))
			return NULL;
	}
	return TAKE_PTR(array);
}

/* Use integers: a double cannot hold every sum. */
static uint64_t rounded_mean(const struct histogram *h)
{
	return h->sum / h->count + (h->sum % h->count >= h->count - h->sum % h->count);
}

/* Write values derived from the buckets, for readers that do not compute them. */
static int write_derived(json_t *object, const struct histogram *h)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {{"p50_ns", 0.5},    {"p90_ns", 0.9},	   {"p99_ns", 0.99},
			 {"p999_ns", 0.999}, {"p9999_ns", 0.9999}, {"p99999_ns", 0.99999}};
	uint64_t stddev = (uint64_t)(histogram_stddev(h) + 0.5);
	int err = json_object_set_new(object, "mean_ns",
				      h->count ? json_from_u64(rounded_mean(h)) : json_null());

	if (!err)
		err = json_object_set_new(object, "stddev_ns",
					  h->count ? json_from_u64(stddev) : json_null());
	for (size_t i = 0; i < ARRAY_SIZE(quantiles) && !err; i++) {
		uint64_t value = histogram_quantile(h, quantiles[i].quantile);

		err = json_object_set_new(object, quantiles[i].name,
					  h->count ? json_from_u64(value) : json_null());
	}
	return err;
}

static int write_histogram_into(json_t *object, const struct histogram *h)
{
	if (json_object_set_new(object, "count", json_from_u64(h->count)) ||
	    json_object_set_new(object, "sum_ns", json_from_u64(h->sum)) ||
	    write_derived(object, h) ||
	    json_object_set_new(object, "max_ns", h->count ? json_from_u64(h->max) : json_null()))
		return -ENOMEM;
	return json_object_set_new(object, "buckets", write_buckets(h)) ? -ENOMEM : 0;
}

static json_t *write_histogram(const struct run_member *member, const void *field)
{
	autojson json_t *object = json_object();

	(void)member;
	return write_histogram_into(object, field) ? NULL : TAKE_PTR(object);
}

static json_t *write_stage(const struct run_stage *stage)
{
	autojson json_t *object = json_object();

	if (json_object_set_new(object, "measured", json_boolean(stage->measured)))
		return NULL;
	if (json_object_set_new(object, "source", write_string(NULL, &stage->source)) ||
	    json_object_set_new(object, "reason", write_string(NULL, &stage->reason)))
		return NULL;
	if (stage->measured && write_histogram_into(object, &stage->histogram))
		return NULL;
	return TAKE_PTR(object);
}

static json_t *write_stages(const struct run_member *member, const void *field)
{
	const struct run_stage *stages = field;
	autojson json_t *object = json_object();

	for (size_t i = 0; i < member->size; i++)
		if (json_object_set_new(object, member->names[i], write_stage(&stages[i])))
			return NULL;
	return TAKE_PTR(object);
}

static json_t *write_embedded(const struct run_member *member, const void *field)
{
	return write_object(field, member->members);
}

static json_t *write_pointer(const struct run_member *member, const void *field)
{
	const void *object = *(void *const *)field;

	return object ? write_object(object, member->members) : json_null();
}

/* @field is the list's pointer; its length is elsewhere in the structure. */
static json_t *write_list(const struct run_member *member, const void *field)
{
	const char *structure = (const char *)field - member->offset;
	const char *elements = *(char *const *)field;
	size_t count = *(const size_t *)(structure + member->count_offset);
	autojson json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		const void *element = elements + i * member->members->size;

		if (json_array_append_new(array, write_object(element, member->members)))
			return NULL;
	}
	return TAKE_PTR(array);
}

static json_t *write_series(const struct run_member *member, const void *field)
{
	const struct run_series *series = *(struct run_series *const *)field;

	(void)member;
	return series ? run_series_write(series) : json_null();
}

static json_t *write_samples(const struct run_member *member, const void *field)
{
	const struct run_samples *samples = *(struct run_samples *const *)field;

	(void)member;
	return samples ? run_samples_write(samples) : json_null();
}

static json_t *(*const writers[RUN_KIND_COUNT])(const struct run_member *, const void *) = {
	[RUN_KIND_U64] = write_u64,
	[RUN_KIND_U32] = write_u32,
	[RUN_KIND_U16] = write_u16,
	[RUN_KIND_BOOL] = write_bool,
	[RUN_KIND_RATIO] = write_ratio,
	[RUN_KIND_NUMBER] = write_number,
	[RUN_KIND_STRING] = write_string,
	[RUN_KIND_TEXT] = write_text,
	[RUN_KIND_STRINGS] = write_strings,
	[RUN_KIND_COUNTERS] = write_counters,
	[RUN_KIND_HISTOGRAM] = write_histogram,
	[RUN_KIND_STAGES] = write_stages,
	[RUN_KIND_OBJECT] = write_embedded,
	[RUN_KIND_POINTER] = write_pointer,
	[RUN_KIND_LIST] = write_list,
	[RUN_KIND_SAMPLES] = write_samples,
	[RUN_KIND_SERIES] = write_series,
	[RUN_KIND_NUMBERS] = write_numbers,
};

static bool is_empty(const struct run_member *member, const void *field)
{
	return member->kind == RUN_KIND_TEXT ? !*(const char *)field : !*(void *const *)field;
}

static int write_members(json_t *object, const void *structure, const struct run_members *members)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct run_member *member = &members->list[i];
		const void *field = (const char *)structure + member->offset;

		if (member->sparse && is_empty(member, field))
			continue;
		if (json_object_set_new(object, member->name, writers[member->kind](member, field)))
			return -ENOMEM;
	}
	return 0;
}

static json_t *write_object(const void *structure, const struct run_members *members)
{
	autojson json_t *object = json_object();

	return write_members(object, structure, members) ? NULL : TAKE_PTR(object);
}

char *run_to_json(const struct run *run)
{
	autojson json_t *document = json_object();
	autofree char *json = NULL;
	char *text;

	if (json_object_set_new(document, "schema", json_string(RUN_SCHEMA)) ||
	    json_object_set_new(document, "buckets",
				json_pack("{s:s, s:i, s:i}", "layout", RUN_BUCKET_LAYOUT,
					  "sub_bits", BUCKET_SUB_BITS, "value_bits",
					  BUCKET_VALUE_BITS)) ||
	    write_members(document, run, &run_document_members))
		return NULL;
	json = json_dumps(document, JSON_COMPACT);
	if (!json || asprintf(&text, "%s\n", json) < 0)
		return NULL;
	return text;
}
