// SPDX-License-Identifier: MIT
/* gRPC messages in pieces of any size, and the verdicts on statuses. */
#include "driver/test.h"

#include <errno.h>
#include <string.h>

#include "engine/http2/grpc.h"
#include "sojourn/cleanup.h"

static enum run_error judge(const char *expected, const char *status, const char *data,
			    size_t length, size_t piece, enum verdict *ret_verdict)
{
	struct grpc_expectation expectation = {0};
	autofree char *error = NULL;
	struct grpc_response response;

	if (expected)
		assert_int_equal(grpc_parse_expectation(expected, &expectation, &error), 0);
	grpc_response_begin(&response);
	for (size_t at = 0; at < length; at += piece)
		grpc_response_feed(&response, data + at, length - at < piece ? length - at : piece);
	if (status)
		grpc_response_status(&response, status, strlen(status));
	return grpc_judge(&expectation, &response, ret_verdict);
}

static void test_pieces(void **state)
{
	char data[5 + 259] = "\0\0\0\1\3"; /* 259 bytes in big endian */
	enum verdict verdict;

	for (size_t piece = 1; piece < sizeof(data) + 2; piece++) {
		assert_int_equal(judge(NULL, "0", data, sizeof(data), piece, &verdict),
				 RUN_NO_ERROR);
		assert_int_equal(verdict, VERDICT_GOOD);
		assert_int_equal(judge(NULL, "0", data, sizeof(data) - 1, piece, &verdict),
				 RUN_ERROR_MALFORMED);
		assert_int_equal(judge(NULL, "0", data, 4, piece, &verdict), RUN_ERROR_MALFORMED);
	}
}

static void test_statuses(void **state)
{
	static const char empty[] = "\0\0\0\0";
	static const struct {
		const char *expected, *status;
		size_t length; /* of an empty message, or without one */
		enum run_error error;
		enum verdict verdict;
	} rows[] = {
		{NULL, "0", 5, RUN_NO_ERROR, VERDICT_GOOD},
		{NULL, "0", 0, RUN_ERROR_MALFORMED, VERDICT_GOOD},
		{NULL, NULL, 5, RUN_ERROR_MALFORMED, VERDICT_GOOD},
		{NULL, "", 5, RUN_ERROR_MALFORMED, VERDICT_GOOD},
		{NULL, "-1", 5, RUN_ERROR_MALFORMED, VERDICT_GOOD},
		{NULL, "5", 0, RUN_NO_ERROR, VERDICT_BAD_STATUS},
		{NULL, "99999999", 0, RUN_NO_ERROR, VERDICT_BAD_STATUS},
		{"5", "5", 0, RUN_NO_ERROR, VERDICT_GOOD},
		{"not_found,OK", "5", 0, RUN_NO_ERROR, VERDICT_GOOD},
		{"5", "0", 5, RUN_NO_ERROR, VERDICT_UNEXPECTED},
		{"0", "17", 0, RUN_NO_ERROR, VERDICT_UNEXPECTED},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		enum verdict verdict = VERDICT_GOOD;

		assert_int_equal(
			judge(rows[i].expected, rows[i].status, empty, rows[i].length, 3, &verdict),
			rows[i].error);
		assert_int_equal(verdict, rows[i].verdict);
	}
}

static void test_refusals(void **state)
{
	static const char *const wrong[] = {"17", "-1", "", "fine", "0,", "other"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct grpc_expectation expectation;
		autofree char *error = NULL;

		assert_int_equal(grpc_parse_expectation(wrong[i], &expectation, &error), -EINVAL);
		assert_non_null(strstr(error, "--expect-grpc-status"));
	}
}

/* Two messages came with OK. Another status needs none. */
static void test_replies(void **state)
{
	static const struct {
		const char *expected;
		enum verdict verdict;
	} rows[] = {{"2", VERDICT_GOOD},
		    {"any", VERDICT_GOOD},
		    {"1", VERDICT_UNEXPECTED},
		    {"0", VERDICT_UNEXPECTED}};
	const char *const wrong[] = {"", "-1", "some", "2,3"};
	struct grpc_response response;
	autofree char *error = NULL;

	grpc_response_begin(&response);
	grpc_response_feed(&response, "\0\0\0\0\1a\0\0\0\0", 11);
	grpc_response_status(&response, "0", 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct grpc_expectation expectation = {0};
		enum verdict verdict;

		assert_int_equal(grpc_parse_replies(rows[i].expected, &expectation, &error), 0);
		assert_int_equal(grpc_judge(&expectation, &response, &verdict), RUN_NO_ERROR);
		assert_int_equal(verdict, rows[i].verdict);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct grpc_expectation expectation = {0};
		autofree char *why = NULL;

		assert_int_equal(grpc_parse_replies(wrong[i], &expectation, &why), -EINVAL);
		assert_non_null(strstr(why, "--grpc-replies"));
	}
}

static void test_prefix(void **state)
{
	unsigned char prefix[GRPC_PREFIX_SIZE];

	grpc_prefix(0x01020304, prefix);
	assert_memory_equal(prefix, "\0\1\2\3\4", 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),	 cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_refusals), cmocka_unit_test(test_replies),
		cmocka_unit_test(test_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
