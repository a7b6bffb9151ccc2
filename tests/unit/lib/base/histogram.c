// SPDX-License-Identifier: MIT
/* wire/buckets.h and lib/base/histogram.c. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/histogram.h"
#include "support/bpf_log2.h"

#define RANDOM_VALUES 20000

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Return a value of any magnitude, like durations. */
static uint64_t random_value(uint64_t *state)
{
	uint64_t bits = next_random(state) % 44;

	return next_random(state) & ((1ULL << bits) - 1);
}

static void buckets_are_contiguous(void **state)
{
	assert_int_equal(bucket_lower(0), 0);
	for (uint32_t i = 0; i < BUCKET_COUNT; i++) {
		uint64_t lower = bucket_lower(i), upper = bucket_upper(i);

		assert_true(lower <= upper);
		assert_int_equal(bucket_index(lower), i);
		assert_int_equal(bucket_index(upper), i);
		if (i + 1 < BUCKET_COUNT)
			assert_int_equal(bucket_lower(i + 1), upper + 1);
		/* The largest error is the width minus one: at most 1/64 of the value. */
		assert_true((upper - lower) * BUCKET_SUB <= lower);
	}
	assert_int_equal(bucket_upper(BUCKET_COUNT - 1), (1ULL << BUCKET_VALUE_BITS) - 1);
}

static void powers_of_two_begin_buckets(void **state)
{
	for (unsigned int bit = 0; bit < 64; bit++) {
		uint64_t power = 1ULL << bit;

		for (uint64_t value = power - 1; value - power + 1 <= 2; value++) {
			uint32_t index = bucket_index(value);

			assert_true(index < BUCKET_COUNT);
			if (value >> BUCKET_VALUE_BITS) {
				assert_int_equal(index, BUCKET_COUNT - 1);
				continue;
			}
			assert_true(bucket_lower(index) <= value && value <= bucket_upper(index));
		}
		if (bit < BUCKET_VALUE_BITS)
			assert_int_equal(bucket_lower(bucket_index(power)), power);
	}
	assert_int_equal(bucket_index(UINT64_MAX), BUCKET_COUNT - 1);
}

static void kernel_side_agrees(void **state)
{
	uint64_t random = 88172645463325252ULL;

	for (uint64_t value = 1; value < 1 << 18; value++)
		assert_int_equal(bpf_bucket_log2(value), bucket_log2(value));
	for (unsigned int bit = 1; bit < BUCKET_VALUE_BITS; bit++)
		for (uint64_t value = (1ULL << bit) - 1; value <= (1ULL << bit) + 1; value++)
			assert_int_equal(bpf_bucket_log2(value), bucket_log2(value));
	for (unsigned int i = 0; i < RANDOM_VALUES; i++) {
		uint64_t value = random_value(&random);

		assert_int_equal(bpf_bucket_index(value), bucket_index(value));
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Nearest rank in integers: @permille in thousandths. */
static uint64_t ranked(const uint64_t *sorted, size_t count, unsigned int permille)
{
	size_t rank = (count * permille + 999) / 1000;

	return sorted[rank ? rank - 1 : 0];
}

static void check_quantiles(const uint64_t *sorted, size_t count, const struct histogram *h)
{
	for (unsigned int permille = 0; permille <= 1000; permille++) {
		uint64_t value = ranked(sorted, count, permille);
		uint64_t found = histogram_quantile(h, permille / 1000.0);
		uint64_t edge = bucket_upper(bucket_index(value));

		/* The last bucket counts everything above: its edge is the maximum. */
		if (edge == bucket_upper(BUCKET_COUNT - 1))
			edge = h->max;
		assert_int_equal(found, edge < h->max ? edge : h->max);
		assert_true(found >= value);
		if (value < bucket_lower(BUCKET_COUNT - 1))
			assert_true((found - value) * BUCKET_SUB <= value);
	}
}

static void quantiles_are_nearest_rank(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 10, 99, 100, 101, 1000, 1001, RANDOM_VALUES};
	uint64_t random = 362436069362436069ULL;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		autofree struct histogram *h = calloc(1, sizeof(*h));
		autofree uint64_t *values = calloc(sizes[i], sizeof(*values));

		for (size_t j = 0; j < sizes[i]; j++) {
			values[j] = random_value(&random);
			histogram_record(h, values[j]);
		}
		qsort(values, sizes[i], sizeof(*values), compare);
		assert_int_equal(h->count, sizes[i]);
		assert_int_equal(h->max, values[sizes[i] - 1]);
		check_quantiles(values, sizes[i], h);
	}
}

static void quantile_of_large_counts(void **state)
{
	struct histogram h = {.count = 2000000000000ULL, .max = 50};

	h.buckets[10] = h.count / 100 * 99;
	h.buckets[50] = h.count / 100;
	assert_int_equal(histogram_quantile(&h, 0.99), 10);
	assert_int_equal(histogram_quantile(&h, 0.9901), 50);
}

