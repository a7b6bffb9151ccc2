// SPDX-License-Identifier: MIT
/* The difference of two readings; see interval.h. */
#include "interval.h"

#include <errno.h>
#include <string.h>

#include "sojourn/run_sum.h"

int interval_between(const struct run *now, const struct run *previous, struct run **ret_interval)
{
	autofree char *text = run_to_json(now);
	autofree char *error = NULL;
	int r = text ? run_from_json(text, strlen(text), ret_interval, &error) : -ENOMEM;

	if (!r)
		run_subtract(*ret_interval, previous);
	if (!r)
		run_doubt(*ret_interval);
	return r;
}

static bool is_doubtful(const struct run *run)
{
	for (size_t i = 0; i < run->service_count; i++)
		if (run_service_is_doubtful(&run->services[i]))
			return true;
	return false;
}

int interval_judged(const struct run *total, struct run **ret_judged)
{
	const struct run nothing = {};

	*ret_judged = NULL;
	return is_doubtful(total) ? interval_between(total, &nothing, ret_judged) : 0;
}
