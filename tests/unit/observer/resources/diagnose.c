// SPDX-License-Identifier: MIT
/* The rules: thresholds, precedence, consequences, and that docs/diagnoses.md explains each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resources/diagnose.h"
#include "resources/look.h"
#include "sojourn/cleanup.h"
#include "sojourn/finding.h"
#include "unit.h"

static const char *const measures[] = {
	[MEASURE_SHARE] = "share of capacity",
	[MEASURE_SECONDS_LEFT] = "seconds left",
	[MEASURE_EVENTS] = "events in the sample",
	[MEASURE_USED] = "used",
	[MEASURE_HELD] = "used, a notice",
	[MEASURE_GROWN] = "growth since the first reading",
	[MEASURE_LEAKING] = "steady growth per second",
	[MEASURE_HANGS] = "seconds without an answer",
};

/* Sections of docs/diagnoses.md that are no diagnosis. */
static const char *const others[] = {"Events", "When it has run out already",
				     "Limits of what is visible", "Capacity of ephemeral ports",
				     "JSON"};

static char *read_page(void)
{
	autofclose FILE *file = fopen(DOCS_DIR "/diagnoses.md", "re");
	char *text = calloc(1, 65536);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(file && fread(text, 1, 65535, file) > 0);
	return text;
}

static char *threshold(double value, char *buffer, size_t size)
{
	if (isnan(value))
		snprintf(buffer, size, "never");
	else
		snprintf(buffer, size, "%g", value);
	return buffer;
}

static void test_every_rule_is_documented(void **state)
{
	autofree char *page = read_page();

	for (size_t i = 0; i < diagnose_rule_count; i++) {
		const struct rule *rule = &diagnose_rules[i];
		char expected[256], warning[16], critical[16];

		snprintf(expected, sizeof(expected),
			 "\n## %s\n\nMeasured: %s; warning %s; critical %s.\n", rule->id,
			 measures[rule->measure],
			 threshold(rule->warning, warning, sizeof(warning)),
			 threshold(rule->critical, critical, sizeof(critical)));
		if (!strstr(page, expected))
			fail_msg("docs/diagnoses.md lacks:%s", expected);
	}
}

static bool is_known(const char *title, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (strlen(others[i]) == length && !strncmp(others[i], title, length))
			return true;
	}
	for (size_t i = 0; i < diagnose_rule_count; i++) {
		const char *id = diagnose_rules[i].id;

		if (strlen(id) == length && !strncmp(id, title, length))
			return true;
	}
	return false;
}

static void test_every_section_is_a_rule(void **state)
{
	autofree char *page = read_page();

	for (const char *at = strstr(page, "\n## "); at; at = strstr(at + 1, "\n## ")) {
		size_t length = strcspn(at + 4, "\n");

		if (!is_known(at + 4, length))
			fail_msg("docs/diagnoses.md: no rule '%.*s'", (int)length, at + 4);
	}
}

static void test_every_resource_is_documented(void **state)
{
	autofree char *page = read_page();

	for (size_t i = 0; i < RESOURCE_KINDS; i++) {
		if (!strstr(page, resource_names[i]))
			fail_msg("docs/diagnoses.md does not explain '%s'", resource_names[i]);
	}
}

static void test_rules_are_complete(void **state)
{
	for (size_t i = 0; i < diagnose_rule_count; i++) {
		const struct rule *rule = &diagnose_rules[i];
		bool known = !rule->unless;

		assert_non_null(rule->what);
		assert_non_null(rule->change);
		assert_non_null(rule->risk);
		assert_false(isnan(rule->warning));
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(diagnose_rules[j].id, rule->id);
			known |= rule->unless && !strcmp(diagnose_rules[j].id, rule->unless);
		}
		assert_true(known); /* `unless` names an earlier rule */
	}
}

/* ---- findings of made-up resources ---- */

static struct finding_list findings_of(struct resource *resources, size_t count)
{
	struct resource_list list = {resources, count};
	struct finding_list findings;

	assert_int_equal(diagnose(&list, &findings), 0);
	return findings;
}

static struct resource ports(double used, double seconds_left)
{
	return (struct resource){.kind = RESOURCE_PORTS,
				 .used = used,
				 .capacity = 1000,
				 .seconds_left = seconds_left};
}

static void check_one(struct resource resource, const char *id, enum severity severity)
{
	struct finding_list findings = findings_of(&resource, 1);

	assert_int_equal(findings.count, id ? 1 : 0);
	if (id)
		assert_string_equal(findings.entries[0].rule->id, id);
	assert_int_equal(diagnose_worst(&findings), severity);
	diagnose_free(&findings);
}

