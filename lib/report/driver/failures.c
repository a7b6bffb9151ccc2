// SPDX-License-Identifier: MIT
/* Failures of the driver: a summary in one sentence, then each kind, and failed assertions. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "sojourn/outcome.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

/* Maximum of names without -v. */
#define NAMED 4

struct kind {
	const char *name;
	uint64_t count;
};

struct kinds {
	struct kind list[RUN_ERROR_COUNT + RUN_GRPC_STATUS_COUNT + RUN_ROWS_MAX];
	size_t count;
	uint64_t sum;
};

static void add_kind(struct kinds *kinds, const char *name, uint64_t count)
{
	if (!count || kinds->count == ARRAY_SIZE(kinds->list))
		return;
	kinds->list[kinds->count++] = (struct kind){name, count};
	kinds->sum += count;
}

static int compare_counts(const void *a, const void *b)
{
	const struct kind *one = a, *other = b;

	return (one->count < other->count) - (one->count > other->count);
}

static bool is_refusal(const struct run_driver *driver, const struct run_row *row)
{
	uint64_t status;

	(void)driver;
	return row->name && !units_parse_u64(row->name, 400, 999, &status);
}

static void add_statuses(struct kinds *kinds, const struct run_driver *driver,
			 bool (*is_one)(const struct run_driver *, const struct run_row *))
{
	const struct run_row_list *rows = &driver->rows[RUN_ROWS_STATUS];

	for (size_t i = 0; i < rows->count; i++)
		if (is_one(driver, &rows->list[i]))
			add_kind(kinds, rows->list[i].name, rows->list[i].requests);
}

/* Add responses that report failure, by status. */
static void add_refusals(struct kinds *kinds, const struct run_driver *driver)
{
	uint64_t before = kinds->sum, refused = driver->errors[RUN_ERROR_STATUS];

	if (!refused)
		return;
	add_statuses(kinds, driver, is_refusal);
	for (size_t i = 1; kinds->sum == before && i < RUN_GRPC_STATUS_COUNT; i++)
		add_kind(kinds, run_grpc_status_names[i], driver->grpc[i]);
	if (kinds->sum == before)
		add_kind(kinds, run_error_names[RUN_ERROR_STATUS], refused);
}

static void gather(const struct run_driver *driver, struct kinds *ret_kinds)
{
	ret_kinds->count = 0;
	ret_kinds->sum = 0;
	add_refusals(ret_kinds, driver);
	for (enum run_error error = 0; error < RUN_ERROR_COUNT; error++)
		if (error != RUN_ERROR_STATUS)
			add_kind(ret_kinds, run_error_names[error], driver->errors[error]);
	qsort(ret_kinds->list, ret_kinds->count, sizeof(ret_kinds->list[0]), compare_counts);
}

/* Append "404" for one kind, or "404 (40,000), timeout (17) and 3 kinds more". */
static void append_kinds(struct report_verdict *verdict, const struct kinds *kinds)
{
	size_t used = strlen(verdict->text), size = sizeof(verdict->text);

	for (size_t i = 0; i < kinds->count && i < NAMED && used < size; i++) {
		const struct kind *kind = &kinds->list[i];

		used += (size_t)snprintf(verdict->text + used, size - used, "%s%s", i ? ", " : "",
					 as_words(kind->name));
		if (kinds->count > 1 && used < size)
			used += (size_t)snprintf(verdict->text + used, size - used, " (%s)",
						 as_count(kind->count));
	}
	if (kinds->count > NAMED && used < size)
		snprintf(verdict->text + used, size - used, " and %zu kinds more",
			 kinds->count - NAMED);
}

/* Write "100 % failed: 404" and return the share, 0 … 1; 0: no failure, no text. */
static double failed_share(const struct run_driver *driver, struct report_verdict *ret_verdict)
{
	struct run_outcome outcome = run_driver_outcome(driver);
	double share = run_outcome_failed_share(&outcome);
	struct kinds kinds;

	gather(driver, &kinds);
	if (!kinds.count)
		return 0;
	if (outcome.tried && outcome.failed)
		snprintf(ret_verdict->text, sizeof(ret_verdict->text),
			 "%s failed: ", as_share(100 * share));
	else
		snprintf(ret_verdict->text, sizeof(ret_verdict->text), "%s: ",
			 outcome.tried ? "no request failed, but connections did"
				       : "no request was sent");
	append_kinds(ret_verdict, &kinds);
	return outcome.tried ? share : 1;
}

