// SPDX-License-Identifier: MIT
/* The run document as JSON text; run/members.c has its contents, read.c reads it. */
#include "sojourn/run.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "columns.h"
#include "print.h"
#include "run/members.h"
#include "sojourn/autojson.h"
#include "sojourn/text.h"

/* ---- values ---- */

/* Print @value by jansson, and free it. NULL means that there was no memory for it: -ENOMEM. */
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

static bool needs_escaping(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return true;
	return false;
}

static int print_bytes(const char *text, size_t length, FILE *file)
{
	if (needs_escaping(text, length))
		return print_value(json_from_text(text, length), file);
	print_char('"', file);
	fwrite_unlocked(text, 1, length, file);
	print_char('"', file);
	return 0;
}

static int print_null(FILE *file)
{
	print_plain("null", file);
	return 0;
}

static int print_number(const struct run_number *number, FILE *file)
{
	if (!number->known)
		return print_null(file);
	print_integer(number->value, file);
	return 0;
}

static int print_string(const char *string, FILE *file)
{
	return string ? print_bytes(string, strlen(string), file) : print_null(file);
}

static int print_strings(char *const *strings, FILE *file)
{
	int err = 0;

	if (!strings)
		return print_null(file);
	print_char('[', file);
	for (size_t i = 0; strings[i] && !err; i++) {
		if (i)
			print_char(',', file);
		err = print_string(strings[i], file);
	}
	print_char(']', file);
	return err;
}

/* [[index, count], …], without zeros; the first one has the index @least. */
static void print_pairs(const uint64_t *counts, size_t count, size_t least, FILE *file)
{
	const char *separator = "[";

	print_char('[', file);
	for (size_t i = 0; i < count; i++) {
		if (!counts[i])
			continue;
		print_plain(separator, file);
		print_integer(least + i, file);
		print_char(',', file);
		print_integer(counts[i], file);
		print_char(']', file);
		separator = ",[";
	}
	print_char(']', file);
}

/* ---- histograms ---- */

/* Use integers: a double cannot hold every sum. */
static uint64_t rounded_mean(const struct histogram *h)
{
	return h->sum / h->count + (h->sum % h->count >= h->count - h->sum % h->count);
}

/* Print a number that an empty histogram does not have. */
static void print_of(const struct histogram *h, const char *name, uint64_t value, FILE *file)
{
	print_name(",", name, file);
	if (h->count)
		print_integer(value, file);
	else
		print_plain("null", file);
}

/* Print values derived from the buckets, for readers that do not compute them. */
static void print_derived(const struct histogram *h, FILE *file)
{
	static const struct {
		const char *name;
		double quantile;
	} quantiles[] = {{"p50_ns", 0.5},    {"p90_ns", 0.9},	   {"p99_ns", 0.99},
			 {"p999_ns", 0.999}, {"p9999_ns", 0.9999}, {"p99999_ns", 0.99999}};

	print_of(h, "mean_ns", h->count ? rounded_mean(h) : 0, file);
	print_of(h, "stddev_ns", (uint64_t)(histogram_stddev(h) + 0.5), file);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		print_of(h, quantiles[i].name, histogram_quantile(h, quantiles[i].quantile), file);
}

/* Print the members of a histogram's object. */
static void print_histogram_members(const struct histogram *h, const char *separator, FILE *file)
{
	print_name(separator, "count", file);
	print_integer(h->count, file);
	print_name(",", "sum_ns", file);
	print_integer(h->sum, file);
	print_derived(h, file);
	print_of(h, "max_ns", h->max, file);
	print_name(",", "buckets", file);
	print_pairs(h->buckets, BUCKET_COUNT, 0, file);
}

static int print_stage(const struct run_stage *stage, FILE *file)
{
	int err;

	print_name("{", "measured", file);
	print_plain(stage->measured ? "true" : "false", file);
	print_name(",", "source", file);
	err = print_string(stage->source, file);
	print_name(",", "reason", file);
	if (!err)
		err = print_string(stage->reason, file);
	if (stage->measured)
		print_histogram_members(&stage->histogram, ",", file);
	print_char('}', file);
	return err;
}

/* Print an object with a member per name. */
static int print_named(const struct run_member *member, const void *field, FILE *file)
{
	int err = 0;

	print_char('{', file);
	for (size_t i = 0; i < member->size && !err; i++) {
		print_name(i ? "," : "", member->names[i], file);
		if (member->kind == RUN_KIND_STAGES)
			err = print_stage((const struct run_stage *)field + i, file);
		else if (member->kind == RUN_KIND_NUMBERS)
			err = print_number((const struct run_number *)field + i, file);
		else
			print_integer(((const uint64_t *)field)[i], file);
	}
	print_char('}', file);
	return err;
}

/* ---- structures ---- */

static int print_members(const void *structure, const struct run_members *members, FILE *file);

static int print_structure(const void *structure, const struct run_members *members, FILE *file)
{
	int err;

	print_char('{', file);
	err = print_members(structure, members, file);
	print_char('}', file);
	return err;
}

/*
 * Print up to @most elements of a list, the first of which is *@element. Return 1 if there are more.
 * @field is the list's pointer; its length lies elsewhere in the same structure.
 */
