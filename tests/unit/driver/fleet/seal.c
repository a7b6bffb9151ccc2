// SPDX-License-Identifier: MIT
/* Seals of records: only the secret makes them, and the run's key does not show it. */
#include "driver/test.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/channel/seal.h"
#include "sojourn/cleanup.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define RECORD "{\"command\":[\"sojourn-drive\"]}"

/* As printed by "openssl dgst -sha256 -hmac SECRET". */
static void keys_and_seals_are_hmacs(void **state)
{
	char key[SECRET_LENGTH + 1];
	autofree char *sealed = seal_put(SECRET, RECORD);

	assert_int_equal(seal_key(SECRET, key), 0);
	assert_string_equal(key, "68d6d73080fbe4ed3f787b415bd537b0");
	assert_string_equal(
		sealed, "e7ded4f15d54e40c106294524ae6348cde271fcc4e77fecf1edb6e38ff74f3d2" RECORD);
	assert_string_equal(seal_open(SECRET, sealed, strlen(sealed)), RECORD);
}

static void a_changed_byte_opens_nothing(void **state)
{
	autofree char *sealed = seal_put(SECRET, RECORD);
	size_t length = strlen(sealed);

	for (size_t i = 0; i < length; i++) {
		sealed[i] ^= 1;
		assert_null(seal_open(SECRET, sealed, length));
		sealed[i] ^= 1;
	}
	for (size_t i = 0; i < length; i++)
		assert_null(seal_open(SECRET, sealed, i));
}

static void another_secret_opens_nothing(void **state)
{
	char key[SECRET_LENGTH + 1];
	autofree char *sealed = NULL;

	assert_int_equal(seal_key(SECRET, key), 0);
	sealed = seal_put(key, RECORD); /* as a member could */
	assert_null(seal_open(SECRET, sealed, strlen(sealed)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_and_seals_are_hmacs),
		cmocka_unit_test(a_changed_byte_opens_nothing),
		cmocka_unit_test(another_secret_opens_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
