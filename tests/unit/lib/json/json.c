// SPDX-License-Identifier: MIT
/* lib/json/write.c and lib/json/read.c: written documents are read back, and nothing else is. */
#include "unit.h"

#include <jansson.h>
#include <string.h>

#include "run/members.h"
#include "sojourn/run.h"
#include "support/runs.h"
#include "support/series.h"

/* Any number in support_full_run() outside of histograms is below this. */
#define LARGEST_NUMBER 4200

static struct run *read_back(const struct run *run)
{
	autofree char *text = run_to_json(run), *error = NULL;
	struct run *again = NULL;
	int err;

	assert_non_null(text);
	assert_int_equal(text[strlen(text) - 1], '\n');
	err = run_from_json(text, strlen(text), &again, &error);
	if (err)
		fail_msg("%d: %s", err, error);
	return again;
}

/*
 * Structures are compared as bytes. Unless it optimises, clang leaves the padding of initialisers open; in builds by gcc and
 * under valgrind these tests run.
 */
static void skip_if_padding_is_open(void)
{
#if defined(__clang__) && !defined(__OPTIMIZE__)
	skip();
#endif
}

static void assert_same_text(const char *a, const char *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (a)
		assert_string_equal(a, b);
}

static void compare_texts(char **a, char **b)
{
	assert_int_equal(a == NULL, b == NULL);
	for (; a && *a && *b; a++, b++)
		assert_same_text(*a, *b);
	if (a)
		assert_ptr_equal(*a, *b);
}

static void compare_stage(const struct run_stage *a, const struct run_stage *b)
{
	assert_same_text(a->source, b->source);
	assert_same_text(a->reason, b->reason);
	assert_int_equal(a->measured, b->measured);
	assert_memory_equal(&a->histogram, &b->histogram, sizeof(struct histogram));
}

static void compare_samples(const struct run_samples *a, const struct run_samples *b)
{
	assert_int_equal(a == NULL, b == NULL);
	if (!a)
		return;
	assert_int_equal(a->threshold, b->threshold);
	assert_int_equal(a->lost, b->lost);
	assert_int_equal(a->inconsistent, b->inconsistent);
	assert_int_equal(a->count, b->count);
	assert_memory_equal(a->samples, b->samples, a->count * sizeof(*a->samples));
}

static void compare(const struct run_members *members, const void *a, const void *b, size_t count);

/* Compare what a member points to, and clear the pointers: both structures' bytes are the same from then on. */
static void compare_pointed(const struct run_member *member, char *a, char *b)
{
	void **left = (void **)(a + member->offset), **right = (void **)(b + member->offset);
	struct run_stage *stages = (void *)left, *others = (void *)right;

	switch (member->kind) {
	case RUN_KIND_OBJECT:
		for (size_t i = 0; i < member->members->count; i++)
			compare_pointed(&member->members->list[i], (char *)left, (char *)right);
		return;
	case RUN_KIND_STAGES:
		for (size_t i = 0; i < member->size; i++) {
			compare_stage(&stages[i], &others[i]);
			memset(&stages[i], 0, sizeof(stages[i]));
			memset(&others[i], 0, sizeof(others[i]));
		}
		return;
	case RUN_KIND_STRING:
		assert_same_text(*left, *right);
		break;
	case RUN_KIND_STRINGS:
		compare_texts(*left, *right);
		break;
	case RUN_KIND_SAMPLES:
		compare_samples(*left, *right);
		break;
	case RUN_KIND_SERIES:
		support_compare_series(*left, *right);
		break;
	case RUN_KIND_POINTER:
		assert_int_equal(*left == NULL, *right == NULL);
		compare(member->members, *left, *right, *left != NULL);
		break;
	case RUN_KIND_LIST:
		assert_int_equal(*(size_t *)(a + member->count_offset),
				 *(size_t *)(b + member->count_offset));
		compare(member->members, *left, *right, *(size_t *)(a + member->count_offset));
		break;
	default:
		return;
	}
	*left = *right = NULL;
}

/*
 * Compare structures by what their members point to, and the rest by its bytes. So one that the table of members lacks
 * shows, too.
 */
