// SPDX-License-Identifier: MIT
/*
 * Any bytes as the messages of a gRPC response, and a line as its status and the expectation. The
 * verdict must not depend on how the bytes are cut, and only one whole message is an answer.
 */
#include <errno.h>
#include <string.h>

#include "engine/http2/grpc.h"
#include "fuzz.h"

struct answer {
	enum run_error error;
	enum verdict verdict;
	uint32_t messages;
};

static struct answer judge(const struct grpc_expectation *expectation, const char *status,
			   const char *data, size_t length, size_t piece)
{
	struct answer answer = {0};
	struct grpc_response response;

	grpc_response_begin(&response);
	for (size_t i = 0; i < length; i += piece)
		grpc_response_feed(&response, data + i, length - i < piece ? length - i : piece);
	grpc_response_status(&response, status, strlen(status));
	answer.error = grpc_judge(expectation, &response, &answer.verdict);
	answer.messages = response.messages;
	return answer;
}

/*
 * The first line is the status, the second --expect-grpc-status unless empty; then a piece's
 * length.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size), *error = NULL;
	struct grpc_expectation expectation = {0};
	struct answer whole, pieces;
	char *rest = text, *status, *expected;
	size_t head;

	require(text != NULL);
	status = strsep(&rest, "\n");
	expected = strsep(&rest, "\n");
	if (!rest || !expected)
		return 0;
	head = (size_t)(rest - text);
	if (*expected && grpc_parse_expectation(expected, &expectation, &error)) {
		require(error && strstr(error, "--expect-grpc-status"));
		return 0;
	}
	if (head >= size)
		return 0;
	whole = judge(&expectation, status, (const char *)data + head + 1, size - head - 1, size);
	pieces = judge(&expectation, status, (const char *)data + head + 1, size - head - 1,
		       data[head] ? data[head] : 1);
	require(whole.error == pieces.error && whole.messages == pieces.messages);
	require(whole.error != RUN_NO_ERROR || whole.verdict == pieces.verdict);
	return 0;
}