static void empty_has_zeroes(void **state)
{
	struct histogram h = {0};

	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	assert_int_equal(histogram_quantile(&h, 1), 0);
	assert_true(fpclassify(histogram_mean(&h)) == FP_ZERO);
}

static void mean_is_exact(void **state)
{
	struct histogram h = {0};

	histogram_record(&h, 1000001);
	histogram_record(&h, 1000002);
	assert_true(fabs(histogram_mean(&h) - 1000001.5) < 1e-9);
}

/* Against the textbook's formula over the values themselves. */
static void stddev_is_close(void **state)
{
	struct histogram h = {0};
	uint64_t random = 88172645463325252ULL;
	double sum = 0, squares = 0, expected;

	assert_true(fpclassify(histogram_stddev(&h)) == FP_ZERO);
	for (unsigned int i = 0; i < RANDOM_VALUES; i++) {
		double value = (double)(random_value(&random) % 10000000);

		histogram_record(&h, (uint64_t)value);
		sum += value;
		squares += value * value;
	}
	expected = sqrt(squares / RANDOM_VALUES - sum / RANDOM_VALUES * sum / RANDOM_VALUES);
	assert_true(fabs(histogram_stddev(&h) - expected) < 0.01 * expected);

	h = (struct histogram){0};
	for (unsigned int i = 0; i < 100; i++)
		histogram_record(&h, 5000000);
	assert_true(histogram_stddev(&h) < 1e-6);
}

static void add_and_subtract_are_exact(void **state)
{
	struct histogram first = {0}, second = {0}, both = {0}, sum;
	uint64_t random = 521288629521288629ULL;

	for (unsigned int i = 0; i < RANDOM_VALUES; i++) {
		uint64_t value = random_value(&random);

		histogram_record(i % 3 ? &first : &second, value);
		histogram_record(&both, value);
	}
	sum = first;
	histogram_add(&sum, &second);
	assert_memory_equal(&sum, &both, sizeof(sum));

	histogram_subtract(&sum, &first);
	assert_int_equal(sum.count, second.count);
	assert_int_equal(sum.sum, second.sum);
	assert_memory_equal(sum.buckets, second.buckets, sizeof(sum.buckets));
	assert_true(sum.max >= second.max);
}

/* The maximum after a subtraction: exact if set since, else its bucket's edge. */
static void subtracted_maximum(void **state)
{
	struct histogram h = {0}, earlier;

	histogram_record(&h, 5000);
	earlier = h;
	histogram_record(&h, 1000);
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.max, bucket_upper(bucket_index(1000)));

	histogram_add(&h, &earlier);
	earlier = h;
	histogram_record(&h, 7001);
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.max, 7001);

	earlier = h;
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.count, 0);
	assert_int_equal(h.max, 0);

	/* The last bucket has no upper edge: only the old maximum is known. */
	histogram_record(&h, 1ULL << 50);
	earlier = h;
	histogram_record(&h, 1ULL << 45);
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.max, 1ULL << 50);
}

/* An ongoing response is counted again in a higher bucket: it is none of the later period's. */
static void subtracted_values_may_have_grown(void **state)
{
	struct histogram h = {0}, earlier;

	histogram_record(&h, 0);
	histogram_record(&h, 2000);
	earlier = h;
	h.buckets[bucket_index(0)]--;
	h.buckets[bucket_index(70000)]++;
	h.buckets[bucket_index(2000)]--;
	h.buckets[bucket_index(90000)]++;
	histogram_record(&h, 500);
	histogram_record(&h, 1000000);
	h.sum += 70000 + 88000;
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.count, 2);
	for (unsigned int i = 0; i < BUCKET_COUNT; i++)
		assert_true(h.buckets[i] <= 1);
	assert_int_equal(h.buckets[bucket_index(1000000)], 1);
	assert_int_equal(histogram_quantile(&h, 1.0), 1000000);

	/* Its maximum is not the period's either. */
	h = (struct histogram){0};
	histogram_record(&h, 10000000);
	earlier = h;
	h.buckets[bucket_index(10000000)]--;
	h.buckets[bucket_index(5000000000)]++;
	h.max = 5000000000;
	h.sum = 5000000000;
	histogram_record(&h, 1000);
	histogram_subtract(&h, &earlier);
	assert_int_equal(h.count, 1);
	assert_int_equal(h.max, bucket_upper(bucket_index(1000)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_are_contiguous),
		cmocka_unit_test(powers_of_two_begin_buckets),
		cmocka_unit_test(kernel_side_agrees),
		cmocka_unit_test(quantiles_are_nearest_rank),
		cmocka_unit_test(quantile_of_large_counts),
		cmocka_unit_test(empty_has_zeroes),
		cmocka_unit_test(mean_is_exact),
		cmocka_unit_test(stddev_is_close),
		cmocka_unit_test(add_and_subtract_are_exact),
		cmocka_unit_test(subtracted_maximum),
		cmocka_unit_test(subtracted_values_may_have_grown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
