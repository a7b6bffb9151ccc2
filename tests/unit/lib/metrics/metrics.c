// SPDX-License-Identifier: MIT
/* lib/metrics: a run document for Prometheus, OpenMetrics and OpenTelemetry. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/metrics.h"
#include "support/runs.h"

static char *text_of(struct metrics *metrics, const struct run *run, enum metrics_format format)
{
	char *text = NULL;
	size_t size;
	struct metrics_printing printing = {.metrics = metrics,
					    .run = run,
					    .format = format,
					    .file = open_memstream(&text, &size)};

	assert_non_null(printing.file);
	while (metrics_print_part(&printing))
		;
	assert_int_equal(fclose(printing.file), 0);
	return text;
}

/* Return the value of the only sample that begins with @name, which must exist. */
static double sample(const char *text, const char *name)
{
	autofree char *line = NULL;
	const char *found;

	assert_true(asprintf(&line, "\n%s", name) > 0);
	found = strstr(text, line);
	if (!found)
		fail_msg("no sample '%s'", name);
	assert_null(strstr(found + 1, line));
	return strtod(strrchr(strndupa(found, strcspn(found + 1, "\n") + 1), ' '), NULL);
}

static void test_edges_are_bounds_of_buckets(void **state)
{
	for (enum metrics_buckets buckets = METRICS_COARSE; buckets <= METRICS_FINE; buckets++) {
		uint64_t last = 0;

		for (unsigned int i = 0; i < metrics_edge_count(buckets); i++) {
			uint64_t edge = metrics_edge_ns(buckets, i);

			assert_int_equal(bucket_upper(bucket_index(edge)), edge);
			assert_true(edge > last);
			last = edge;
		}
		assert_true(metrics_edge_ns(buckets, 0) <= 10000 && last > 9800000000);
	}
	assert_true(metrics_edge_ns(METRICS_FINE, 0) <= 1024);
}

/* Alerts compare waits with 5 ms: so 5 ms is an edge, and no shorter wait counts as longer. */
static void test_a_coarse_edge_is_at_5_ms(void **state)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < metrics_edge_count(METRICS_COARSE); i++) {
		uint64_t edge = metrics_edge_ns(METRICS_COARSE, i);

		found += edge <= 5000000 && edge > 4900000;
	}
	assert_int_equal(found, 1);
}

/* The coarse form has less than half of the samples, all of which Prometheus has to keep. */
static void test_coarse_is_less_than_half(void **state)
{
	autorun struct run *run = support_observer_run();
	size_t lines[2] = {0};

	run->service_count = 1;
	for (enum metrics_buckets buckets = METRICS_COARSE; buckets <= METRICS_FINE; buckets++) {
		autometrics struct metrics *metrics = metrics_new(buckets);
		autofree char *text = text_of(metrics, run, METRICS_PROMETHEUS);

		for (const char *at = text; (at = strstr(at, "port=\"8080\"")); at++)
			lines[buckets]++;
	}
	assert_int_equal(lines[METRICS_FINE] - lines[METRICS_COARSE],
			 STAGE_RESIDENCE_END * (48 - 17));
	assert_true(2 * lines[METRICS_COARSE] < lines[METRICS_FINE]);
}

/* Every value is counted from the first edge that is not smaller, and not before. */
static void test_counts_below_edges_are_exact(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_stage *stage = &run->services[0].stages[STAGE_SERVICE];
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = NULL;

	memset(&stage->histogram, 0, sizeof(stage->histogram));
	for (unsigned int i = 0; i < METRICS_EDGES_MAX; i++) {
		histogram_record(&stage->histogram, metrics_edge_ns(METRICS_FINE, i));
		histogram_record(&stage->histogram, metrics_edge_ns(METRICS_FINE, i) + 1);
	}
	text = text_of(metrics, run, METRICS_PROMETHEUS);
	for (unsigned int i = 0; i < METRICS_EDGES_MAX; i++) {
		autofree char *name = NULL;

		assert_true(
			asprintf(&name,
				 "sojourn_stage_seconds_bucket{protocol=\"tcp\",port=\"8080\","
				 "netns=\"%u\",stage=\"service\",le=\"%llu.%09llu\"}",
				 run->services[0].netns,
				 (unsigned long long)metrics_edge_ns(METRICS_FINE, i) / 1000000000,
				 (unsigned long long)metrics_edge_ns(METRICS_FINE, i) %
					 1000000000) > 0);
		assert_true(sample(text, name) == 2 * i + 1);
	}
}

