// SPDX-License-Identifier: MIT
/* The ports of the driver's targets. */
#include <string.h>

#include "parts.h"
#include "sojourn/units.h"

static uint16_t url_port(const char *url)
{
	const char *authority, *end, *colon;
	autofree char *port = NULL;
	uint64_t value;

	authority = url ? strstr(url, "://") : NULL;
	if (!authority)
		return 0;
	authority += 3;
	end = authority + strcspn(authority, "/?#");
	colon = memrchr(authority, ':', (size_t)(end - authority));
	/* A colon inside brackets belongs to the address. */
	if (!colon || memchr(colon, ']', (size_t)(end - colon)))
		return !strncmp(url, "https:", 6) ? 443 : 80;
	port = strndup(colon + 1, (size_t)(end - colon - 1));
	if (!port || units_parse_u64(port, 1, UINT16_MAX, &value))
		return 0;
	return (uint16_t)value;
}

uint16_t report_target_port(const struct run_driver *driver)
{
	return url_port(driver->target);
}

bool report_has_port(const struct report_ports *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->count; i++)
		if (ports->list[i] == port)
			return true;
	return false;
}

static void add_port(struct report_ports *ports, const char *url)
{
	uint16_t port = url ? url_port(url) : 0;

	if (port && !report_has_port(ports, port) && ports->count < RUN_ROWS_MAX)
		ports->list[ports->count++] = port;
}

struct report_ports report_target_ports(const struct run_driver *driver)
{
	const struct run_row_list *targets = &driver->rows[RUN_ROWS_TARGET];
	const struct run_row_list *steps = &driver->rows[RUN_ROWS_STEP];
	struct report_ports ports = {0};

	add_port(&ports, driver->target);
	for (size_t i = 0; i < driver->part_count; i++)
		add_port(&ports, driver->parts[i].target);
	for (size_t i = 0; i < targets->count; i++)
		add_port(&ports, targets->list[i].name);
	for (size_t i = 0; i < steps->count; i++)
		add_port(&ports, steps->list[i].target);
	return ports;
}
