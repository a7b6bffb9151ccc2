// SPDX-License-Identifier: MIT
/* The outcomes of a run's requests: see sojourn/outcome.h. */
#include "sojourn/outcome.h"

#include "sojourn/units.h"

/* How an error counts. */
enum kind {
	UNANSWERED, /* a request without a complete response */
	ANSWERED,   /* a complete response */
	ATTEMPT,    /* no request: a connection on which none was sent */
};

static const enum kind kinds[RUN_ERROR_COUNT] = {
	[RUN_ERROR_ADDRESS_UNAVAILABLE] = ATTEMPT,
	[RUN_ERROR_TOO_MANY_FILES] = ATTEMPT,
	[RUN_ERROR_STATUS] = ANSWERED,
	[RUN_ERROR_UNEXPECTED] = ANSWERED,
};

static struct run_outcome outcome_of(uint64_t requests, const uint64_t errors[RUN_ERROR_COUNT])
{
	uint64_t by_kind[3] = {0}, bad;

	for (size_t i = 0; i < RUN_ERROR_COUNT; i++)
		by_kind[kinds[i]] += errors[i];
	/* A document from elsewhere may be inconsistent. */
	bad = by_kind[ANSWERED] < requests ? by_kind[ANSWERED] : requests;
	return (struct run_outcome){
		.tried = requests + by_kind[UNANSWERED],
		.good = requests - bad,
		.failed = bad + by_kind[UNANSWERED],
		.unanswered = by_kind[UNANSWERED],
	};
}

struct run_outcome run_driver_outcome(const struct run_driver *driver)
{
	return outcome_of(driver->requests, driver->errors);
}

struct run_outcome run_row_outcome(const struct run_row *row)
{
	return outcome_of(row->requests, row->errors);
}

double run_outcome_failed_share(const struct run_outcome *outcome)
{
	return outcome->tried ? (double)outcome->failed / (double)outcome->tried : 0;
}

uint64_t run_driver_missing(const struct run_driver *driver)
{
	return run_driver_outcome(driver).unanswered + driver->unsent;
}

bool run_is_redirect(const struct run_driver *driver, const struct run_row *row)
{
	uint64_t status;

	if (driver->scenario || driver->expected || !row->name)
		return false;
	return !units_parse_u64(row->name, 300, 399, &status) && status != 304;
}
