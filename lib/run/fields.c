// SPDX-License-Identifier: MIT
/*
 * Operations on the members of a structure, by its table: free, subtract and add readings, merge
 * documents. See members.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "members.h"
#include "merge.h"
#include "samples.h"
#include "sojourn/finding.h"
#include "sojourn/refuse.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"
#include "sojourn/text.h"

/* ---- lists of texts ---- */

char **run_strings_copy(char *const *strings)
{
	size_t count = 0;
	char **copy;

	while (strings[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (!copy)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		copy[i] = strdup(strings[i]);
		if (!copy[i]) {
			run_strings_free(copy);
			return NULL;
		}
	}
	return copy;
}

void run_strings_free(char **strings)
{
	for (char **string = strings; string && *string; string++)
		free(*string);
	free(strings);
}

/* ---- free ---- */

void members_free_list(const struct run_members *members, void *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		members_free(members, (char *)list + i * members->size);
	free(list);
}

void members_free(const struct run_members *members, void *structure)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct run_member *member = &members->list[i];
		void *field = (char *)structure + member->offset, **pointer = field;
		struct run_stage *stages = field;
		size_t *count;

		switch (member->kind) {
		case RUN_KIND_OBJECT:
			members_free(member->members, field);
			break;
		case RUN_KIND_STAGES:
			for (size_t stage = 0; stage < member->size; stage++) {
				free(TAKE_PTR(stages[stage].source));
				free(TAKE_PTR(stages[stage].reason));
			}
			break;
		case RUN_KIND_STRING:
			free(TAKE_PTR(*pointer));
			break;
		case RUN_KIND_STRINGS:
			run_strings_free(TAKE_PTR(*pointer));
			break;
		case RUN_KIND_SAMPLES:
			run_samples_free(TAKE_PTR(*pointer));
			break;
		case RUN_KIND_SERIES:
			run_series_free(TAKE_PTR(*pointer));
			break;
		case RUN_KIND_POINTER:
			members_free_list(member->members, *pointer, *pointer != NULL);
			*pointer = NULL;
			break;
		case RUN_KIND_LIST:
			count = (size_t *)((char *)structure + member->count_offset);
			members_free_list(member->members, TAKE_PTR(*pointer), *count);
			*count = 0;
			break;
		default:
			break;
		}
	}
}

/* ---- readings: difference and sum ---- */

static size_t counts_of(const struct run_member *member)
{
	return member->size ? member->size : 1;
}

/* A counter only grows. One that fell belongs to another object: return 0 instead of 2^64. */
static void subtract_counts(uint64_t *counts, const uint64_t *earlier, size_t count)
{
	for (size_t i = 0; i < count; i++)
		counts[i] = counts[i] > earlier[i] ? counts[i] - earlier[i] : 0;
}

/* Without a number at the start, the period's is not known. */
static void subtract_number(struct run_number *number, const struct run_number *earlier)
{
	if (number->known && earlier->known)
		subtract_counts(&number->value, &earlier->value, 1);
	else
		*number = (struct run_number){0};
}

static void subtract_stages(struct run_stage *stages, const struct run_stage *earlier, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (stages[i].measured && earlier[i].measured)
			histogram_subtract(&stages[i].histogram, &earlier[i].histogram);
}

/* A sum is known if both parts are. */
static void add_number(struct run_number *number, const struct run_number *other)
{
	number->known = number->known && other->known;
	number->value += other->value;
}

/* A sum without a part would look whole: a stage is measured only if it always was. */
static void add_stages(struct run_stage *stages, struct run_stage *others, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct run_stage *stage = &stages[i], *other = &others[i];

		if (stage->measured && other->measured) {
			histogram_add(&stage->histogram, &other->histogram);
			continue;
		}
		if (stage->measured) {
			free(stage->reason);
			stage->reason = TAKE_PTR(other->reason);
		}
		stage->measured = false;
		stage->histogram = (struct histogram){0};
	}
}

/* A list that counts has the same elements in all readings of one observation. */
struct counting {
	char *first;
	size_t count;
};

static struct counting counting_list(const struct run_member *member, const void *structure)
{
	const char *base = structure;

	return (struct counting){
		*(char *const *)(base + member->offset),
		*(const size_t *)(base + member->count_offset),
	};
}

static void subtract_list(const struct run_member *member, void *structure, const void *earlier)
{
	struct counting list = counting_list(member, structure);
	struct counting before = counting_list(member, earlier);

	for (size_t i = 0; i < list.count && i < before.count; i++)
		members_subtract(member->members, list.first + i * member->members->size,
				 before.first + i * member->members->size);
}