static int print_elements(const struct run_member *member, const void *field, size_t *element,
			  size_t most, FILE *file)
{
	const char *structure = (const char *)field - member->offset;
	const char *elements = *(char *const *)field;
	size_t count = *(const size_t *)(structure + member->count_offset);
	int err = 0;

	for (; *element < count && most-- && !err; (*element)++) {
		print_char(*element ? ',' : '[', file);
		err = print_structure(elements + *element * member->members->size, member->members,
				      file);
	}
	if (err || *element < count)
		return err ? err : 1;
	print_plain(count ? "]" : "[]", file);
	return 0;
}

static int print_pointed(const struct run_member *member, const void *pointed, FILE *file)
{
	if (!pointed)
		return print_null(file);
	if (member->kind == RUN_KIND_SAMPLES)
		return run_samples_print(pointed, file);
	if (member->kind == RUN_KIND_POINTER)
		return print_structure(pointed, member->members, file);
	run_series_print(pointed, file);
	return 0;
}

static int print_member(const struct run_member *member, const void *field, FILE *file)
{
	const struct run_signed *integer = field;
	const struct run_ratio *ratio = field;
	size_t element = 0;

	switch (member->kind) {
	case RUN_KIND_U64:
		print_integer(*(const uint64_t *)field, file);
		break;
	case RUN_KIND_U32:
		print_integer(*(const uint32_t *)field, file);
		break;
	case RUN_KIND_U16:
		print_integer(*(const uint16_t *)field, file);
		break;
	case RUN_KIND_BOOL:
		print_plain(*(const bool *)field ? "true" : "false", file);
		break;
	case RUN_KIND_NUMBER:
		return print_number(field, file);
	case RUN_KIND_SIGNED:
		return integer->known ? print_value(json_integer(integer->value), file)
				      : print_null(file);
	case RUN_KIND_RATIO:
		return ratio->known ? print_value(json_real(ratio->value), file) : print_null(file);
	case RUN_KIND_STRING:
		return print_string(*(char *const *)field, file);
	case RUN_KIND_TEXT:
		return print_bytes(field, strnlen(field, member->size), file);
	case RUN_KIND_STRINGS:
		return print_strings(*(char **const *)field, file);
	case RUN_KIND_COUNTERS:
	case RUN_KIND_NUMBERS:
	case RUN_KIND_STAGES:
		return print_named(member, field, file);
	case RUN_KIND_STATUSES:
		print_pairs(field, member->size, RUN_STATUS_LEAST, file);
		break;
	case RUN_KIND_HISTOGRAM:
		print_histogram_members(field, "{", file);
		print_char('}', file);
		break;
	case RUN_KIND_OBJECT:
		return print_structure(field, member->members, file);
	case RUN_KIND_LIST:
		return print_elements(member, field, &element, SIZE_MAX, file);
	default: /* POINTER, SAMPLES, SERIES */
		return print_pointed(member, *(void *const *)field, file);
	}
	return 0;
}

static bool is_empty(const struct run_member *member, const void *field)
{
	const struct run_members *inner = member->kind == RUN_KIND_OBJECT ? member->members : NULL;

	for (size_t i = 0; inner && i < inner->count; i++)
		if (inner->list[i].kind == RUN_KIND_U64 &&
		    *(const uint64_t *)((const char *)field + inner->list[i].offset))
			return false;
	return member->kind == RUN_KIND_TEXT ? !*(const char *)field : !*(void *const *)field;
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
		print_name(separator, member->name, file);
		err = print_member(member, field, file);
		separator = ",";
	}
	return err;
}

static int print_begin(FILE *file)
{
	print_name("{", "schema", file);
	print_char('"', file);
	print_plain(RUN_SCHEMA, file);
	print_plain("\",\"buckets\":", file);
	return print_value(json_pack("{s:s, s:i, s:i}", "layout", RUN_BUCKET_LAYOUT, "sub_bits",
				     BUCKET_SUB_BITS, "value_bits", BUCKET_VALUE_BITS),
			   file);
}

static int print_end(FILE *file)
{
	print_plain("}\n", file);
	if (fflush(file))
		return errno ? -errno : -EIO;
	return ferror(file) ? -EIO : 0;
}

/* Print a member of the document. Return 1 if its list has more than @most elements, which are printed later. */
static int print_document_member(struct run_printing *printing, const struct run_member *member,
				 size_t most)
{
	const void *field = (const char *)printing->run + member->offset;

	if (member->sparse && is_empty(member, field))
		return 0;
	if (!printing->element)
		print_name(",", member->name, printing->file);
	if (member->kind != RUN_KIND_LIST)
		return print_member(member, field, printing->file);
	return print_elements(member, field, &printing->element, most, printing->file);
}

int run_print_part(struct run_printing *printing, size_t most)
{
	int r = printing->begun ? 0 : print_begin(printing->file);

	printing->begun = true;
	while (!r && printing->member < run_document_members.count) {
		r = print_document_member(printing, &run_document_members.list[printing->member],
					  most);
		if (!r) {
			printing->member++;
			printing->element = 0;
		}
	}
	return r ? r : print_end(printing->file);
}

int run_print_json(const struct run *run, FILE *file)
{
	struct run_printing printing = {.run = run, .file = file};

	return run_print_part(&printing, SIZE_MAX);
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
