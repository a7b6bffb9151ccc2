// SPDX-License-Identifier: MIT
/* lib/run/run.c: making and subtracting run documents. */
#include "unit.h"

#include <string.h>

#include "sojourn/array.h"
#include "sojourn/run_sum.h"
#include "support/runs.h"

static void new_run_says_where_and_when(void **state)
{
	char *command[] = {(char *)"sleep", (char *)"1", NULL};
	autorun struct run *run = run_new("sojourn-test", command);

	assert_non_null(run);
	assert_true(*run->host && *run->kernel);
	assert_string_equal(run->tool, "sojourn-test " SOJOURN_VERSION);
	assert_int_equal(strlen(run->started_at), strlen("2026-11-21T08:00:00.000Z"));
	assert_string_equal(run->command[1], "1");
	assert_null(run->command[2]);
	assert_ptr_not_equal(run->command[0], command[0]);
	assert_null(run->cost);
	assert_null(run->driver);
}

static void added_elements_are_zeroed(void **state)
{
	autorun struct run *run = run_new("sojourn-test", NULL);
	static const struct run_service zero_service;
	static const struct run_process zero_process;

	for (unsigned int i = 0; i < 20; i++) {
		struct run_service *service = ARRAY_APPEND(run->services, run->service_count);

		assert_memory_equal(service, &zero_service, sizeof(zero_service));
		for (unsigned int j = 0; j < 20; j++)
			assert_memory_equal(
				ARRAY_APPEND(service->processes, service->process_count),
				&zero_process, sizeof(zero_process));
		memset(service->protocol, 'x', 3);
	}
	assert_int_equal(run->service_count, 20);
	assert_int_equal(run->services[19].process_count, 20);
}

/* Two readings of one observation: all counts are subtracted, gauges stay. */
static void subtract_leaves_the_period(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();
	struct run_service *service = &run->services[0];

	run->duration_ns = 5100000000;
	service->exchanges += 7;
	service->accepted += 2;
	service->closes[RUN_TIMED_OUT] += 3;
	service->losses[RUN_LOSS_UNANSWERED] += 4;
	service->accept_delayed += 5;
	service->accept_delay_ns += 6000;
	service->time_wait.value = 20;
	service->accept_queue.overflows.value += 8;
	service->last_message_ns += 1000;
	histogram_record(&service->stages[STAGE_SERVICE].histogram, 1000000);
	run->cost->cpu_ns += 1234;
	run->services_dropped = 1;

	run_subtract(run, earlier);
	assert_int_equal(run->duration_ns, 3000000000);
	assert_string_equal(run->started_at, "2026-11-21T08:00:02.100Z");
	assert_int_equal(service->exchanges, 7);
	assert_int_equal(service->accepted, 2);
	assert_int_equal(service->closes[RUN_TIMED_OUT], 3);
	assert_int_equal(service->closes[RUN_CLOSE_BY_CLIENT], 0);
	assert_int_equal(service->losses[RUN_LOSS_UNANSWERED], 4);
	assert_int_equal(service->accept_delayed, 5);
	assert_int_equal(service->accept_delay_ns, 6000);
	assert_int_equal(service->bytes_in, 0);
	assert_int_equal(service->time_wait.value, 20);
	assert_int_equal(service->accept_queue.overflows.value, 8);
	assert_int_equal(service->accept_queue.depth_max.value, 3);
	assert_int_equal(service->stages[STAGE_SERVICE].histogram.count, 1);
	assert_int_equal(service->stages[STAGE_SERVICE].histogram.sum, 1000000);
	assert_int_equal(service->stages[STAGE_SERVICE].histogram.max, 1000000);
	assert_int_equal(service->stages[STAGE_RECEIVE].histogram.count, 0);
	assert_int_equal(run->cost->cpu_ns, 1234);
	assert_int_equal(run->cost->resident_bytes, 5 << 20);
	assert_int_equal(run->services_dropped, 1);
}

/*
 * A service loses its slot within the period and gets one again: its counts from before the period
 * are in neither of its parts.
 */
