/* SPDX-License-Identifier: MIT */
/* What is to be known before percentiles are used: how many requests are in none of them, and why. */
#include <stdio.h>

#include "report_parts.h"
#include "sojourn/outcome.h"

/* Why nothing was free to send what was due: the first of these that occurred. */
static const char *why_unsent(const struct run_driver *driver)
{
	static const struct {
		enum run_error error;
		const char *why;
	} reasons[] = {
		{RUN_ERROR_ADDRESS_UNAVAILABLE,
		 "no connection being free for want of source ports"},
		{RUN_ERROR_TOO_MANY_FILES, "no connection being free for want of file descriptors"},
		{RUN_ERROR_REFUSED, "connections being refused, or busy"},
		{RUN_ERROR_CONNECT_TIMEOUT, "connections failing, or being busy"},
		{RUN_ERROR_CONNECT_OTHER, "connections failing, or being busy"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (driver->errors[reasons[i].error])
			return reasons[i].why;
	return "all connections being busy";
}

size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES])
{
	struct run_outcome outcome = run_driver_outcome(driver);
	char count[SHORT_TEXT], of[SHORT_TEXT];
	size_t notes = 0;

	if (driver->unsent)
		snprintf(ret_notes[notes++].text, sizeof(ret_notes->text),
			 "%s of the %s requests that were due were never sent, %s: they are in no "
			 "percentile",
			 page_count(driver->unsent, count), page_count(driver->scheduled, of),
			 why_unsent(driver));
	if (outcome.unanswered)
		snprintf(ret_notes[notes++].text, sizeof(ret_notes->text),
			 "%s of the %s requests failed without a complete response: they are in no "
			 "percentile",
			 page_count(outcome.unanswered, count), page_count(outcome.tried, of));
	return notes;
}

void report_print_notes(const struct page *page, const struct run_driver *driver)
{
	struct report_note notes[REPORT_NOTES];
	size_t count = report_notes(driver, notes);

	for (size_t i = 0; i < count; i++)
		page_wrap(page, 0, "note: %s", notes[i].text);
}