/* A connection's last response may move to a higher bucket: no count decreases. */
static void test_counts_never_go_down(void **state)
{
	autorun struct run *run = support_observer_run();
	struct histogram *h = &run->services[0].stages[STAGE_RESPOND].histogram;
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	static const char name[] = "sojourn_stage_seconds_bucket{protocol=\"tcp\",port=\"8080\","
				   "netns=\"%u\",stage=\"respond\",le=\"0.000001023\"}";
	char sampled[256];

	snprintf(sampled, sizeof(sampled), name, run->services[0].netns);
	memset(h, 0, sizeof(*h));
	for (unsigned int round = 0; round < 3; round++) {
		autofree char *text = NULL;

		memset(h, 0, sizeof(*h));
		histogram_record(h, round == 1 ? 1000000 : 100);
		histogram_record(h, 100);
		if (round == 2)
			histogram_record(h, 100);
		text = text_of(metrics, run, METRICS_PROMETHEUS);
		assert_true(sample(text, sampled) == (round == 2 ? 3 : 2));
	}
}

static void test_openmetrics_names_counters_by_family(void **state)
{
	autorun struct run *run = support_full_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *plain = text_of(metrics, run, METRICS_PROMETHEUS);
	autofree char *open = text_of(metrics, run, METRICS_OPENMETRICS);

	assert_non_null(strstr(plain, "# TYPE sojourn_exchanges_total counter\n"));
	assert_non_null(strstr(open, "# TYPE sojourn_exchanges counter\n"));
	assert_non_null(strstr(open, "\nsojourn_exchanges_total{"));
	assert_null(strstr(plain, "# EOF"));
	assert_string_equal(open + strlen(open) - 6, "# EOF\n");
}

/* The newest request of a bucket is its exemplar, also with the longest address that there is. */
static void test_openmetrics_has_exemplars(void **state)
{
	autorun struct run *run = support_observer_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_COARSE);
	struct run_newest *newest = run->services[0].newest;
	autofree char *open = NULL, *plain = NULL;
	const char *at, *end;

	for (uint64_t i = 0; i < 2; i++) {
		newest[i].ended_ns = (7 + i) * NSEC_PER_SEC;
		newest[i].sample.known = RUN_SAMPLE_STAGE(STAGE_SERVICE);
		newest[i].sample.index = UINT32_MAX;
		newest[i].sample.stage_ns[STAGE_SERVICE] = 123456 + i;
		newest[i].sample.flow.client_port = UINT16_MAX;
		memset(newest[i].sample.flow.client, 0x11, sizeof(newest[i].sample.flow.client));
	}
	open = text_of(metrics, run, METRICS_OPENMETRICS);
	plain = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_null(strstr(plain, " # {"));
	at = strstr(open, " # {");
	assert_non_null(at);
	assert_null(strstr(at + 1, " # {"));
	end = strchr(at, '}');
	/* Of each label two quotes, a sign and a comma are not counted. */
	assert_true(end - at - 4 - 6 * 4 + 1 <= 128);
	assert_memory_equal(end, "} 0.000123457 8.000000000\n", 26);
}

