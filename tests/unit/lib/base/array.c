// SPDX-License-Identifier: MIT
/* Arrays that grow: every entry stays, at any count; without memory the array stays as it was. */
#include "unit.h"

#include <stdint.h>

#include "sojourn/array.h"

static void test_every_entry_stays(void **state)
{
	uint64_t *list = NULL;
	size_t count = 0;

	for (; count < 5000; count++) {
		assert_int_equal(ARRAY_GROW(list, count), 0);
		list[count] = count;
	}
	for (size_t i = 0; i < count; i++)
		assert_int_equal(list[i], i);
	free(list);
}

static void test_of_any_length(void **state)
{
	size_t count = 3;
	uint64_t *list = calloc(count, sizeof(*list)), *entry;

	assert_non_null(list);
	for (; count < 100; *entry = count) {
		entry = ARRAY_APPEND(list, count);
		assert_ptr_equal(entry, &list[count - 1]);
		assert_int_equal(*entry, 0);
	}
	assert_int_equal(list[2], 0);
	for (size_t i = 3; i < count; i++)
		assert_int_equal(list[i], i + 1);
	free(list);
}

static void test_no_memory(void **state)
{
	volatile size_t count = (size_t)1 << 61;
	uint64_t *list = NULL;

	assert_int_equal(ARRAY_GROW(list, count), -ENOMEM);
	assert_null(list);
	assert_null(ARRAY_APPEND(list, count));
	assert_null(list);
	assert_int_equal(count, (size_t)1 << 61);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_entry_stays),
		cmocka_unit_test(test_of_any_length),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
