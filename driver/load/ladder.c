// SPDX-License-Identifier: MIT
/* Parses the steps of a sweep; see ladder.h. */
#include "ladder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/refuse.h"
#include "sojourn/units.h"

#define CONNECTIONS_MAX 1000000ULL
#define RATE_MAX	1000000000ULL

static int add_step(struct ladder *ladder, uint64_t load)
{
	uint64_t last = ladder->count ? ladder->loads[ladder->count - 1] : 0;
	uint64_t max = ladder->of_rates ? RATE_MAX : CONNECTIONS_MAX;

	if (load <= last || load > max || ladder->count == LADDER_MAX)
		return -EINVAL;
	ladder->loads[ladder->count++] = load;
	return 0;
}

/* The step from one load to the next: multiply, then add. */
struct stride {
	double factor;
	uint64_t addend;
};

static int parse_stride(const char *text, struct stride *ret_stride)
{
	char *end;

	*ret_stride = (struct stride){.factor = *text ? 1 : 2};
	if (!*text)
		return 0;
	if (*text == '+')
		return units_parse_count(text + 1, &ret_stride->addend) || !ret_stride->addend
			       ? -EINVAL
			       : 0;
	if (*text != 'x' || text[1] < '0' || text[1] > '9')
		return -EINVAL;
	ret_stride->factor = strtod(text + 1, &end);
	return *end || !(ret_stride->factor > 1 && ret_stride->factor <= 1000) ? -EINVAL : 0;
}

/* Advance by at least 1: a factor of 1.5 leads from 1 to 2. */
static uint64_t next_load(uint64_t load, const struct stride *stride)
{
	uint64_t next = (uint64_t)((double)load * stride->factor + 0.5) + stride->addend;

	return next > load ? next : load + 1;
}

static int parse_range(const char *text, const char *dots, struct ladder *ladder)
{
	const char *last = dots + 2, *rest = last + strcspn(last, "x+");
	struct stride stride;
	uint64_t load, end;

	if (units_parse_count_of(text, (size_t)(dots - text), &load) ||
	    units_parse_count_of(last, (size_t)(rest - last), &end) || !load ||
	    parse_stride(rest, &stride))
		return -EINVAL;
	for (; load < end; load = next_load(load, &stride))
		if (add_step(ladder, load))
			return -EINVAL;
	return add_step(ladder, end);
}

static int parse_list(const char *text, struct ladder *ladder)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		uint64_t load;

		if (units_parse_count_of(text, length, &load) || add_step(ladder, load))
			return -EINVAL;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

int ladder_parse(const char *text, struct ladder *ret_ladder, char **ret_error)
{
	struct ladder ladder = {0};
	const char *steps = text, *dots;
	int err;

	if (!strncmp(steps, "rate:", 5)) {
		ladder.of_rates = true;
		steps += 5;
	} else if (!strncmp(steps, "connections:", 12)) {
		steps += 12;
	}
	dots = strstr(steps, "..");
	err = dots ? parse_range(steps, dots, &ladder) : parse_list(steps, &ladder);
	if (err || ladder.count < 3)
		return refuse(ret_error,
			      "--ladder: '%s' is no ladder; write rising steps like 1..512, "
			      "1..512x1.5, 100..900+200 or 1,2,8,32, from 3 to %d of them, with "
			      "rate: before them for rates",
			      text, LADDER_MAX);
	*ret_ladder = ladder;
	return 0;
}