static void test_thresholds_are_inclusive(void **state)
{
	check_one(ports(499, INFINITY), NULL, SEVERITY_NONE);
	check_one(ports(500, INFINITY), "ports-cliff", SEVERITY_WARNING);
	check_one(ports(969, INFINITY), "ports-cliff", SEVERITY_WARNING);
	check_one(ports(970, INFINITY), "ports-exhausted", SEVERITY_CRITICAL);
	check_one(ports(100, 300.5), NULL, SEVERITY_NONE);
	check_one(ports(100, 300), "ports-exhausted-soon", SEVERITY_WARNING);
	check_one(ports(100, 30), "ports-exhausted-soon", SEVERITY_CRITICAL);
	/* Already exhausted: neither the cliff nor the prediction adds anything. */
	check_one(ports(1000, 0), "ports-exhausted", SEVERITY_CRITICAL);
}

static void test_worst_comes_first(void **state)
{
	struct resource resources[] = {ports(600, INFINITY), ports(980, INFINITY), ports(990, 1)};
	struct finding_list findings = findings_of(resources, 3);

	assert_int_equal(findings.count, 3);
	assert_true(findings.entries[0].resource.used == 990);
	assert_true(findings.entries[1].resource.used == 980);
	assert_int_equal(findings.entries[2].severity, SEVERITY_WARNING);
	diagnose_free(&findings);
}

static struct resource owned(enum resource_kind kind, double used, double capacity, uint32_t pid)
{
	struct resource resource = {.kind = kind,
				    .used = used,
				    .capacity = capacity,
				    .seconds_left = INFINITY,
				    .owner_count = 1};

	resource.owners[0].pid = pid;
	return resource;
}

static void test_a_queue_without_descriptors_is_a_consequence(void **state)
{
	struct resource resources[] = {
		owned(RESOURCE_ACCEPT_QUEUE, 9, 8, 7), owned(RESOURCE_DESCRIPTORS, 64, 64, 7),
		owned(RESOURCE_SYN_QUEUE, 6, 8, 7), owned(RESOURCE_ACCEPT_QUEUE, 9, 8, 5)};
	struct finding_list findings = findings_of(resources, ARRAY_SIZE(resources));
	const struct resource *first = &findings.entries[0].resource;

	assert_int_equal(findings.count, 2);
	assert_string_equal(findings.entries[0].rule->id, "fds-exhausted");
	assert_true(first->facts[first->fact_count - 2].value == 9);
	assert_true(first->facts[first->fact_count - 1].value == 6);
	assert_string_equal(findings.entries[1].rule->id, "accept-queue-full");
	assert_int_equal(findings.entries[1].resource.owners[0].pid, 5);
	diagnose_free(&findings);
}

static void test_failed_calls_are_evidence_of_what_ended(void **state)
{
	struct resource resources[] = {owned(RESOURCE_DESCRIPTOR_FAILURES, 3, 0, 7),
				       owned(RESOURCE_DESCRIPTOR_FAILURES, 5, 0, 8),
				       owned(RESOURCE_DESCRIPTORS, 64, 64, 7)};
	struct finding_list findings;

	for (size_t i = 0; i < 2; i++) {
		resources[i].events = resources[i].used;
		resource_fact(&resources[i], "failed", resources[i].used, "calls", "EMFILE");
	}
	findings = findings_of(resources, 3);
	assert_int_equal(findings.count, 2);
	assert_string_equal(findings.entries[0].rule->id, "fds-failed");
	assert_int_equal(findings.entries[0].resource.owners[0].pid, 8);
	assert_string_equal(findings.entries[1].rule->id, "fds-exhausted");
	assert_true(findings.entries[1].resource.facts[0].value == 3);
	diagnose_free(&findings);
}

static const char *excuse_descriptors(const void *context, const struct resource *resource)
{
	(void)context;
	return resource->kind == RESOURCE_FILES || resource->owners[0].pid == 7
		       ? NULL
		       : "the process does not listen";
}

/* Findings on other resources stay critical, and come first again; the text of a prediction stays. */
static void test_a_process_that_serves_nobody_is_a_warning(void **state)
{
	struct resource resources[] = {
		owned(RESOURCE_DESCRIPTORS, 64, 64, 8), owned(RESOURCE_DESCRIPTORS, 63, 64, 7),
		owned(RESOURCE_DESCRIPTOR_FAILURES, 3, 0, 9), owned(RESOURCE_FILES, 95, 100, 8),
		owned(RESOURCE_DESCRIPTORS, 40, 64, 6)};
	static const struct {
		const char *id;
		uint32_t pid;
		enum severity severity;
	} expected[] = {{"fds-exhausted", 7, SEVERITY_CRITICAL},
			{"file-max", 8, SEVERITY_CRITICAL},
			{"fds-failed", 9, SEVERITY_WARNING},
			{"fds-exhausted", 8, SEVERITY_WARNING},
			{"fds-exhausted-soon", 6, SEVERITY_WARNING}};
	struct finding_list findings;

	resources[2].events = 3;
	resources[4].seconds_left = 2;
	snprintf(resources[4].outlook, sizeof(resources[4].outlook), "in 2 s");
	findings = findings_of(resources, ARRAY_SIZE(resources));
	assert_int_equal(findings.count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < findings.count; i++)
		assert_int_equal(findings.entries[i].severity, SEVERITY_CRITICAL);
	diagnose_soften(&findings, excuse_descriptors, NULL);
	for (size_t i = 0; i < findings.count; i++) {
		assert_string_equal(findings.entries[i].rule->id, expected[i].id);
		assert_int_equal(findings.entries[i].resource.owners[0].pid, expected[i].pid);
		assert_int_equal(findings.entries[i].severity, expected[i].severity);
	}
	assert_string_equal(findings.entries[4].resource.outlook, "in 2 s");
	assert_non_null(strstr(findings.entries[3].resource.outlook, "does not listen"));
	diagnose_free(&findings);
}