/* Unknown values are absent: zero would be a measurement. */
static void test_unknown_is_absent(void **state)
{
	autorun struct run *run = support_observer_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = NULL;

	run->services[0].time_wait.known = false;
	support_miss_stage(&run->services[0], STAGE_RECEIVE, "refused");
	text = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_null(strstr(text, "\nsojourn_time_wait_sockets{"));
	assert_null(strstr(text, "stage=\"receive\""));
	assert_non_null(strstr(text, "stage=\"service\""));
	assert_null(strstr(text, "sojourn_findings"));
}

static void test_names_are_escaped(void **state)
{
	autorun struct run *run = support_observer_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = NULL;

	strcpy(run->services[0].processes[0].comm, "a\"b\\c\nd");
	text = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_non_null(strstr(text, "process=\"a\\\"b\\\\c\\nd\""));
}

/* A process may have any name; invalid UTF-8 would make the whole text, or JSON, useless. */
static void test_foreign_bytes_are_replaced(void **state)
{
	autorun struct run *run = support_observer_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = NULL, *otlp = NULL;

	strcpy(run->services[0].processes[0].comm, "caf\xe9");
	text = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_non_null(strstr(text, "process=\"caf?\""));
	otlp = metrics_otlp(metrics, run, 1, 2);
	assert_non_null(otlp);
	assert_non_null(strstr(otlp, "{\"stringValue\":\"caf?\"}"));
}

/* A document need not name its host and kernel. */
static void test_an_unknown_host_is_left_out(void **state)
{
	autorun struct run *run = support_observer_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *otlp = NULL;

	free(TAKE_PTR(run->host));
	free(TAKE_PTR(run->kernel));
	otlp = metrics_otlp(metrics, run, 1, 2);
	assert_non_null(otlp);
	assert_non_null(strstr(otlp, "\"os.type\""));
	assert_null(strstr(otlp, "\"host.name\""));
	assert_null(strstr(otlp, "\"os.version\""));
}

/*
 * Each value is in the first bucket whose upper bound is not smaller, and all values are in some
 * bucket.
 */
static void test_otlp_buckets_are_not_cumulative(void **state)
{
	autorun struct run *run = support_observer_run();
	struct run_stage *stage = &run->services[0].stages[STAGE_SERVICE];
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = NULL;
	const char *found;

	for (enum stage i = 0; i < STAGE_COUNT; i++)
		run->services[0].stages[i].measured = i == STAGE_SERVICE;
	memset(&stage->histogram, 0, sizeof(stage->histogram));
	histogram_record(&stage->histogram, metrics_edge_ns(METRICS_FINE, 0));
	histogram_record(&stage->histogram, metrics_edge_ns(METRICS_FINE, 1));
	histogram_record(&stage->histogram, metrics_edge_ns(METRICS_FINE, 1));
	histogram_record(&stage->histogram,
			 metrics_edge_ns(METRICS_FINE, METRICS_EDGES_MAX - 1) + 1);
	run->service_count = 1;
	text = metrics_otlp(metrics, run, 1000000000, 2000000000);
	found = strstr(text, "\"bucketCounts\":[");
	assert_non_null(found);
	assert_non_null(strstr(text, "\"startTimeUnixNano\":\"1000000000\",\"count\":\"4\""));
	assert_ptr_equal(strstr(found, "\"bucketCounts\":[\"1\",\"2\",\"0\","), found);
	assert_non_null(strstr(found, "\"0\",\"1\"],\"explicitBounds\":["));
}

