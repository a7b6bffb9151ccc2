/* SPDX-License-Identifier: MIT */
/* The run document as JSON text; run/members.c has its contents, read.c reads it. */
#include "sojourn/run.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "columns.h"
#include "run/members.h"
#include "sojourn/autojson.h"
#include "sojourn/text.h"

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

static json_t *write_signed(const struct run_member *member, const void *field)
{
	const struct run_signed *number = field;

	(void)member;
	return number->known ? json_integer(number->value) : json_null();
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

/* [[index, count], …], without zeros; the first one has the index @least. */
static json_t *write_pairs(const uint64_t *counts, size_t count, size_t least)
{
	autojson json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		json_t *pair;

		if (!counts[i])
			continue;
		pair = json_pack("[I, o]", (json_int_t)least + (json_int_t)i,
				 json_from_u64(counts[i]));
		if (json_array_append_new(array, pair))
			return NULL;
	}
	return TAKE_PTR(array);
}

static json_t *write_statuses(const struct run_member *member, const void *field)
{
	return write_pairs(field, member->size, RUN_STATUS_LEAST);
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
	return json_object_set_new(object, "buckets", write_pairs(h->buckets, BUCKET_COUNT, 0))
		       ? -ENOMEM
		       : 0;
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

static json_t *write_series(const struct run_member *member, const void *field)
{
	const struct run_series *series = *(struct run_series *const *)field;

	(void)member;
	return series ? run_series_write(series) : json_null();
}

/* Functions per kind. Samples and kinds with members are printed without a JSON tree. */
static json_t *(*const writers[RUN_KIND_COUNT])(const struct run_member *, const void *) = {
	[RUN_KIND_U64] = write_u64,	      [RUN_KIND_U32] = write_u32,
	[RUN_KIND_U16] = write_u16,	      [RUN_KIND_BOOL] = write_bool,
	[RUN_KIND_SIGNED] = write_signed,     [RUN_KIND_RATIO] = write_ratio,
	[RUN_KIND_NUMBER] = write_number,     [RUN_KIND_STRING] = write_string,
	[RUN_KIND_TEXT] = write_text,	      [RUN_KIND_STRINGS] = write_strings,
	[RUN_KIND_COUNTERS] = write_counters, [RUN_KIND_HISTOGRAM] = write_histogram,
	[RUN_KIND_STAGES] = write_stages,     [RUN_KIND_SERIES] = write_series,
	[RUN_KIND_NUMBERS] = write_numbers,   [RUN_KIND_STATUSES] = write_statuses,
};

static bool is_empty(const struct run_member *member, const void *field)
{
	return member->kind == RUN_KIND_TEXT ? !*(const char *)field : !*(void *const *)field;
}

static int print_members(const void *structure, const struct run_members *members, FILE *file);

/* Print @value and free it. NULL means that there was no memory for it: -ENOMEM. */
static int print_value(json_t *value, FILE *file)
{
	autojson json_t *json = value;

	if (!json)
		return -ENOMEM;
	errno = 0;
	if (json_dumpf(json, file, JSON_COMPACT | JSON_ENCODE_ANY))
		return errno ? -errno : -EIO;
	return 0;
}

static int print_object(const void *structure, const struct run_members *members, FILE *file)
{
	int err;

	fputc('{', file);
	err = print_members(structure, members, file);
	fputc('}', file);
	return err;
}

/* @field is the list's pointer; its length lies elsewhere in the same structure. */
static int print_list(const struct run_member *member, const void *field, FILE *file)
{
	const char *structure = (const char *)field - member->offset;
	const char *elements = *(char *const *)field;
	size_t count = *(const size_t *)(structure + member->count_offset);
	int err = 0;

	fputc('[', file);
	for (size_t i = 0; i < count && !err; i++) {
		if (i)
			fputc(',', file);
		err = print_object(elements + i * member->members->size, member->members, file);
	}
	fputc(']', file);
	return err;
}

static int print_member(const struct run_member *member, const void *field, FILE *file)
{
	if (member->kind == RUN_KIND_LIST)
		return print_list(member, field, file);
	if (member->kind == RUN_KIND_POINTER || member->kind == RUN_KIND_SAMPLES)
		field = *(void *const *)field;
	else if (member->kind != RUN_KIND_OBJECT)
		return print_value(writers[member->kind](member, field), file);
	if (!field)
		return print_value(json_null(), file);
	return member->kind == RUN_KIND_SAMPLES ? run_samples_print(field, file)
						: print_object(field, member->members, file);
}

static int print_members(const void *structure, const struct run_members *members, FILE *file)
{
	const char *separator = "";
	int err = 0;

	for (size_t i = 0; i < members->count && !err; i++) {
		const struct run_member *member = &members->list[i];
		const void *field = (const char *)structure + member->offset;

		if (member->sparse && is_empty(member, field))
			continue;
		fprintf(file, "%s\"%s\":", separator, member->name);
		err = print_member(member, field, file);
		separator = ",";
	}
	return err;
}

int run_print_json(const struct run *run, FILE *file)
{
	int err;

	fprintf(file, "{\"schema\":\"%s\",\"buckets\":", RUN_SCHEMA);
	err = print_value(json_pack("{s:s, s:i, s:i}", "layout", RUN_BUCKET_LAYOUT, "sub_bits",
				    BUCKET_SUB_BITS, "value_bits", BUCKET_VALUE_BITS),
			  file);
	fputc(',', file);
	if (!err)
		err = print_members(run, &run_document_members, file);
	fputs("}\n", file);
	if (fflush(file) && !err)
		err = errno ? -errno : -EIO;
	return err ? err : ferror(file) ? -EIO : 0;
}

char *run_to_json(const struct run *run)
{
	autofree char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int err = file ? run_print_json(run, file) : -ENOMEM;

	if (file && fclose(file))
		err = -ENOMEM;
	return err ? NULL : TAKE_PTR(text);
}