static void compare(const struct run_members *members, const void *a, const void *b, size_t count)
{
	autofree char *left = malloc(members->size), *right = malloc(members->size);

	assert_true(left && right);
	for (size_t i = 0; i < count; i++) {
		memcpy(left, (const char *)a + i * members->size, members->size);
		memcpy(right, (const char *)b + i * members->size, members->size);
		for (size_t k = 0; k < members->count; k++)
			compare_pointed(&members->list[k], left, right);
		assert_memory_equal(left, right, members->size);
	}
}

static void compare_runs(const struct run *a, const struct run *b)
{
	compare(&run_document_members, a, b, 1);
}

static void compare_services(const struct run_service *a, const struct run_service *b)
{
	compare(&run_service_members, a, b, 1);
}

static void everything_survives(void **state)
{
	autorun struct run *run = NULL, *again = NULL;

	skip_if_padding_is_open();
	run = support_full_run();
	again = read_back(run);
	compare_runs(run, again);
}

static void missing_stays_missing(void **state)
{
	autorun struct run *run = NULL, *again = NULL;
	struct run_service *service;

	skip_if_padding_is_open();
	run = support_full_run();
	service = &run->services[0];
	service->stages[STAGE_RECEIVE].measured = false;
	memset(&service->stages[STAGE_RECEIVE].histogram, 0, sizeof(struct histogram));
	memset(&service->stages[STAGE_RESPOND].histogram, 0, sizeof(struct histogram));
	free(service->stages[STAGE_SERVICE].source);
	service->stages[STAGE_SERVICE].source = NULL;
	memset(&service->srtt_ns, 0, sizeof(service->srtt_ns));
	memset(&service->min_rtt_ns, 0, sizeof(service->min_rtt_ns));
	memset(&service->time_wait, 0, sizeof(service->time_wait));
	free(service->processes);
	service->processes = NULL;
	service->process_count = 0;
	again = read_back(run);
	compare_runs(run, again);
}

static void empty_survives(void **state)
{
	struct run run = {0};
	autorun struct run *again = read_back(&run);

	compare_runs(&run, again);
}

static void limits_survive(void **state)
{
	autorun struct run *run = NULL, *again = NULL;
	struct histogram *h;

	skip_if_padding_is_open();
	run = support_full_run();
	h = &run->services[0].stages[STAGE_SERVICE].histogram;
	run->services[0].port = UINT16_MAX;
	run->services[0].netns = UINT32_MAX;
	run->services[0].exchanges = INT64_MAX;
	run->services[0].time_wait.value = INT64_MAX;
	memset(h, 0, sizeof(*h));
	h->count = h->sum = h->max = h->buckets[BUCKET_COUNT - 1] = INT64_MAX;
	again = read_back(run);
	compare_services(&run->services[0], &again->services[0]);
}

/* Connections that go on: a period may have messages and none of their beginnings. */
static void counts_survive_without_the_first_one(void **state)
{
	autorun struct run *run = NULL, *again = NULL;

	skip_if_padding_is_open();
	run = support_full_run();
	run->services[0].websocket.connections = run->services[0].events.responses = 0;
	again = read_back(run);
	compare_services(&run->services[0], &again->services[0]);
	assert_true(again->services[0].websocket.messages_in);
}

static void names_of_processes_may_be_anything(void **state)
{
	autorun struct run *run = support_observer_run(), *again = NULL;

	strcpy(run->services[0].processes[0].comm, "a\xff\"\n\\b");
	again = read_back(run);
	assert_string_equal(again->services[0].processes[0].comm, "a?\"\n\\b");
}