/* A wait counts from the first edge that is not smaller. Connections that cannot be cut take all times away. */
static void test_calls(void **state)
{
	autorun struct run *run = support_full_run();
	struct run_timed_call *call = run->services[0].timed_calls;
	autometrics struct metrics *metrics = metrics_new(METRICS_COARSE);
	autofree char *text = NULL, *uncut = NULL;
	size_t services = run->service_count, calls = run->services[0].timed_call_count;

	assert_true(calls > 0);
	run->service_count = run->services[0].timed_call_count = 1;
	memset(call->uncut, 0, sizeof(call->uncut));
	memset(&call->wait, 0, sizeof(call->wait));
	call->connects = 100;
	call->older = 0;
	histogram_record(&call->wait, metrics_edge_ns(METRICS_COARSE, 0));
	histogram_record(&call->wait, metrics_edge_ns(METRICS_COARSE, 0) + 1);
	text = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_int_equal(sample(text, "sojourn_upstream_connects_total{"), 100);
	assert_int_equal(sample(text, "sojourn_upstream_wait_seconds_count{"), 2);
	assert_int_equal(
		strtod(strstr(strstr(text, "\nsojourn_upstream_wait_seconds_bucket{"), "} ") + 2,
		       NULL),
		1);
	call->uncut[RUN_UNCUT_TUNNELS] = 2;
	uncut = text_of(metrics, run, METRICS_PROMETHEUS);
	assert_int_equal(sample(uncut, "sojourn_upstream_connections_uncut_total{"), 2);
	assert_null(strstr(uncut, "\nsojourn_upstream_wait_seconds_count"));
	/* The others are freed with it. */
	run->service_count = services;
	run->services[0].timed_call_count = calls;
}

static void test_documented(void **state)
{
	autorun struct run *run = support_full_run();
	autometrics struct metrics *metrics = metrics_new(METRICS_FINE);
	autofree char *text = text_of(metrics, run, METRICS_PROMETHEUS);
	autofclose FILE *file = fopen(DOCS_DIR "/metrics.md", "r");
	autofree char *docs = calloc(1, 65536);
	size_t metrics_count = 0, rows = 0;

	assert_non_null(file);
	assert_true(fread(docs, 1, 65535, file) > 0);
	for (const char *at = text; (at = strstr(at, "# TYPE ")); at++) {
		char name[128], type[32];
		autofree char *row = NULL;

		assert_int_equal(sscanf(at, "# TYPE %127s %31s", name, type), 2);
		assert_true(asprintf(&row, "| `%s` | %s |", name, type) > 0);
		if (!strstr(docs, row))
			fail_msg("docs/metrics.md lacks %s", row);
		metrics_count++;
	}
	for (const char *at = docs; (at = strstr(at, "\n| `sojourn_")); at++)
		rows++;
	assert_int_equal(rows, metrics_count);
}

static void test_accept(void **state)
{
	/* clang-format off */
	static const struct {
		const char *accept;
		enum metrics_format format;
	} cases[] = {
		{NULL, METRICS_PROMETHEUS}, {"", METRICS_PROMETHEUS}, {"*/*", METRICS_PROMETHEUS},
		{"text/plain", METRICS_PROMETHEUS},
		{"application/openmetrics-text", METRICS_OPENMETRICS},
		{"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
		 METRICS_OPENMETRICS},
		{"text/plain;q=0.9, application/openmetrics-text;q=0.1", METRICS_PROMETHEUS},
		{"application/openmetrics-text;q=0", METRICS_PROMETHEUS},
		{",,;q=,", METRICS_PROMETHEUS},
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (metrics_choose(cases[i].accept) != cases[i].format)
			fail_msg("'%s'", cases[i].accept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges_are_bounds_of_buckets),
		cmocka_unit_test(test_a_coarse_edge_is_at_5_ms),
		cmocka_unit_test(test_coarse_is_less_than_half),
		cmocka_unit_test(test_counts_below_edges_are_exact),
		cmocka_unit_test(test_counts_never_go_down),
		cmocka_unit_test(test_openmetrics_names_counters_by_family),
		cmocka_unit_test(test_openmetrics_has_exemplars),
		cmocka_unit_test(test_unknown_is_absent),
		cmocka_unit_test(test_names_are_escaped),
		cmocka_unit_test(test_foreign_bytes_are_replaced),
		cmocka_unit_test(test_an_unknown_host_is_left_out),
		cmocka_unit_test(test_otlp_buckets_are_not_cumulative),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_documented),
		cmocka_unit_test(test_accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
