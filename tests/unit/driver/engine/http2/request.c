// SPDX-License-Identifier: MIT
/* From HTTP/1.1's bytes to HTTP/2's headers: order, case, dropped headers, and the body's place. */
#include "driver/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/http2/request.h"
#include "sojourn/cleanup.h"

/* "name=value|name=value|body" */
static char *split(const char *text, bool grpc, char *buffer, size_t size)
{
	autofree char *bytes = strdup(text);
	struct h2_request request;
	size_t used = 0;

	h2_request_split(bytes, strlen(text), "https", grpc, &request);
	for (size_t i = 0; i < request.header_count; i++)
		used += (size_t)snprintf(
			buffer + used, size - used, "%.*s=%.*s|", (int)request.headers[i].namelen,
			(const char *)request.headers[i].name, (int)request.headers[i].valuelen,
			(const char *)request.headers[i].value);
	snprintf(buffer + used, size - used, "%.*s", (int)request.body_length,
		 request.body ? request.body : "");
	return buffer;
}

static void test_split(void **state)
{
	char text[512];

	assert_string_equal(split("GET /a?b HTTP/1.1\r\nX-Name: \t v: w\r\nHost: h:1\r\n\r\n",
				  false, text, sizeof(text)),
			    ":method=GET|:scheme=https|:authority=h:1|:path=/a?b|x-name=v: w|");
	assert_string_equal(
		split("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\na\r\n\r\nb", false,
		      text, sizeof(text)),
		":method=PUT|:scheme=https|:authority=h|:path=/|content-length=6|"
		"a\r\n\r\nb");
	assert_string_equal(split("GET / HTTP/1.1\r\nEmpty:\r\n\r\n", false, text, sizeof(text)),
			    ":method=GET|:scheme=https|:authority=|:path=/|empty=|");
}

static void test_grpc(void **state)
{
	char text[512];

	assert_string_equal(split("POST /s/m HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
				  true, text, sizeof(text)),
			    ":method=POST|:scheme=https|:authority=h|:path=/s/m|te=trailers|"
			    "content-type=application/grpc|x");
	assert_string_equal(
		split("POST /s/m HTTP/1.1\r\nContent-Type: application/grpc+json\r\n\r\n", true,
		      text, sizeof(text)),
		":method=POST|:scheme=https|:authority=|:path=/s/m|"
		"content-type=application/grpc+json|te=trailers|");
}

static void test_foreign_headers(void **state)
{
	const char *headers[H2_HEADERS_MAX] = {"TEX: a", "Keep-Alive: 1"};
	struct request request = {.headers = headers, .header_count = 1};
	autofree char *error = NULL, *many = NULL;

	assert_int_equal(h2_request_check(&request, &error), 0);
	request.header_count = 2;
	assert_int_equal(h2_request_check(&request, &error), -EINVAL);
	assert_non_null(strstr(error, "'Keep-Alive'"));
	request.header_count = H2_HEADERS_MAX;
	assert_int_equal(h2_request_check(&request, &many), -EINVAL);
	assert_non_null(strstr(many, "118"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_grpc),
		cmocka_unit_test(test_foreign_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