static bool is_histogram_member(const char *name)
{
	static const char *const names[] = {
		"count",     "mean_ns", "p50_ns",    "p90_ns",	"p99_ns", "p999_ns",  "p9999_ns",
		"p99999_ns", "max_ns",	"stddev_ns", "buckets", "sum_ns", "sub_bits", "value_bits"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* Pairs of a status and its count. */
static bool is_pairs(const json_t *json)
{
	return json_is_array(json_array_get(json, 0));
}

/* No number occurs twice: a member written from another's place would show. */
static void check_distinct(const json_t *json, bool seen[static LARGEST_NUMBER])
{
	const char *name;
	json_t *value;
	size_t i;

	assert_false(json_is_null(json) || json_is_false(json));
	if (json_is_real(json)) /* the only member of its kind */
		assert_true(json_real_value(json) < 0 && json_real_value(json) > -0.3);
	if (json_is_integer(json)) {
		/* Those that may be negative are. */
		size_t number = (size_t)llabs(json_integer_value(json));

		assert_in_range(number, 1, LARGEST_NUMBER - 1);
		assert_false(seen[number]);
		seen[number] = true;
	}
	json_array_foreach (json, i, value)
		check_distinct(is_pairs(json) ? json_array_get(value, 1) : value, seen);
	json_object_foreach ((json_t *)json, name, value)
		/* A sample's connection is an index into a list, not a number of its own. */
		if (strcmp(name, "flow") && (!is_histogram_member(name) || json_is_object(value)))
			check_distinct(value, seen);
}

static void every_member_is_written_from_its_own_place(void **state)
{
	autorun struct run *run = support_full_run();
	autofree char *text = run_to_json(run);
	json_t *document = json_loads(text, 0, NULL);
	bool seen[LARGEST_NUMBER] = {0};

	check_distinct(document, seen);
	json_decref(document);
}

static void derived_values_are_written(void **state)
{
	struct histogram h = {0};
	autorun struct run *run = support_observer_run();
	autofree char *text = NULL;

	for (uint64_t i = 1; i <= 10; i++)
		histogram_record(&h, i);
	run->services[0].stages[STAGE_SERVICE].histogram = h;
	text = run_to_json(run);
	assert_non_null(strstr(
		text, "\"service\":{\"measured\":true,\"source\":null,\"reason\":null,"
		      "\"count\":10,\"sum_ns\":55,\"mean_ns\":6,\"stddev_ns\":3,\"p50_ns\":5,"
		      "\"p90_ns\":9,\"p99_ns\":10,\"p999_ns\":10,\"p9999_ns\":10,"
		      "\"p99999_ns\":10,\"max_ns\":10,"
		      "\"buckets\":[[1,1],[2,1],"));
}

/* clang-format off */
static const struct {
	const char *text, *error;
} malformed[] = {
	{"", "is empty; must be a run document"},
	{" \r\n\t", "is empty; must be a run document"},
	{"{\"schema\":\n 1,}", "line 2, column 4: string or '}' expected near '}'; must be JSON (RFC 8259)"},
	{"[]", "document: is an array, must be an object"},
	{"{}", "schema: is missing, must be \"sojourn.run/1\""},
	{"{\"schema\":\"sojourn.run/2\"}", "schema: is \"sojourn.run/2\", must be \"sojourn.run/1\""},
	{"{\"schema\":1}", "schema: is 1, must be \"sojourn.run/1\""},
	{"{\"schema\":\"a\\u001b[2J\\nb\"}", "schema: is \"a?[2J?b\", must be \"sojourn.run/1\""},
	{"{\"schema\":\"sojourn.run/1\"}", "buckets: is missing, must be an object"},
	{"{\"schema\":\"sojourn.run/1\",\"buckets\":{\"layout\":\"log-linear\",\"sub_bits\":7}}",
	 "buckets.sub_bits: is 7, must be 6"},
	{"{\"schema\":\"sojourn.run/1\",\"buckets\":{\"layout\":\"linear\"}}",
	 "buckets.layout: is \"linear\", must be \"log-linear\""},
	{"{\"schema\":\"sojourn.run/1\",\"buckets\":{\"layout\":\"log-linear\",\"sub_bits\":6,\"value_bits\":6.0}}",
	 "buckets.value_bits: is 6, must be 40"},
	{SUPPORT_RUN_HEAD ",\"duration_ns\":2}", "line 1, column 118: duplicate object key near '\"duration_ns\"'; must be JSON (RFC 8259)"},
	{SUPPORT_RUN_HEAD "} x", "line 1, column 107: end of file expected near 'x'; must be JSON (RFC 8259)"},
	{SUPPORT_RUN_HEAD ",\"host\":7}", "host: is 7, must be a string"},
	{SUPPORT_RUN_HEAD ",\"services\":{}}", "services: is an object, must be an array of at most 1024 elements"},
	{SUPPORT_RUN_HEAD ",\"services\":[7]}", "services[0]: is 7, must be an object"},
	{SUPPORT_RUN_HEAD ",\"services\":[{}]}", "services[0].protocol: is missing, must be a string of at most 7 bytes"},
	{SUPPORT_RUN_HEAD ",\"services\":[{\"protocol\":\"12345678\"}]}",
	 "services[0].protocol: is \"12345678\", must be a string of at most 7 bytes"},
	{SUPPORT_RUN_HEAD ",\"services_dropped\":-1}",
	 "services_dropped: is -1, must be a whole number from 0 to 9223372036854775807"},
	{SUPPORT_RUN_HEAD ",\"services_dropped\":1.0}",
	 "services_dropped: is 1, must be a whole number from 0 to 9223372036854775807"},
	{SUPPORT_RUN_HEAD ",\"services_dropped\":9223372036854775808}",
	 "line 1, column 143: too big integer near '9223372036854775808'; must be JSON (RFC 8259)"},
	{SUPPORT_RUN_HEAD ",\"services_dropped\":1e999}",
	 "line 1, column 129: real number overflow near '1e999'; must be JSON (RFC 8259)"},
	{SUPPORT_RUN_HEAD ",\"command\":[\"a\",null]}", "command[1]: is null, must be a string"},
	{SUPPORT_RUN_HEAD ",\"cost\":[]}", "cost: is an array, must be an object"},
	{SUPPORT_RUN_HEAD ",\"driver\":{\"connections\":4294967296}}",
	 "driver.connections: is 4294967296, must be a whole number from 0 to 4294967295"},
	{SUPPORT_RUN_HEAD ",\"driver\":{\"connections\":1,\"threads\":1,\"new_connections\":0}}",
	 "driver.new_connections: is 0, must be true or false"},
	{SUPPORT_RUN_HEAD ",\"host\":\"\xff\"}", "line 1, column 113: unable to decode byte 0xff near '\"'; must be JSON (RFC 8259)"},
	{SUPPORT_RUN_HEAD ",\"host\":\"\\u0000\"}", "line 1, column 120: \\u0000 is not allowed without JSON_ALLOW_NUL near '\"\\u0000\"'; must be JSON (RFC 8259)"},
};
/* clang-format on */

static void malformed_is_refused_by_name(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		autofree char *error = NULL;

		support_refuse(malformed[i].text, strlen(malformed[i].text), &error);
		assert_string_equal(error, malformed[i].error);
	}
}

/* Replace the first @from of @text, which must be there, by @to. */
static char *replace(const char *text, const char *from, const char *to)
{
	const char *place = strstr(text, from);
	char *changed = NULL;

	if (!place)
		fail_msg("no %s", from);
	assert_true(asprintf(&changed, "%.*s%s%s", (int)(place - text), text, to,
			     place + strlen(from)) > 0);
	return changed;
}

/* clang-format off */
static const struct {
	const char *from, *to, *error;
} damages[] = {
	{"\"port\":8080", "\"port\":65536", "services[0].port: is 65536, must be a whole number from 0 to 65535"},
	{"\"port\":8080", "\"port\":null", "services[0].port: is null, must be a whole number from 0 to 65535"},
	{"\"port\":8080,", "", "services[0].port: is missing, must be a whole number from 0 to 65535"},
	{"\"exchanges\":1000", "\"exchanges\":\"1000\"",
	 "services[0].exchanges: is \"1000\", must be a whole number from 0 to 9223372036854775807"},
	{"\"overlapped\":0", "\"overlapped\":-3",
	 "services[0].losses.overlapped: is -3, must be a whole number from 0 to 9223372036854775807"},
	{"\"time_wait\":34", "\"time_wait\":true",
	 "services[0].time_wait: is true, must be a whole number from 0 to 9223372036854775807"},
	{"\"limit\":1024", "\"limit\":{}",
	 "services[0].accept_queue.limit: is an object, must be a whole number from 0 to 9223372036854775807"},
	{"\"comm\":\"nginx\"", "\"comm\":\"sixteen-letters!\"",
	 "services[0].processes[0].comm: is \"sixteen-letters!\", must be a string of at most 15 bytes"},
	{"\"measured\":true", "\"measured\":1",
	 "services[0].stages.accept_queue.measured: is 1, must be true or false"},
	{"\"count\":64", "\"count\":65",
	 "services[0].stages.accept_queue.buckets: is an array, must be counts that add up to count, 65"},
	{"\"p50_ns\":", "\"p50_ns\":[],\"x\":",
	 "services[0].stages.accept_queue.p50_ns: is an array, must be a whole number from 0 to 9223372036854775807"},
	{"\"max_ns\":", "\"max_ns\":null,\"x\":",
	 "services[0].stages.accept_queue.max_ns: is null, must be a whole number from 0 to 9223372036854775807"},
	{"\"buckets\":[[", "\"buckets\":[[5,1],[5,1],[",
	 "services[0].stages.accept_queue.buckets[1]: is 5, must be in ascending order"},
	{"\"buckets\":[[", "\"buckets\":[[2240,1],[",
	 "services[0].stages.accept_queue.buckets[0]: is 2240, must be a whole number from 0 to 2239"},
	{"\"buckets\":[[", "\"buckets\":[[1,-1],[",
	 "services[0].stages.accept_queue.buckets[0]: is -1, must be a whole number from 0 to 9223372036854775807"},
	{"\"buckets\":[[", "\"buckets\":[[1],[",
	 "services[0].stages.accept_queue.buckets[0]: is an array, must be a pair [index, count]"},
	{"\"buckets\":[[", "\"buckets\":[[1,9223372036854775807],[2,9223372036854775807],[3,2],[",
	 "services[0].stages.accept_queue.buckets: is an array, must be counts that add up to count, 64"},
	{"\"stages\":{", "\"stages\":[],\"x\":{", "services[0].stages: is an array, must be an object"},
	{"\"receive\":{", "\"receive\":7,\"x\":{", "services[0].stages.receive: is 7, must be an object"},
};
/* clang-format on */

static void damage_is_refused_by_name(void **state)
{
	autorun struct run *run = support_observer_run();
	autofree char *text = run_to_json(run);

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		autofree char *damaged = replace(text, damages[i].from, damages[i].to);
		autofree char *error = NULL;

		support_refuse(damaged, strlen(damaged), &error);
		assert_string_equal(error, damages[i].error);
	}
}