static void subtract_finds_a_reclaimed_service_in_the_sum(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();
	struct run_service *service = &run->services[0];
	uint64_t accepted = service->accepted, exchanges = service->exchanges;

	earlier->reclaimed = (struct run_reclaimed){5, 1000, 2000, 3000, 4000};
	run->reclaimed = earlier->reclaimed;
	run->reclaimed.services += 1;
	run->reclaimed.accepted += accepted + 2;
	run->reclaimed.exchanges += exchanges + 3;
	run->reclaimed.bytes_in += service->bytes_in + 40;
	run->reclaimed.bytes_out += service->bytes_out;
	service->turn = 6;
	run_subtract(run, earlier);
	assert_int_equal(run->reclaimed.services, 1);
	assert_int_equal(run->reclaimed.accepted, 2);
	assert_int_equal(run->reclaimed.exchanges, 3);
	assert_int_equal(run->reclaimed.bytes_in, 40);
	assert_int_equal(run->reclaimed.bytes_out, 0);
	/* The counts of the new slot started with it. */
	assert_int_equal(service->accepted, accepted);
	assert_int_equal(service->exchanges, exchanges);
}

static void subtract_knows_the_first_message_or_says_so(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();
	struct run_service *service = &run->services[0];
	uint64_t last = service->last_message_ns;

	/* Nothing since. */
	run_subtract(run, earlier);
	assert_int_equal(service->first_message_ns, 0);
	assert_int_equal(service->last_message_ns, 0);

	/* Messages since, but the first of them was not noted. */
	service->first_message_ns = earlier->services[0].first_message_ns;
	service->last_message_ns = last + 10;
	run_subtract(run, earlier);
	assert_int_equal(service->first_message_ns, 0);
	assert_int_equal(service->last_message_ns, last + 10);

	/* The observer noted the first message again. */
	service->first_message_ns = last + 5;
	run_subtract(run, earlier);
	assert_int_equal(service->first_message_ns, last + 5);

	/* There was none before. */
	earlier->services[0].first_message_ns = earlier->services[0].last_message_ns = 0;
	run_subtract(run, earlier);
	assert_int_equal(service->first_message_ns, last + 5);
	assert_int_equal(service->last_message_ns, last + 10);
}

static void subtract_matches_services(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();

	support_add_service(run, 8081, 10);
	support_add_service(run, 8080, 20)->netns++;
	support_miss_stage(&earlier->services[0], STAGE_SERVICE, "not attached yet");
	run_subtract(run, earlier);
	assert_int_equal(run->services[0].exchanges, 0);
	assert_int_equal(run->services[1].exchanges, 10);
	assert_int_equal(run->services[2].exchanges, 20);
	assert_int_equal(run->services[0].stages[STAGE_SERVICE].histogram.count, 1000);
	assert_int_equal(run->services[0].stages[STAGE_RESPOND].histogram.count, 0);
}

static void subtract_never_wraps(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();

	earlier->services[0].exchanges += 5;
	earlier->services[0].accept_queue.overflows.known = false;
	run_subtract(run, earlier);
	assert_int_equal(run->services[0].exchanges, 0);
	assert_false(run->services[0].accept_queue.overflows.known);
}

static void subtract_programs_by_name(void **state)
{
	autorun struct run *earlier = support_full_run(), *run = support_full_run();
	struct run_program swapped = earlier->cost->programs[0];

	earlier->cost->programs[0] = earlier->cost->programs[1];
	earlier->cost->programs[1] = swapped;
	run->cost->programs[0].runs.value += 3;
	run->cost->programs[1].recursion_misses += 4;
	run_subtract(run, earlier);
	assert_int_equal(run->cost->programs[0].runs.value, 3);
	assert_int_equal(run->cost->programs[0].run_ns.value, 0);
	assert_int_equal(run->cost->programs[1].recursion_misses, 4);
}

