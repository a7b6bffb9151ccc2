// SPDX-License-Identifier: MIT
/* Messages and statuses of gRPC. */
#include "grpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

void grpc_prefix(uint32_t length, unsigned char prefix[GRPC_PREFIX_SIZE])
{
	prefix[0] = 0;
	for (unsigned int i = 1; i < GRPC_PREFIX_SIZE; i++)
		prefix[i] = (unsigned char)(length >> (8 * (GRPC_PREFIX_SIZE - 1 - i)));
}

/* The last name stands for statuses that gRPC does not know. */
static int find_status(const char *text, uint64_t *ret_status)
{
	if (!units_parse_u64(text, 0, RUN_GRPC_STATUS_COUNT - 2, ret_status))
		return 0;
	for (uint64_t i = 0; i < RUN_GRPC_STATUS_COUNT - 1; i++)
		if (!strcasecmp(text, run_grpc_status_names[i])) {
			*ret_status = i;
			return 0;
		}
	return -EINVAL;
}

int grpc_parse_expectation(const char *value, struct grpc_expectation *expectation,
			   char **ret_error)
{
	autofree char *copy = strdup(value);
	char *rest = copy, *item;
	uint64_t status;

	if (!copy)
		return -ENOMEM;
	expectation->given = true;
	while ((item = strsep(&rest, ","))) {
		if (find_status(item, &status))
			return refuse(ret_error,
				      "--expect-grpc-status: '%s' is not a status from 0 to %d or "
				      "its name; write them like 0,5 or ok,not_found",
				      item, RUN_GRPC_STATUS_COUNT - 2);
		expectation->statuses |= 1U << status;
	}
	return 0;
}

int grpc_parse_replies(const char *value, struct grpc_expectation *expectation, char **ret_error)
{
	uint64_t replies = GRPC_ANY;

	if (strcmp(value, "any") && units_parse_u64(value, 0, GRPC_MESSAGES_MAX, &replies))
		return refuse(ret_error,
			      "--grpc-replies: '%s' is not a number from 0 to %d, or any", value,
			      GRPC_MESSAGES_MAX);
	expectation->replies_given = true;
	expectation->replies = (uint32_t)replies;
	return 0;
}

void grpc_response_begin(struct grpc_response *response)
{
	*response = (struct grpc_response){.status = GRPC_NO_STATUS};
}

/* Take bytes of a prefix. Return how many. */
static size_t feed_prefix(struct grpc_response *response, const char *data, size_t length)
{
	size_t taken = GRPC_PREFIX_SIZE - response->prefix_length;

	if (taken > length)
		taken = length;
	memcpy(response->prefix + response->prefix_length, data, taken);
	response->prefix_length += (uint32_t)taken;
	if (response->prefix_length < GRPC_PREFIX_SIZE)
		return taken;
	for (unsigned int i = 1; i < GRPC_PREFIX_SIZE; i++)
		response->left = response->left << 8 | response->prefix[i];
	return taken;
}

void grpc_response_feed(struct grpc_response *response, const char *data, size_t length)
{
	while (length) {
		size_t taken;

		if (response->prefix_length < GRPC_PREFIX_SIZE) {
			taken = feed_prefix(response, data, length);
		} else {
			taken = response->left < length ? response->left : length;
			response->left -= taken;
		}
		data += taken;
		length -= taken;
		if (response->prefix_length == GRPC_PREFIX_SIZE && !response->left) {
			response->messages++;
			response->prefix_length = 0;
		}
	}
}

void grpc_response_status(struct grpc_response *response, const char *value, size_t length)
{
	uint32_t status = 0;

	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9')
			return;
		if (status < RUN_GRPC_STATUS_COUNT)
			status = status * 10 + (uint32_t)(value[i] - '0');
	}
	if (length)
		response->status =
			(uint8_t)(status < RUN_GRPC_STATUS_COUNT ? status
								 : RUN_GRPC_STATUS_COUNT - 1);
}

/* Return whether a response with status OK has as many messages as expected. */
static bool has_replies(const struct grpc_expectation *expectation,
			const struct grpc_response *response)
{
	if (expectation->replies_given)
		return expectation->replies == GRPC_ANY ||
		       expectation->replies == response->messages;
	return response->messages == 1;
}

enum run_error grpc_judge(const struct grpc_expectation *expectation,
			  const struct grpc_response *response, enum verdict *ret_verdict)
{
	if (response->status == GRPC_NO_STATUS || response->prefix_length)
		return RUN_ERROR_MALFORMED;
	if (!response->status && !has_replies(expectation, response) && !expectation->replies_given)
		return RUN_ERROR_MALFORMED; /* unary: OK requires exactly one message */
	if (!response->status && !has_replies(expectation, response))
		*ret_verdict = VERDICT_UNEXPECTED;
	else if (expectation->given && !(expectation->statuses >> response->status & 1))
		*ret_verdict = VERDICT_UNEXPECTED;
	else if (!expectation->given && response->status)
		*ret_verdict = VERDICT_BAD_STATUS;
	else
		*ret_verdict = VERDICT_GOOD;
	return RUN_NO_ERROR;
}
