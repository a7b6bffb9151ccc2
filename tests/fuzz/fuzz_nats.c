// SPDX-License-Identifier: MIT
/*
 * Any bytes as a NATS server's, or as a file of credentials. Operations are the same in pieces as
 * in one, and stay within the bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "nats/login.h"
#include "nats/text.h"

/* Return a sum over all operations, so that two readings can be compared. */
static uint64_t read_in_pieces(const char *bytes, size_t size, size_t step)
{
	struct nats_input input = {0};
	struct nats_operation operation;
	uint64_t sum = 0;
	int taken = 0;

	for (size_t at = 0; at < size && taken >= 0; at += step) {
		require(!nats_input_add(&input, bytes + at, size - at < step ? size - at : step));
		while ((taken = nats_input_take(&input, &operation)) == 1) {
			sum = 31 * sum + operation.verb + 7 * operation.text_length +
			      11 * operation.payload_length;
			for (size_t i = 0; i < operation.text_length; i++)
				sum = 31 * sum + (unsigned char)operation.text[i];
			for (size_t i = 0; i < operation.payload_length; i++)
				sum = 31 * sum + (unsigned char)operation.payload[i];
		}
	}
	require(taken == 0 || taken == -EBADMSG);
	nats_input_clear(&input);
	return sum;
}

static void check_login(const char *bytes, size_t size)
{
	struct nats_login login = {0};
	autofree char *error = NULL, *reason = NULL, *json = NULL;
	int err = nats_login_parse(bytes, size, &login, &error);

	require(!err == !error);
	if (!err)
		err = nats_login_connect(&login, "nonce", false, &json, &reason);
	require(!json == !!err);
	nats_login_clear(&login);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;

	if (!size)
		return 0;
	require(read_in_pieces(bytes, size - 1, 1 + data[0]) ==
		read_in_pieces(bytes, size - 1, size));
	check_login(bytes, size - 1);
	return 0;
}