/* Two routes of a service, each with @count responses, and as many timed. */
static void set_routes(struct run_service *service, const char *name, uint64_t count)
{
	struct run_routes *routes = &service->routes;

	routes->count = 2;
	routes->list = calloc(routes->count, sizeof(*routes->list));
	assert_non_null(routes->list);
	for (size_t i = 0; i < routes->count; i++) {
		struct run_route *route = &routes->list[i];

		route->route = strdup(i ? RUN_ROUTE_OTHER : name);
		assert_non_null(route->route);
		route->count = route->status[2] = count + i;
		for (uint64_t k = 0; k < count; k++)
			histogram_record(&route->respond, 1000);
	}
	routes->not_known[RUN_ROUTELESS_CUT] = count;
}

static void routes_are_subtracted_and_added_one_by_one(void **state)
{
	autorun struct run *earlier = support_observer_run(), *run = support_observer_run();
	autorun struct run *other = support_observer_run();
	struct run_service *service = &run->services[0];

	set_routes(&earlier->services[0], "/a", 3);
	set_routes(service, "/a", 10);
	run_subtract(run, earlier);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(service->routes.list[i].count, 7);
		assert_int_equal(service->routes.list[i].status[2], 7);
		assert_int_equal(service->routes.list[i].respond.count, 7);
	}
	run_service_add(service, &earlier->services[0]);
	assert_int_equal(service->routes.list[1].count, 7 + 4);
	assert_int_equal(service->routes.list[1].respond.sum, 10 * 1000);
	assert_int_equal(service->routes.not_known[RUN_ROUTELESS_CUT], 10);
	/* The same counts of other routes are no part of the sum. */
	set_routes(&other->services[0], "/b", 3);
	run_service_add(service, &other->services[0]);
	assert_null(service->routes.list);
	assert_int_equal(service->routes.count, 0);
}

static void errors_are_summed(void **state)
{
	struct run_driver driver = {0};

	assert_int_equal(run_driver_errors(&driver), 0);
	for (unsigned int i = 0; i < RUN_ERROR_COUNT; i++)
		driver.errors[i] = 1ULL << i;
	assert_int_equal(run_driver_errors(&driver), (1ULL << RUN_ERROR_COUNT) - 1);
}

static void names_say_which_pods_are_alike(void **state)
{
	static const struct {
		const char *pod, *container, *workload;
	} names[] = {
		{"web-7d9f8b6c5d-x2x4z", "nginx", "shop/web"}, /* Deployment */
		{"web-api-6d4cf56db6-8xk2p", "", "shop/web-api"},
		{"agent-b9k2m", "", "shop/agent"}, /* DaemonSet */
		{"db-0", "", "shop/db"},	   /* StatefulSet */
		{"db-12", "", "shop/db"},
		{"web", "", "shop/web"},
		{"web-cache-blue", "", "shop/web-cache-blue"},
		{"-12345", "", "shop/-12345"},
		{"web-", "", "shop/web-"},
		{"", "shop-web-2", "shop-web"}, /* Docker Compose */
		{"", "nginx", "nginx"},
		{"", "", ""},
	};
	char buffer[RUN_PLACE_NAME];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct run_place place = {.pod_namespace = "shop"};

		strcpy(place.pod, names[i].pod);
		strcpy(place.container, names[i].container);
		assert_string_equal(run_place_workload(&place, buffer), names[i].workload);
	}
	assert_string_equal(run_place_workload(&(struct run_place){.pod_uid = "6d0c"}, buffer),
			    "a pod");
	assert_string_equal(run_place_workload(&(struct run_place){.container_id = "3f"}, buffer),
			    "a container");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_run_says_where_and_when),
		cmocka_unit_test(added_elements_are_zeroed),
		cmocka_unit_test(subtract_leaves_the_period),
		cmocka_unit_test(subtract_finds_a_reclaimed_service_in_the_sum),
		cmocka_unit_test(subtract_knows_the_first_message_or_says_so),
		cmocka_unit_test(subtract_matches_services),
		cmocka_unit_test(subtract_never_wraps),
		cmocka_unit_test(subtract_programs_by_name),
		cmocka_unit_test(routes_are_subtracted_and_added_one_by_one),
		cmocka_unit_test(errors_are_summed),
		cmocka_unit_test(names_say_which_pods_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
