// SPDX-License-Identifier: MIT
/* What values of several options have in common. */
#include "option_rows.h"

#include <errno.h>
#include <inttypes.h>

#include "refuse.h"
#include "sojourn/units.h"

int option_parse_number(const char *name, const char *value, uint64_t min, uint64_t max,
			uint64_t *ret_number, char **ret_error)
{
	if (!units_parse_u64(value, min, max, ret_number))
		return 0;
	return refuse(ret_error, "--%s: '%s' is not a whole number from %" PRIu64 " to %" PRIu64,
		      name, value, min, max);
}

int option_parse_duration(const char *name, const char *value, uint64_t min_ns, uint64_t *ret_ns,
			  char **ret_error)
{
	uint64_t ns;
	int err = units_parse_duration(value, &ns);

	if (err == -ERANGE)
		return refuse(ret_error, "--%s: '%s' is too long", name, value);
	if (err)
		return refuse(ret_error,
			      "--%s: '%s' is not a duration; write it like 500ms, 10s or 2m", name,
			      value);
	if (ns < min_ns)
		return refuse(ret_error, "--%s: '%s' is too short; at least 1ms is needed", name,
			      value);
	*ret_ns = ns;
	return 0;
}