/* Return whether the elements have the same names, which are their first members. */
static bool same_list(const struct run_member *member, struct counting a, struct counting b)
{
	size_t size = member->members->size;
	bool same = a.count == b.count;

	for (size_t i = 0; same && i < a.count; i++) {
		const char *name = *(char *const *)(a.first + i * size);
		const char *other = *(char *const *)(b.first + i * size);

		same = text_same(name, other);
	}
	return same;
}

/* Another observation may have had other elements. Sums of both would mean nothing: there are none. */
static void add_list(const struct run_member *member, void *structure, void *other)
{
	struct counting list = counting_list(member, structure);
	struct counting added = counting_list(member, other);
	size_t size = member->members->size;

	if (same_list(member, list, added)) {
		for (size_t i = 0; i < list.count; i++)
			members_add(member->members, list.first + i * size, added.first + i * size);
		return;
	}
	members_free_list(member->members, list.first, list.count);
	*(void **)((char *)structure + member->offset) = NULL;
	*(size_t *)((char *)structure + member->count_offset) = 0;
}

void members_subtract(const struct run_members *members, void *structure, const void *earlier)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct run_member *member = &members->list[i];
		void *field = (char *)structure + member->offset;
		const void *before = (const char *)earlier + member->offset;

		if (member->kind == RUN_KIND_OBJECT)
			members_subtract(member->members, field, before);
		else if (!member->counts)
			continue;
		else if (member->kind == RUN_KIND_NUMBER)
			subtract_number(field, before);
		else if (member->kind == RUN_KIND_STAGES)
			subtract_stages(field, before, member->size);
		else if (member->kind == RUN_KIND_LIST)
			subtract_list(member, structure, earlier);
		else if (member->kind == RUN_KIND_HISTOGRAM)
			histogram_subtract(field, before);
		else /* U64, COUNTERS, STATUSES */
			subtract_counts(field, before, counts_of(member));
	}
}

static bool counts_are_zero(const uint64_t *counts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (counts[i])
			return false;
	}
	return true;
}

static bool stages_are_zero(const struct run_stage *stages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (stages[i].histogram.count)
			return false;
	}
	return true;
}

static bool list_is_zero(const struct run_member *member, const void *structure)
{
	struct counting list = counting_list(member, structure);
	bool zero = true;

	for (size_t i = 0; zero && i < list.count; i++)
		zero = members_are_zero(member->members, list.first + i * member->members->size);
	return zero;
}

static bool member_is_zero(const struct run_member *member, const void *structure)
{
	const void *field = (const char *)structure + member->offset;
	const struct run_number *number = field;

	switch (member->kind) {
	case RUN_KIND_NUMBER: /* subtracting an unknown number makes the difference unknown */
		return number->known ? !number->value : member->lasting;
	case RUN_KIND_STAGES:
		return stages_are_zero(field, member->size);
	case RUN_KIND_LIST:
		return list_is_zero(member, structure);
	case RUN_KIND_HISTOGRAM:
		return !((const struct histogram *)field)->count;
	default: /* U64, COUNTERS, STATUSES */
		return counts_are_zero(field, counts_of(member));
	}
}

bool members_are_zero(const struct run_members *members, const void *structure)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct run_member *member = &members->list[i];
		const void *field = (const char *)structure + member->offset;

		if (member->kind == RUN_KIND_OBJECT && !members_are_zero(member->members, field))
			return false;
		if (member->counts && !member_is_zero(member, structure))
			return false;
	}
	return true;
}

void members_add(const struct run_members *members, void *structure, void *other)
{
	for (size_t i = 0; i < members->count; i++) {
		const struct run_member *member = &members->list[i];
		void *field = (char *)structure + member->offset;
		void *added = (char *)other + member->offset;

		if (member->kind == RUN_KIND_OBJECT)
			members_add(member->members, field, added);
		else if (!member->counts)
			continue;
		else if (member->kind == RUN_KIND_NUMBER)
			add_number(field, added);
		else if (member->kind == RUN_KIND_STAGES)
			add_stages(field, added, member->size);
		else if (member->kind == RUN_KIND_LIST)
			add_list(member, structure, other);
		else if (member->kind == RUN_KIND_HISTOGRAM)
			histogram_add(field, added);
		else /* U64, COUNTERS, STATUSES */
			run_counts_add(field, added, counts_of(member));
	}
}

/* ---- merging documents ---- */

int merge_copy(char **field, const char *value)
{
	char *copy;

	if (*field || !value)
		return 0;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	*field = copy;
	return 0;
}

int merge_list(void *list, size_t *count, const void *others, size_t *other_count, size_t size)
{
	void **first = list;
	char *all = reallocarray(*first, *count + *other_count, size);

	if (!all)
		return -ENOMEM;
	memcpy(all + *count * size, others, *other_count * size);
	*first = all;
	*count += *other_count;
	*other_count = 0;
	return 0;
}

