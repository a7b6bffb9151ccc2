/* SPDX-License-Identifier: MIT */
/* When the load begins: at a time, or once a flag is up, so that several drivers begin together. */
#ifndef DRIVER_RUN_START_H
#define DRIVER_RUN_START_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/loop.h"

struct start_spec {
	uint64_t at_ns;	  /* wall clock, ns since 1970; 0: none */
	const char *flag; /* to wait for first; NULL: none */
};

/*
 * Parse a time of the wall clock: seconds since 1970 ("1767225600", "1767225600.25") or ISO 8601
 * ("2026-01-01T00:00:00.5Z", "…+01:00"). Local without a zone; seconds are optional. -EINVAL.
 */
int start_parse_time(const char *text, uint64_t *ret_ns);

/*
 * Check a flag: "fd:N" is up once a byte or the end can be read. "http://…" or "https://…" is up
 * once a 2xx answers, a file once it exists. -EINVAL with @ret_error.
 */
int start_check_flag(const char *flag, char **ret_error);

/* Wait until the flag is up. The patience lets the caller's loop run. -ECANCELED: gave up. -EINVAL with a sentence: it cannot come up. */
int start_await_flag(const struct start_spec *spec, struct patience patience, char **ret_error);

/*
 * Wait until @early_ns before the start time. Set *@ret_ns to that start time, by CLOCK_MONOTONIC.
 * -EINVAL with a sentence if it has passed; otherwise as above.
 */
int start_await_time(const struct start_spec *spec, uint64_t early_ns, struct patience patience,
		     uint64_t *ret_ns, char **ret_error);

#endif
