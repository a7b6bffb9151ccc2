// SPDX-License-Identifier: MIT
/*
 * Any bytes as the first line of HTTP/1's request and response, through the kernel's own parsers. The method and
 * path of request.h only lose routes and stay bounded. A simple line's route is the rule's, a status the C library's.
 */
#include <stdio.h>

#include "bpf/protocol/routes.h"
#include "fuzz.h"

#include "../../bpf/protocol/request.h"
#include "../../bpf/protocol/status.h"

static const char *const given[] = {"/a",	"/a*",	  "GET /a",	 "/*",
				    "PUT /",	"/~\\*",  "/index.html", "POST /ab*",
				    "A-B_C /a", "/s.E/G", "/s.E/*"};

static struct request_line line_of(const uint8_t *data, size_t size)
{
	struct request_line l = {};

	for (size_t i = 0; i < size; i++) {
		struct request_line before = l;

		request_byte(&l, data[i]);
		require(l.stage >= before.stage && l.length <= REQUEST_METHOD_LONGEST);
		require((before.method.misses & ~l.method.misses) == 0);
		require((before.path.misses & ~l.path.misses) == 0);
		if (before.stage >= REQUEST_OVER)
			require(!memcmp(&before, &l, sizeof(l)));
	}
	return l;
}

/* Return the route of a method and a path that end at spaces or at a query; NULL: the line is another one. */
static const char *simple_route(const uint8_t *data, size_t size)
{
	const uint8_t *space = memchr(data, ' ', size), *path, *end;

	if (!space || space == data || space - data > REQUEST_METHOD_LONGEST)
		return NULL;
	for (const uint8_t *at = data; at < space; at++)
		if (!request_is_letter(*at) && *at != '-' && *at != '_')
			return NULL;
	path = space + 1;
	for (end = path; end < data + size && *end > ' ' && *end < 0x7f && *end != '?'; end++)
		;
	if (end == path || *path != '/' || end == data + size || (*end != ' ' && *end != '?'))
		return NULL;
	return route_by_rule((const char *)data, (size_t)(space - data), (const char *)path,
			     (size_t)(end - path));
}

static void check_request(const uint8_t *data, size_t size)
{
	const char *expected = simple_route(data, size);
	struct request_line l = line_of(data, size);

	if (!expected)
		return;
	require(l.stage == REQUEST_OVER);
	require(!strcmp(routes_by_row[route_row_of(l.method.misses | l.path.misses, routes_count)],
			expected));
}

/* The C library reads the number of a line that is taken. */
static void check_status(const uint8_t *data)
{
	char line[STATUS_LINE + 1] = {0};
	int minor = -1, number = -1, length = -1;
	uint32_t status = status_of_line(data);

	memcpy(line, data, STATUS_LINE);
	sscanf(line, "HTTP/1.%1d %3d%n", &minor, &number, &length);
	if (status == STATUS_UNKNOWN) {
		/* A well-formed line is never refused. */
		char again[STATUS_LINE + 1];

		snprintf(again, sizeof(again), "HTTP/1.%d %03d ", minor, number);
		require(memcmp(again, line, STATUS_LINE) != 0 || minor > 1 || minor < 0 ||
			number < 100 || number > 599);
		return;
	}
	require(minor >= 0 && minor <= 1 && length == STATUS_LINE - 1);
	require(status == (uint32_t)number && status >= 100 && status <= 599);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!routes_count)
		routes_given(given, sizeof(given) / sizeof(*given));
	check_request(data, size);
	if (size >= STATUS_LINE)
		check_status(data);
	return 0;
}
