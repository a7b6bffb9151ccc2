// SPDX-License-Identifier: MIT
/*
 * Which host is the slow one, in the first line, and a row for each host.
 *
 * Seen to fail:
 * - the mean of all hosts as that of the others (the_slow_one_is_named)
 * - a host that hangs compared by the mean of its few answers (one_that_hangs_comes_first)
 * - a host without requests compared (idle_ones_are_not_compared)
 * - a largest part looked for where nothing was joined (one_is_idle_beside_joined_ones)
 * - the wait before sending in the mean round trip (a_late_driver_makes_no_host_slow)
 * - all pods at one port compared, whatever they do (pods_that_do_the_same_are_compared)
 * - rows by host alone (pods_on_several_hosts, pods_that_do_the_same_are_compared)
 * - a pod that answered others alone compared with the driver's (the_drivers_pod_is_reported)
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/array.h"
#include "sojourn/report.h"
#include "support/golden.h"
#include "support/report.h"
#include "support/runs.h"

#define REQUESTS 1000U

/* The document of a host whose server takes @service_ns for each request. */
static struct run *host_with(const char *host, uint64_t service_ns)
{
	struct run *run = support_observer_run();
	struct histogram *service = &run->services[0].stages[STAGE_SERVICE].histogram;

	free(run->host);
	run->host = strdup(host);
	*service = (struct histogram){0};
	for (unsigned int i = 0; i < REQUESTS; i++)
		histogram_record(service, service_ns);
	return run;
}

static struct run *three_hosts(struct run *a, struct run *b, struct run *c)
{
	assert_int_equal(run_merge(a, b, NULL), 0);
	assert_int_equal(run_merge(a, c, NULL), 0);
	return a;
}

static void the_slow_one_is_named(void **state)
{
	autorun struct run *a = host_with("a", 20000), *b = host_with("b", 5000000);
	autorun struct run *c = host_with("c", 30000);

	support_check_short(three_hosts(a, b, c), "hosts-slow", 100);
	support_check_short(a, "hosts-slow-60", 60);
	support_check_golden(a, "hosts-slow-long", 100);
}

static void alike_ones_are_not_blamed(void **state)
{
	autorun struct run *a = host_with("a", 2000000), *b = host_with("b", 2200000);
	autorun struct run *c = host_with("c", 2100000);

	support_check_short(three_hosts(a, b, c), "hosts-alike", 100);
}

/* A server that hangs answers few requests, and these quickly. */
static void one_that_hangs_comes_first(void **state)
{
	autorun struct run *a = host_with("a", 5000000), *b = host_with("b", 20000);
	autorun struct run *c = host_with("c", 30000);

	b->services[0].open.read = b->services[0].open.unread = (struct run_number){true, 4};
	b->services[0].open.oldest_ns = (struct run_number){true, 12300000000};
	support_check_short(three_hosts(a, b, c), "hosts-hanging", 100);
}

static void make_idle(struct run *run)
{
	run->services[0].exchanges = run->services[0].accepted = 0;
	for (enum stage stage = 0; stage < STAGE_COUNT; stage++) {
		free(run->services[0].stages[stage].reason);
		free(run->services[0].stages[stage].source);
	}
	memset(run->services[0].stages, 0, sizeof(run->services[0].stages));
}

/* One host has no requests, another one none that could be timed. */
static void idle_ones_are_not_compared(void **state)
{
	autorun struct run *a = host_with("a", 20000), *b = host_with("b", 5000000);
	autorun struct run *c = host_with("c", 30000), *d = host_with("d", 20000);
	autorun struct run *e = NULL;

	make_idle(d);
	assert_int_equal(run_merge(a, d, NULL), 0);
	support_check_short(three_hosts(a, b, c), "hosts-idle", 100);
	e = host_with("e", 20000);
	e->services[0].losses[RUN_LOSS_MULTIPLEXED] = e->services[0].accepted;
	assert_int_equal(run_merge(a, e, NULL), 0);
	support_check_short(a, "hosts-unknown", 100);
}

static void add_joined(struct run *run, size_t host, const char *name, uint64_t wait_ns)
{
	run->joined->hosts[host] = (struct run_joined_step){
		.name = strdup(name),
		.count = REQUESTS,
		.sum = {.wait_ns = REQUESTS * wait_ns,
			.round_trip_ns = REQUESTS * 50000,
			.network_ns = REQUESTS * 30000},
	};
	run->joined->hosts[host].sum.stages[STAGE_SERVICE] =
		(struct run_number){true, REQUESTS * 20000};
}

static void join(struct run *a, uint64_t wait_ns)
{
	a->joined = calloc(1, sizeof(*a->joined));
	assert_non_null(a->joined);
	a->joined->hosts = calloc(2, sizeof(*a->joined->hosts));
	assert_non_null(a->joined->hosts);
	a->joined->host_count = 2;
	add_joined(a, 0, "a", wait_ns);
	add_joined(a, 1, "b", 0);
}