void merge_label(char **field, const char *other)
{
	if (text_same(*field, other))
		return;
	free(*field);
	*field = NULL;
}

struct merging {
	const struct run_member *member;
	char **ret_error;
};

static int merge_numbers(const struct merging *merging, uint64_t a, uint64_t b, uint64_t max,
			 uint64_t *ret_value)
{
	enum run_merging how = merging->member->merging;

	if (how == RUN_MERGING_SAME && a != b)
		return refuse(merging->ret_error,
			      "driver.%s: %" PRIu64 " and %" PRIu64 " cannot be merged",
			      merging->member->name, a, b);
	if (how == RUN_MERGING_BY_KIND && (a > max || b > max - a))
		return refuse(merging->ret_error,
			      "driver.%s: the sum of %" PRIu64 " and %" PRIu64 " is above %" PRIu64,
			      merging->member->name, a, b, max);
	if (how == RUN_MERGING_BY_KIND)
		*ret_value = a + b;
	else
		*ret_value = a > b ? a : b;
	return 0;
}

static int merge_u64(const struct merging *merging, void *field, const void *other)
{
	uint64_t *value = field;

	return merge_numbers(merging, *value, *(const uint64_t *)other, INT64_MAX, value);
}

static int merge_u32(const struct merging *merging, void *field, const void *other)
{
	uint64_t sum = 0;
	int err = merge_numbers(merging, *(uint32_t *)field, *(const uint32_t *)other, UINT32_MAX,
				&sum);

	if (!err)
		*(uint32_t *)field = (uint32_t)sum;
	return err;
}

/* A sum with an unknown part is not known. */
static int merge_number(const struct merging *merging, void *field, const void *other)
{
	const struct run_number *another = other;
	struct run_number *number = field;

	if (number->known && another->known)
		return merge_u64(merging, &number->value, &another->value);
	*number = (struct run_number){0};
	return 0;
}

static int merge_bool(const struct merging *merging, void *field, const void *other)
{
	if (*(bool *)field == *(const bool *)other)
		return 0;
	return refuse(merging->ret_error, "driver.%s: true and false cannot be merged",
		      merging->member->name);
}

static int merge_string(const struct merging *merging, void *field, const void *other)
{
	const char *text = *(char *const *)other;
	char **string = field;

	if (merging->member->merging == RUN_MERGING_FIRST)
		return merge_copy(string, text);
	if (merging->member->merging == RUN_MERGING_SAME && !text_same(*string, text))
		return refuse(merging->ret_error, "driver.%s: '%s' and '%s' cannot be merged",
			      merging->member->name, *string ? *string : "(unknown)",
			      text ? text : "(unknown)");
	merge_label(string, text);
	return 0;
}

static int merge_counters(const struct merging *merging, void *field, const void *other)
{
	const uint64_t *others = other;
	uint64_t *counters = field;
	int err = 0;

	for (size_t i = 0; i < merging->member->size && !err; i++)
		err = merge_u64(merging, &counters[i], &others[i]);
	return err;
}

static int merge_histogram(const struct merging *merging, void *field, const void *other)
{
	const struct histogram *h = other;
	struct histogram *sum = field;

	if (sum->count > INT64_MAX - h->count || sum->sum > INT64_MAX - h->sum)
		return refuse(merging->ret_error, "driver.%s: the sum is above 2^63 - 1",
			      merging->member->name);
	histogram_add(sum, h);
	return 0;
}

/* One side's samples would look complete: drop them. */
static int merge_samples(const struct merging *merging, void *field, const void *other)
{
	struct run_samples *const *others = other;
	struct run_samples **samples = field;

	(void)merging;
	if (*samples && *others)
		return run_samples_add(*samples, *others);
	run_samples_free(TAKE_PTR(*samples));
	return 0;
}

static int (*const mergers[RUN_KIND_COUNT])(const struct merging *, void *, const void *) = {
	[RUN_KIND_U64] = merge_u64,	      [RUN_KIND_U32] = merge_u32,
	[RUN_KIND_BOOL] = merge_bool,	      [RUN_KIND_STRING] = merge_string,
	[RUN_KIND_COUNTERS] = merge_counters, [RUN_KIND_HISTOGRAM] = merge_histogram,
	[RUN_KIND_SAMPLES] = merge_samples,   [RUN_KIND_NUMBER] = merge_number,
};

int merge_members(const struct run_members *members, void *structure, const void *other,
		  char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < members->count && !err; i++) {
		const struct run_member *member = &members->list[i];
		const struct merging merging = {member, ret_error};

		if (member->merging == RUN_MERGING_OWN)
			continue;
		if (!mergers[member->kind])
			return refuse(ret_error, "driver.%s: cannot be merged", member->name);
		err = mergers[member->kind](&merging, (char *)structure + member->offset,
					    (const char *)other + member->offset);
	}
	return err;
}
