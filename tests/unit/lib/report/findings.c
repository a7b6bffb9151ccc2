// SPDX-License-Identifier: MIT
/*
 * lib/run/run.c, lib/report/findings.c: findings survive a merge, and are printed.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/finding.h"
#include "sojourn/report.h"
#include "support/report.h"
#include "support/runs.h"

static struct run *read_back(const struct run *run)
{
	autofree char *text = run_to_json(run), *error = NULL;
	struct run *again = NULL;

	assert_non_null(text);
	assert_int_equal(run_from_json(text, strlen(text), &again, &error), 0);
	return again;
}

/* Only the doctor's documents have these members. */
static void only_the_doctor_tells_of_resources(void **state)
{
	autorun struct run *observer = support_observer_run();
	autofree char *text = run_to_json(observer);

	assert_null(strstr(text, "\"resources\""));
	assert_null(strstr(text, "\"looked_at\""));
	assert_null(strstr(text, "\"did\""));
}

/* "Not examined" differs from "nothing found". */
static void not_looked_is_not_healthy(void **state)
{
	autorun struct run *observer = support_observer_run(), *again = read_back(observer);
	autorun struct run *looked = support_observer_run(), *healthy = NULL;

	assert_null(again->not_seen);
	looked->not_seen = calloc(1, sizeof(char *));
	healthy = read_back(looked);
	assert_non_null(healthy->not_seen);
	assert_null(healthy->not_seen[0]);
}

static void merging_keeps_the_observers(void **state)
{
	autorun struct run *observer = support_full_run(), *driver = support_driver_run();
	autorun struct run *rest = calloc(1, sizeof(*rest));
	autofree char *error = NULL;

	assert_non_null(rest);
	rest->driver = TAKE_PTR(observer->driver);
	rest->sweep = TAKE_PTR(observer->sweep);
	assert_int_equal(run_merge(driver, observer, &error), 0);
	assert_int_equal(driver->finding_count, 2);
	assert_non_null(driver->not_seen);
	assert_int_equal(observer->finding_count, 0);
	assert_null(observer->not_seen);
}

/* Two hosts: each finding names its host. */
static void merging_observers_adds_up(void **state)
{
	autorun struct run *one = support_observer_run(), *two = support_observer_run();
	autofree char *error = NULL;

	assert_non_null(ARRAY_APPEND(one->findings, one->finding_count));
	assert_non_null(ARRAY_APPEND(two->findings, two->finding_count));
	assert_int_equal(run_add_text(&one->not_seen, "rates"), 0);
	assert_int_equal(run_add_text(&two->not_seen, "events"), 0);
	free(two->host);
	two->host = strdup("second");
	assert_int_equal(run_merge(one, two, &error), 0);
	assert_int_equal(one->finding_count, 2);
	assert_string_equal(one->findings[0].host, "server");
	assert_string_equal(one->findings[1].host, "second");
	assert_string_equal(one->not_seen[0], "rates");
	assert_string_equal(one->not_seen[1], "events");
}

static void a_wrong_finding_is_refused(void **state)
{
	autofree char *error = NULL;
	static const char text[] =
		"{\"schema\":\"sojourn.run/"
		"1\",\"buckets\":{\"layout\":\"log-linear\",\"sub_bits\":6,"
		"\"value_bits\":40},\"duration_ns\":1,\"findings\":[{\"id\":7}]}";

	support_refuse(text, strlen(text), &error);
	assert_non_null(strstr(error, "findings[0].id"));
}

static void fill(struct run_finding *finding, const char *id, const char *resource)
{
	struct run_owner *owner = ARRAY_APPEND(finding->owners, finding->owner_count);

	assert_non_null(owner);
	snprintf(finding->id, sizeof(finding->id), "%s", id);
	snprintf(finding->resource, sizeof(finding->resource), "%s", resource);
	strcpy(finding->severity, "critical");
	strcpy(finding->object, "127.0.0.1 to 127.0.0.1:8080");
	finding->what = strdup("connect() to this destination fails: no source port is left");
	finding->command = strdup("sysctl -w net.ipv4.ip_local_port_range='1024 65535'");
	finding->link = strdup("docs/diagnoses.md#ports-exhausted");
	assert_int_equal(run_add_text(&finding->evidence, "used: 500 ports (TCP sockets)"), 0);
	owner->pid = 4711;
	strcpy(owner->comm, "wrk\033[2J");
	owner->sockets = (struct run_number){true, 500};
}

/* The driver's count and the host's finding are printed together. */
static void findings_are_printed(void **state)
{
	static const char expected[] =
		"\nCRITICAL  ports-exhausted  127.0.0.1 to 127.0.0.1:8080\n"
		"  what      connect() to this destination fails: no source port is left\n"
		"  met as    the driver's 15 errors 'address unavailable': no source port was left "
		"on the driver's\n"
		"            host (EADDRNOTAVAIL)\n"
		"  who       wrk?[2J, pid 4711, 500 sockets\n"
		"  evidence  used: 500 ports (TCP sockets)\n"
		"  do        sysctl -w net.ipv4.ip_local_port_range='1024 65535'\n"
		"  more      docs/diagnoses.md#ports-exhausted\n"
		"not seen: rates\n";
	autorun struct run *run = support_driver_run(), *observer = support_observer_run();
	struct run_finding *finding = ARRAY_APPEND(observer->findings, observer->finding_count);
	autofree char *text = NULL, *error = NULL;

	assert_non_null(finding);
	fill(finding, "ports-exhausted", "ephemeral_ports");
	assert_int_equal(run_add_text(&observer->not_seen, "rates"), 0);
	assert_int_equal(run_merge(run, observer, &error), 0);
	run->driver->errors[RUN_ERROR_ADDRESS_UNAVAILABLE] = 15;
	text = support_render(run, 100, false);
	if (!strstr(text, expected))
		fail_msg("no\n%s\nin\n%s", expected, strstr(text, "CRITICAL"));
}

static void healthy_is_one_line(void **state)
{
	autorun struct run *run = support_observer_run();
	autofree char *before = support_render(run, 100, false), *after = NULL;

	assert_null(strstr(before, "running out"));
	run->not_seen = calloc(1, sizeof(char *));
	after = support_render(run, 100, false);
	assert_non_null(strstr(after, "\nnothing was running out on server\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_doctor_tells_of_resources),
		cmocka_unit_test(not_looked_is_not_healthy),
		cmocka_unit_test(merging_keeps_the_observers),
		cmocka_unit_test(merging_observers_adds_up),
		cmocka_unit_test(a_wrong_finding_is_refused),
		cmocka_unit_test(findings_are_printed),
		cmocka_unit_test(healthy_is_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
