/* SPDX-License-Identifier: MIT */
/* When the load begins: at a time, or once a flag is up, so that many drivers begin together. */
#ifndef DRIVER_RUN_START_H
#define DRIVER_RUN_START_H

#include <stdbool.h>
#include <stdint.h>

struct start_spec {
	uint64_t at_ns;	  /* wall clock, ns since 1970; 0: no such time */
	const char *flag; /* what to wait for, before that; NULL: nothing */
};

/*
 * A time on the wall clock: seconds since 1970 ("1767225600", "1767225600.25") or ISO 8601
 * ("2026-01-01T00:00:00.5Z", "…+01:00"; without a zone the local one; seconds may be left out).
 * -EINVAL.
 */
int start_parse_time(const char *text, uint64_t *ret_ns);

/*
 * What a flag names: "fd:N" (up once a byte or the end of the stream can be read), "http://…" or
 * "https://…" (up once it is answered with 2xx), otherwise a file (up once it exists). -EINVAL with a
 * sentence in @ret_error, which the caller frees.
 */
int start_check_flag(const char *flag, char **ret_error);

/* Lets the caller's loop run while there is nothing else to do; true: give up. */
struct start_patience {
	bool (*is_over)(void *user);
	void *user;
};

/* Returns when the flag is up. -ECANCELED: gave up. -EINVAL with a sentence: it cannot come up. */
int start_await_flag(const struct start_spec *spec, struct start_patience patience,
		     char **ret_error);

/*
 * Returns @early_ns before the time, which is *@ret_ns by CLOCK_MONOTONIC. -EINVAL with a sentence if
 * it has passed; else as above.
 */
int start_await_time(const struct start_spec *spec, uint64_t early_ns,
		     struct start_patience patience, uint64_t *ret_ns, char **ret_error);

#endif