/* Requests wait for a free connection before they are sent. That is in no round trip, and no host's doing. */
static void a_late_driver_makes_no_host_slow(void **state)
{
	autorun struct run *a = host_with("a", 20000), *b = host_with("b", 20000);

	assert_int_equal(run_merge(a, b, NULL), 0);
	join(a, 900000);
	support_check_short(a, "hosts-late-driver", 100);
}

/* A host that got no request has no joined exchange either. */
static void one_is_idle_beside_joined_ones(void **state)
{
	autorun struct run *a = host_with("a", 20000), *b = host_with("b", 20000);
	autorun struct run *c = host_with("c", 20000);
	autofree struct report_host *hosts = NULL;
	size_t count;

	make_idle(c);
	three_hosts(a, b, c);
	join(a, 0);
	support_check_short(a, "hosts-joined-idle", 100);
	assert_int_equal(report_list_hosts(a, &count, &hosts), 0);
	assert_int_equal(count, 3);
	assert_true(hosts[0].joined && hosts[1].joined && !hosts[2].joined);
	assert_true(hosts[0].round_trip_ns == 50000);
	assert_string_equal(hosts[2].name, "c");
	assert_string_equal(hosts[2].text, "no requests");
}

/* Add a copy of the first service, in a pod: its server takes @service_ns for each request. */
static void add_pod(struct run *run, const char *pod, uint64_t service_ns)
{
	autorun struct run *other = support_observer_run();
	struct run_service *service = &other->services[0];
	struct histogram *times = &service->stages[STAGE_SERVICE].histogram;
	struct run_service *added = ARRAY_APPEND(run->services, run->service_count);

	assert_non_null(added);
	service->netns += (uint32_t)run->service_count;
	snprintf(service->place.pod, sizeof(service->place.pod), "%s", pod);
	strcpy(service->place.pod_namespace, "shop");
	*times = (struct histogram){0};
	for (unsigned int i = 0; i < REQUESTS; i++)
		histogram_record(times, service_ns);
	*added = *service;
	*service = (struct run_service){0};
}

/* Two replicas and a database, all at one port of one host. */
static struct run *host_with_pods(const char *host)
{
	struct run *run = host_with(host, 9000000);

	strcpy(run->services[0].place.pod, "db-0");
	strcpy(run->services[0].place.pod_namespace, "shop");
	add_pod(run, "web-7d9f8b6c5d-x2x4z", 20000);
	add_pod(run, "web-7d9f8b6c5d-b9k2m", 5000000);
	return run;
}

static void pods_that_do_the_same_are_compared(void **state)
{
	autorun struct run *run = host_with_pods("node");

	support_check_short(run, "hosts-pods", 100);
}

static void pods_on_several_hosts(void **state)
{
	autorun struct run *a = host_with_pods("a"), *b = host_with_pods("b");

	strcpy(b->services[1].place.pod, "web-7d9f8b6c5d-zzzzz");
	assert_int_equal(run_merge(a, b, NULL), 0);
	support_check_short(a, "hosts-pods-and-hosts", 100);
}

/* Join all of the driver's requests with the exchanges of one pod. */
static void join_pods(struct run *run, size_t with)
{
	join(run, 0);
	for (size_t i = 0; i < 2; i++) {
		struct run_joined_step *row = &run->joined->hosts[i];
		char place[RUN_PLACE_NAME];

		free(row->name);
		row->name = strdup(run->host);
		row->place = strdup(run_place_name(&run->services[1 + i].place, place));
		row->count = i == with ? REQUESTS : 0;
	}
}

static void the_drivers_pod_is_reported(void **state)
{
	autorun struct run *run = host_with_pods("node"), *driver = support_driver_run();

	assert_int_equal(run_merge(run, driver, NULL), 0);
	join_pods(run, 0);
	assert_ptr_equal(report_driven_service(run), &run->services[1]);
	run->joined->hosts[1].count = REQUESTS;
	assert_null(report_driven_service(run));
}

/* Names come from documents of others. */
static void foreign_names_do_no_harm(void **state)
{
	static const char name[] =
		"\033]0;x\007-a-host-whose-name-is-as-long-as-linux-allows-it-to-be-63-bytes";
	autorun struct run *a = host_with("a", 20000), *b = host_with(name, 5000000);
	autorun struct run *c = host_with("%s%n", 30000);

	support_check_short(three_hosts(a, b, c), "hosts-foreign", 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slow_one_is_named),
		cmocka_unit_test(alike_ones_are_not_blamed),
		cmocka_unit_test(one_that_hangs_comes_first),
		cmocka_unit_test(idle_ones_are_not_compared),
		cmocka_unit_test(a_late_driver_makes_no_host_slow),
		cmocka_unit_test(one_is_idle_beside_joined_ones),
		cmocka_unit_test(pods_that_do_the_same_are_compared),
		cmocka_unit_test(pods_on_several_hosts),
		cmocka_unit_test(the_drivers_pod_is_reported),
		cmocka_unit_test(foreign_names_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