/* Likewise "100 % redirected, not followed: 302". */
static double redirected_share(const struct run_driver *driver, struct report_verdict *ret_verdict)
{
	struct kinds kinds = {0};
	double share;

	add_statuses(&kinds, driver, run_is_redirect);
	if (!kinds.sum || !driver->requests)
		return 0;
	qsort(kinds.list, kinds.count, sizeof(kinds.list[0]), compare_counts);
	share = (double)kinds.sum / (double)driver->requests;
	snprintf(ret_verdict->text, sizeof(ret_verdict->text),
		 "%s redirected, not followed: ", as_share(100 * share));
	append_kinds(ret_verdict, &kinds);
	return share;
}

bool report_redirected(const struct run_driver *driver, size_t size, char *ret_text)
{
	struct report_verdict verdict;

	if (!redirected_share(driver, &verdict))
		return false;
	snprintf(ret_text, size, "%s", verdict.text);
	return true;
}

/* From this share on the run is a failure, whatever its times. */
#define MOSTLY 0.5

bool report_headline(const struct run_driver *driver, struct report_verdict *ret_verdict)
{
	return failed_share(driver, ret_verdict) >= MOSTLY ||
	       redirected_share(driver, ret_verdict) >= MOSTLY;
}

/* ---- each kind ---- */

/* Print when failures of @kind occurred, and their explanation by the driver's host's numbers. */
static void print_when(const struct page *page, const struct run_driver *driver, const char *kind)
{
	for (size_t i = 0; i < driver->failure_count; i++) {
		const struct run_failure *failure = &driver->failures[i];

		if (strcmp(failure->kind, kind))
			continue;
		page_left(page, LABEL_COLUMNS + 11, "%s", "");
		page_wrap(page, LABEL_COLUMNS + 11, "from %s to %s, %s/s%s%s",
			  as_time((double)failure->first_ns), as_time((double)failure->last_ns),
			  as_rate(failure->count, driver->duration_ns),
			  failure->explanation ? "; " : "",
			  failure->explanation ? failure->explanation : "");
	}
}

/* The summary says everything about a status. */
static bool is_said(const struct page *page, const struct run_driver *driver, enum run_error error)
{
	return !page->verbose && error == RUN_ERROR_STATUS && driver->rows[RUN_ROWS_STATUS].count;
}

/* Return the next most frequent error after @last, RUN_ERROR_COUNT after the last one. */
static enum run_error next_error(const struct run_driver *driver, enum run_error last)
{
	enum run_error found = RUN_ERROR_COUNT;

	for (enum run_error i = 0; i < RUN_ERROR_COUNT; i++) {
		bool later = last == RUN_ERROR_COUNT || driver->errors[i] < driver->errors[last] ||
			     (driver->errors[i] == driver->errors[last] && i > last);

		if (driver->errors[i] && later &&
		    (found == RUN_ERROR_COUNT || driver->errors[i] > driver->errors[found]))
			found = i;
	}
	return found;
}

static void print_errors(const struct page *page, const struct run_driver *driver)
{
	enum run_error error = RUN_ERROR_COUNT;
	size_t printed = 0;

	while ((error = next_error(driver, error)) != RUN_ERROR_COUNT &&
	       (page->verbose || printed < NAMED)) {
		if (is_said(page, driver, error))
			continue;
		page_counted(page, printed++ ? "" : "errors", driver->errors[error], "%s: %s",
			     as_words(run_error_names[error]), run_error_help[error]);
		print_when(page, driver, run_error_names[error]);
	}
}

static void print_hot(const struct page *page, const char *text)
{
	page_style(page, STYLE_HOT);
	page_wrap(page, 0, "%s", text);
	page_style(page, STYLE_PLAIN);
}

void report_failures(const struct page *page, const struct run_driver *driver, char *const *broken)
{
	struct report_verdict verdict;

	if (failed_share(driver, &verdict) > 0)
		print_hot(page, verdict.text);
	if (redirected_share(driver, &verdict) > 0)
		print_hot(page, verdict.text);
	for (; broken && *broken; broken++)
		print_hot(page, *broken);
	print_errors(page, driver);
}
