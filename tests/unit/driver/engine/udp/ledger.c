// SPDX-License-Identifier: MIT
/* Requests and their replies: in order, out of order, twice, late, never requested. */
#include "driver/test.h"

#include "engine/udp/ledger.h"

static struct ledger opened(uint32_t pending, bool numbered, uint64_t ids)
{
	struct ledger ledger;

	assert_int_equal(ledger_open(&ledger, pending, numbered, ids), 0);
	return ledger;
}

static enum ledger_verdict judge(struct ledger *ledger, uint64_t key)
{
	return ledger_judge(ledger_get(ledger, key));
}

/* Keys like those of echoed datagrams. */
static uint64_t scattered(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15ULL + 1;
}

static void test_one_request(void **state)
{
	struct ledger ledger = opened(4, true, 65536);
	struct ledger_entry *entry;

	assert_int_equal(judge(&ledger, 7), LEDGER_UNKNOWN);
	assert_int_equal(judge(&ledger, 0), LEDGER_UNKNOWN);
	entry = ledger_add(&ledger, 7, 3, 1);
	assert_int_equal(judge(&ledger, 7), LEDGER_ANSWERS);
	assert_ptr_equal(ledger_get(&ledger, 7), entry);
	assert_int_equal(entry->slot, 3);
	entry->left = 0;
	entry->state = LEDGER_ANSWERED;
	assert_int_equal(judge(&ledger, 7), LEDGER_DUPLICATE);
	assert_int_equal(judge(&ledger, 7), LEDGER_DUPLICATE);
	ledger_close(&ledger);
}

static void test_late_is_late_once(void **state)
{
	struct ledger ledger = opened(4, true, 65536);

	ledger_add(&ledger, 1, 0, 2)->state = LEDGER_LOST;
	assert_int_equal(judge(&ledger, 1), LEDGER_LATE);
	assert_int_equal(judge(&ledger, 1), LEDGER_LATE);
	assert_int_equal(judge(&ledger, 1), LEDGER_DUPLICATE);
	ledger_close(&ledger);
}

/* In any order each request is found, and no later one overwrites a pending one. */
static void check_disorder(bool numbered)
{
	struct ledger ledger = opened(8, numbered, 65536);
	uint64_t keys[8];

	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < 8; i++) {
			uint64_t number = round * 8 + i;

			keys[i] = numbered ? number : scattered(number);
			assert_true(ledger_has_room(&ledger, keys[i]));
			ledger_add(&ledger, keys[i], i, 1);
		}
		for (uint32_t i = 0; i < 8; i++) {
			struct ledger_entry *entry = ledger_get(&ledger, keys[i * 5 % 8]);

			assert_int_equal(ledger_judge(entry), LEDGER_ANSWERS);
			assert_int_equal(entry->slot, i * 5 % 8);
			entry->left = 0;
			entry->state = LEDGER_ANSWERED;
		}
		assert_int_equal(judge(&ledger, keys[2]), LEDGER_DUPLICATE);
	}
	ledger_close(&ledger);
}

static void test_disorder(void **state)
{
	check_disorder(true);
	check_disorder(false);
}

static void test_a_slow_one_keeps_its_place(void **state)
{
	struct ledger ledger = opened(2, false, 0);

	ledger_add(&ledger, scattered(0), 0, 1);
	for (uint32_t i = 1; i < 1000; i++)
		ledger_add(&ledger, scattered(i), 1, 1)->state = LEDGER_ANSWERED;
	assert_int_equal(judge(&ledger, scattered(0)), LEDGER_ANSWERS);
	assert_int_equal(judge(&ledger, scattered(999)), LEDGER_DUPLICATE);
	assert_int_equal(judge(&ledger, scattered(1)), LEDGER_UNKNOWN);
	ledger_close(&ledger);
}

/* A number that comes round again while still in flight is skipped. */
static void test_narrow_numbers(void **state)
{
	struct ledger ledger = opened(100, true, 256);

	ledger_add(&ledger, 5, 0, 1);
	assert_false(ledger_has_room(&ledger, 5));
	assert_false(ledger_has_room(&ledger, 256 + 5));
	assert_true(ledger_has_room(&ledger, 6));
	assert_int_equal(ledger.mask, 255);
	ledger_close(&ledger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_request),
		cmocka_unit_test(test_late_is_late_once),
		cmocka_unit_test(test_disorder),
		cmocka_unit_test(test_a_slow_one_keeps_its_place),
		cmocka_unit_test(test_narrow_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
