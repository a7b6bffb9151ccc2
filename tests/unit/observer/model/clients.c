// SPDX-License-Identifier: MIT
/* A service's clients: each address once, ordered by its number of connections. */
#include <errno.h>

#include "model/clients.h"
#include "unit.h"

static void visit(struct clients_search *search, uint8_t last_byte, uint16_t port, uint8_t state)
{
	struct resource_socket socket = {.family = 2,
					 .state = state,
					 .source_port = port,
					 .destination = {{192, 0, 2, last_byte}}};

	clients_visit(search, &socket);
}

/* Each address once, the busiest first; other ports and states do not count. */
static void test_clients(void **state)
{
	struct snapshot_clients clients = {};
	struct clients_search search = {.port = 80, .found = &clients};

	for (unsigned int i = 0; i < 300; i++)
		visit(&search, i % 3 ? (uint8_t)(i % 2 + 1) : 7, i < 290 ? 80 : 81,
		      SOCKET_ESTABLISHED);
	visit(&search, 9, 80, SOCKET_TIME_WAIT);
	clients_add_up(&clients);
	assert_int_equal(clients.connections, 290);
	assert_int_equal(clients.count, 3);
	assert_int_equal(clients.list[0].connections, 97);
	assert_int_equal(clients.list[1].connections, 97);
	assert_int_equal(clients.list[2].connections, 96);
	snapshot_clients_free(&clients);
	assert_int_equal(clients.count, 0);
	clients_add_up(&clients);
	assert_int_equal(clients.count, 0);
}

/* For another network namespace than our own nothing is reported. */
static void test_another_namespace(void **state)
{
	struct snapshot_clients clients = {};

	assert_int_equal(clients_find(1, 80, &clients), -ENODATA);
	assert_null(clients.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clients),
		cmocka_unit_test(test_another_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