/* Members that a later version may add, and that an earlier one may lack. */
static void unknown_and_optional_members_are_accepted(void **state)
{
	static const struct {
		const char *from, *to;
	} changes[] = {
		{"\"host\":", "\"weather\":{\"wind\":[1.5,null]},\"host\":"},
		{"\"port\":", "\"color\":\"red\",\"port\":"},
		{"\"overlapped\":0,", "\"novel\":1,"},
		{"\"respond\":{", "\"respond\":null,\"x\":{"},
		{"\"service\":{", "\"x\":{"},
		{"\"depth\":null,", ""},
		{"\"processes\":[", "\"x\":["},
		{"\"cost\":{", "\"cost\":null,\"x\":{"},
	};
	autorun struct run *run = support_observer_run();
	autofree char *text = run_to_json(run);

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		autofree char *changed = replace(text, changes[i].from, changes[i].to);
		autofree char *error = NULL;
		autorun struct run *again = NULL;

		if (run_from_json(changed, strlen(changed), &again, &error))
			fail_msg("%s: %s", changes[i].to, error);
		assert_int_equal(again->services[0].exchanges, 1000);
	}
}

static void absent_stage_is_not_measured(void **state)
{
	autorun struct run *run = support_observer_run(), *again = NULL;
	autofree char *text = run_to_json(run), *error = NULL;
	autofree char *changed = replace(text, "\"service\":{", "\"x\":{");

	assert_int_equal(run_from_json(changed, strlen(changed), &again, &error), 0);
	assert_false(again->services[0].stages[STAGE_SERVICE].measured);
	assert_string_equal(again->services[0].stages[STAGE_SERVICE].reason,
			    "absent from the document");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_survives),
		cmocka_unit_test(missing_stays_missing),
		cmocka_unit_test(empty_survives),
		cmocka_unit_test(limits_survive),
		cmocka_unit_test(counts_survive_without_the_first_one),
		cmocka_unit_test(names_of_processes_may_be_anything),
		cmocka_unit_test(every_member_is_written_from_its_own_place),
		cmocka_unit_test(derived_values_are_written),
		cmocka_unit_test(malformed_is_refused_by_name),
		cmocka_unit_test(damage_is_refused_by_name),
		cmocka_unit_test(unknown_and_optional_members_are_accepted),
		cmocka_unit_test(absent_stage_is_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
