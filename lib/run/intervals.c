// SPDX-License-Identifier: MIT
/* The intervals of a measured phase: joining, merging, and drift of the rate. */
#include "intervals.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "members.h"
#include "sojourn/refuse.h"

/* Join intervals in pairs, twice as long. */
static void join_pairs(struct run_driver *driver)
{
	struct run_interval *list = driver->intervals;
	size_t count = driver->interval_count;

	for (size_t i = 0; i < count; i += 2) {
		list[i / 2] = list[i];
		if (i + 1 == count)
			continue;
		members_add(&run_interval_members, &list[i / 2], &list[i + 1]);
		list[i / 2].duration_ns += list[i + 1].duration_ns;
		list[i / 2].ports = list[i + 1].ports;
	}
	driver->interval_count = count / 2 + count % 2;
	driver->interval_ns *= 2;
}

/* Make the intervals of both equally long, by doubling only. */
static int settle_length(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	uint64_t a = driver->interval_ns, b = other->interval_ns;

	while (driver->interval_ns < other->interval_ns && driver->interval_count > 1)
		join_pairs(driver);
	while (other->interval_ns < driver->interval_ns && other->interval_count > 1)
		join_pairs(other);
	/* A single interval may count as a longer one. */
	if (driver->interval_ns < other->interval_ns && driver->interval_count == 1)
		driver->interval_ns = other->interval_ns;
	if (other->interval_ns < driver->interval_ns && other->interval_count == 1)
		other->interval_ns = driver->interval_ns;
	if (driver->interval_ns == other->interval_ns)
		return 0;
	return refuse(ret_error,
		      "driver.interval_ns: %" PRIu64 " and %" PRIu64
		      " cannot be merged: one must be the other times 1, 2, 4, 8 …",
		      a, b);
}

/* Return how many intervals after @earlier @later begins, rounded; SIZE_MAX / 2 at most. */
static size_t shift_of(const struct run_driver *earlier, const struct run_driver *later)
{
	uint64_t distance = later->begin_ns - earlier->begin_ns;
	uint64_t shift = distance / earlier->interval_ns;

	shift += distance % earlier->interval_ns >= earlier->interval_ns - earlier->interval_ns / 2;
	return shift < SIZE_MAX / 2 ? shift : SIZE_MAX / 2;
}

static size_t count_both(const struct run_driver *earlier, const struct run_driver *later)
{
	size_t count = later->interval_count + shift_of(earlier, later);

	return count > earlier->interval_count ? count : earlier->interval_count;
}

/* Add @from's part of interval @i, and extend its length. */
static void put(struct run_interval *interval, const struct run_driver *from, size_t shift,
		size_t i)
{
	struct run_interval *other;

	if (i < shift || i - shift >= from->interval_count)
		return;
	other = &from->intervals[i - shift];
	members_add(&run_interval_members, interval, other);
	if (other->duration_ns > interval->duration_ns)
		interval->duration_ns = other->duration_ns;
}

static int merge_lists(const struct run_driver *earlier, const struct run_driver *later,
		       struct run_interval **ret_list, size_t *ret_count)
{
	size_t count = count_both(earlier, later), shift = shift_of(earlier, later);
	struct run_interval *list = calloc(count, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		list[i].begin_ns = i * earlier->interval_ns;
		put(&list[i], earlier, 0, i);
		put(&list[i], later, shift, i);
		if (i + 1 < count) /* no gaps, even without load */
			list[i].duration_ns = earlier->interval_ns;
	}
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int intervals_merge(struct run_driver *driver, struct run_driver *other, char **ret_error)
{
	struct run_driver *earlier = driver->begin_ns <= other->begin_ns ? driver : other;
	struct run_driver *later = earlier == driver ? other : driver;
	struct run_interval *list;
	size_t count;
	int err;

	if (!driver->interval_count || !other->interval_count || !driver->interval_ns ||
	    !other->interval_ns) {
		free(driver->intervals);
		driver->intervals = NULL;
		driver->interval_count = 0;
		driver->interval_ns = 0;
		return 0;
	}
	err = settle_length(driver, other, ret_error);
	if (err)
		return err;
	while (count_both(earlier, later) > RUN_INTERVALS_MAX) {
		if (earlier->interval_ns > INT64_MAX / 2)
			return refuse(ret_error, "driver.begin_ns: the documents lie too far "
						 "apart to be merged");
		join_pairs(earlier);
		join_pairs(later);
	}
	err = merge_lists(earlier, later, &list, &count);
	if (err)
		return err;
	free(driver->intervals);
	driver->intervals = list;
	driver->interval_count = count;
	return 0;
}

struct run_ratio run_drift(const struct run_driver *driver)
{
	double n = 0, mean_x = 0, mean_y = 0, xx = 0, yy = 0, xy = 0;

	for (size_t i = 0; i < driver->interval_count; i++) {
		const struct run_interval *interval = &driver->intervals[i];
		double x = (double)i, y = (double)interval->requests, before = x - mean_x;

		if (interval->duration_ns != driver->interval_ns)
			continue;
		/* Welford's update avoids cancellation with large rates. */
		n++;
		mean_x += before / n;
		xx += before * (x - mean_x);
		xy += before * (y - mean_y) * (n - 1) / n;
		yy += (y - mean_y) * (y - mean_y) * (n - 1) / n;
		mean_y += (y - mean_y) / n;
	}
	if (n < 3 || !(yy > 0))
		return (struct run_ratio){0};
	return (struct run_ratio){.known = true, .value = fmax(-1, fmin(1, xy / sqrt(xx * yy)))};
}