static void test_unknown_capacity_is_no_finding(void **state)
{
	check_one(owned(RESOURCE_DESCRIPTORS, 64, 0, 1), NULL, SEVERITY_NONE);
	check_one(owned(RESOURCE_SYN_QUEUE, 64, 0, 1), NULL, SEVERITY_NONE);
	/* listen(fd, 0) admits one. */
	check_one(owned(RESOURCE_ACCEPT_QUEUE, 1, 0, 1), NULL, SEVERITY_NONE);
}

static void test_close_wait_that_stays_is_a_notice(void **state)
{
	struct resource held = owned(RESOURCE_CLOSE_WAIT, 500, 0, 7);

	check_one(held, "close-wait-held", SEVERITY_NOTICE);
	held.grown = 2;
	check_one(held, "close-wait-held", SEVERITY_NOTICE);
	held.grown = 3;
	check_one(held, "close-wait-leak", SEVERITY_WARNING);
	check_one(owned(RESOURCE_CLOSE_WAIT, 4, 0, 7), NULL, SEVERITY_NONE);
}

static void test_slope(void **state)
{
	const uint32_t line[] = {10, 12, 14, 16, 18}, flat[] = {5, 5, 5, 5},
		       jump[] = {1, 1, 9, 1, 1};
	double share;

	assert_float_equal(resource_slope(line, 5, &share), 2, 1e-9);
	assert_float_equal(share, 1, 1e-9);
	assert_float_equal(resource_slope(flat, 4, &share), 0, 1e-9);
	assert_float_equal(share, 0, 1e-9);
	assert_float_equal(resource_slope(jump, 5, &share), 0, 1e-9);
	assert_float_equal(resource_slope(line, 1, &share), 0, 1e-9);
}

static void test_owners_are_sorted_by_sockets(void **state)
{
	struct resource resource = {};

	resource_own(&resource, 0);
	assert_int_equal(resource.owner_count, 0);
	resource_own(&resource, 1);
	for (int i = 0; i < 3; i++)
		resource_own(&resource, 2);
	assert_int_equal(resource.owner_count, 2);
	assert_int_equal(resource.owners[0].pid, 2);
	assert_int_equal(resource.owners[0].sockets, 3);
	assert_int_equal(resource.owners[1].pid, 1);
}

static struct run *document_of(struct resource *resource)
{
	struct finding_list findings = findings_of(resource, 1);
	struct run *run = run_new("sojourn", NULL);

	assert_non_null(run);
	assert_int_equal(document_findings(&findings, run), 0);
	diagnose_free(&findings);
	return run;
}

/* The service of a socket unit has not started: nobody there could accept sooner. */
static void test_systemd_accepts_nothing(void **state)
{
	struct resource resource = {
		.kind = RESOURCE_ACCEPT_QUEUE, .used = 9, .capacity = 9, .seconds_left = INFINITY};
	autorun struct run *awaited = NULL, *shared = NULL;

	resource_own(&resource, 1);
	snprintf(resource.owners[0].comm, sizeof(resource.owners[0].comm), "systemd");
	awaited = document_of(&resource);
	assert_non_null(strstr(awaited->findings->change, "systemctl list-sockets"));
	assert_null(awaited->findings->command);
	resource_own(&resource, 2);
	shared = document_of(&resource);
	assert_non_null(strstr(shared->findings->change, "accept() sooner"));
	assert_non_null(shared->findings->command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rule_is_documented),
		cmocka_unit_test(test_every_section_is_a_rule),
		cmocka_unit_test(test_every_resource_is_documented),
		cmocka_unit_test(test_rules_are_complete),
		cmocka_unit_test(test_thresholds_are_inclusive),
		cmocka_unit_test(test_worst_comes_first),
		cmocka_unit_test(test_a_queue_without_descriptors_is_a_consequence),
		cmocka_unit_test(test_failed_calls_are_evidence_of_what_ended),
		cmocka_unit_test(test_a_process_that_serves_nobody_is_a_warning),
		cmocka_unit_test(test_unknown_capacity_is_no_finding),
		cmocka_unit_test(test_close_wait_that_stays_is_a_notice),
		cmocka_unit_test(test_slope),
		cmocka_unit_test(test_owners_are_sorted_by_sockets),
		cmocka_unit_test(test_systemd_accepts_nothing),
	};

	return cmocka_run_group_tests_name("observer_diagnose", tests, NULL, NULL);
}
