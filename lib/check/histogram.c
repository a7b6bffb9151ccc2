// SPDX-License-Identifier: MIT
/*
 * Rules about every histogram of a run document, by the table of members. A period's histogram is
 * the difference of two readings: count and sum are exact, the maximum only to its bucket. While
 * the service works, a value may be in the sum and not yet in the buckets, or vice versa.
 */
#include "rules.h"

#include <inttypes.h>
#include <stdio.h>

#include "run/members.h"
#include "sojourn/run_sum.h"

static void visit_members(struct checking *checking, const char *place,
			  const struct run_members *members, const void *structure);

static void name_place(const char *place, const char *name, char ret_place[static CHECK_PLACE])
{
	snprintf(ret_place, CHECK_PLACE, "%.*s%s%.31s", CHECK_PLACE - 34, place, *place ? "." : "",
		 name);
}

static void visit_stages(struct checking *checking, const char *place,
			 const struct run_member *member, const struct run_stage *stages)
{
	char name[CHECK_PLACE];

	for (size_t i = 0; i < member->size; i++) {
		if (!stages[i].measured)
			continue;
		name_place(place, member->names[i], name);
		checking->of_histogram(checking, name, &stages[i].histogram);
	}
}

/* Services are named by their ports. */
static void name_element(const struct run_member *member, const void *element, size_t index,
			 const char *place, char ret_place[static CHECK_PLACE])
{
	if (member->members == &run_service_members)
		check_place_of(element, ret_place);
	else
		snprintf(ret_place, CHECK_PLACE, "%.*s[%zu]", CHECK_PLACE - 32, place, index);
}

static void visit_list(struct checking *checking, const char *place,
		       const struct run_member *member, const void *structure, const char *list)
{
	size_t count = *(const size_t *)((const char *)structure + member->count_offset);
	char name[CHECK_PLACE];

	for (size_t i = 0; i < count; i++) {
		const char *element = list + i * member->members->size;

		name_element(member, element, i, place, name);
		checking->apart = member->members == &run_service_members
					  ? check_moving((const void *)element).exchanges
					  : 0;
		visit_members(checking, name, member->members, element);
		checking->apart = 0;
	}
}

static void visit_member(struct checking *checking, const char *place,
			 const struct run_member *member, const void *structure)
{
	const void *field = (const char *)structure + member->offset;
	const void *pointed;

	switch (member->kind) {
	case RUN_KIND_HISTOGRAM:
		checking->of_histogram(checking, place, field);
		break;
	case RUN_KIND_STAGES:
		visit_stages(checking, place, member, field);
		break;
	case RUN_KIND_OBJECT:
		visit_members(checking, place, member->members, field);
		break;
	case RUN_KIND_POINTER:
		pointed = *(const void *const *)field;
		if (pointed)
			visit_members(checking, place, member->members, pointed);
		break;
	case RUN_KIND_LIST:
		visit_list(checking, place, member, structure, *(const char *const *)field);
		break;
	default:
		break;
	}
}

static void visit_members(struct checking *checking, const char *place,
			  const struct run_members *members, const void *structure)
{
	char name[CHECK_PLACE];

	for (size_t i = 0; i < members->count; i++) {
		name_place(place, members->list[i].name, name);
		visit_member(checking, name, &members->list[i], structure);
	}
}

void check_each_histogram(struct checking *checking, check_histogram_rule *rule)
{
	checking->of_histogram = rule;
	visit_members(checking, "", &run_document_members, checking->run);
}

/* ---- the rules ---- */

void check_buckets(struct checking *checking, const char *place, const struct histogram *h)
{
	check_same(checking, place, "the sum of its buckets",
		   run_counts_sum(h->buckets, BUCKET_COUNT), "count", h->count);
}

void check_means(struct checking *checking, const char *place, const struct histogram *h)
{
	/* Round the mean up to a whole number, as max is whole. */
	uint64_t mean = h->count ? h->sum / h->count + (h->sum % h->count != 0) : h->sum;
	bool above = (unsigned __int128)h->sum >
		     (unsigned __int128)h->max * (h->count + checking->apart);

	if (h->count && above)
		check_at_most(checking, place, "mean_ns", mean, "max_ns", h->max);
	else if (!h->count && !checking->apart)
		check_same(checking, place, "sum_ns", h->sum, "the sum of no values", 0);
}

static int highest(const struct histogram *h)
{
	for (unsigned int i = BUCKET_COUNT; i-- > 0;)
		if (h->buckets[i])
			return (int)i;
	return -1;
}

void check_sums(struct checking *checking, const char *place, const struct histogram *h)
{
	unsigned __int128 least = 0, most = 0, apart;

	for (unsigned int i = 0; i < BUCKET_COUNT; i++) {
		uint64_t upper = i == BUCKET_COUNT - 1 ? h->max : bucket_upper(i);

		least += (unsigned __int128)h->buckets[i] * bucket_lower(i);
		most += (unsigned __int128)h->buckets[i] * upper;
	}
	apart = (unsigned __int128)h->max * checking->apart;
	if (h->sum + apart < least || h->sum > most + apart)
		check_say(checking,
			  "%s: sum_ns is %" PRIu64
			  ", must be from %.0f to %.0f, as its buckets allow",
			  place, h->sum, (double)least, (double)most);
}

void check_maxima(struct checking *checking, const char *place, const struct histogram *h)
{
	int last = highest(h);

	if (last >= 0 && !checking->apart && bucket_index(h->max) != (uint32_t)last)
		check_say(checking,
			  "%s: max_ns is %" PRIu64 ", must be from %" PRIu64 " to %" PRIu64
			  ", the highest bucket in use",
			  place, h->max, (uint64_t)bucket_lower((uint32_t)last),
			  (uint64_t)bucket_upper((uint32_t)last));
}
