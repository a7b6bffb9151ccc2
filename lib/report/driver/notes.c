// SPDX-License-Identifier: MIT
/* Caveats on percentiles: how many requests they miss, and why. */
#include <stdio.h>

#include "parts.h"
#include "sojourn/outcome.h"
#include "sojourn/report.h"

/* Return why due requests found no free connection, by the first of these errors that occurred. */
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

bool report_interrupted(const struct run_driver *driver, size_t size, char *ret_text)
{
	const struct run_interrupted *asked = driver->interrupted;

	if (!asked)
		return false;
	if (asked->duration_ns.known)
		snprintf(ret_text, size, "interrupted after %s of %s",
			 as_time((double)driver->duration_ns),
			 as_setting(asked->duration_ns.value));
	else if (asked->requests.known)
		snprintf(ret_text, size, "interrupted after %s of %s requests",
			 as_count(driver->requests), as_count(asked->requests.value));
	else
		snprintf(ret_text, size, "interrupted: a driver ended before its time");
	return true;
}

/* Add the first member's reason; the document has the others'. */
static bool tell_lost(const struct run_driver *driver, size_t size, char *ret_text)
{
	const struct run_fleet_member *first = NULL;
	size_t lost = 0;

	for (size_t i = 0; i < driver->member_count; i++) {
		if (!driver->members[i].lost)
			continue;
		first = first ? first : &driver->members[i];
		lost++;
	}
	if (!first)
		return false;
	snprintf(ret_text, size,
		 "%zu of %zu members lost (%s: %.100s): their last reports count, and later "
		 "requests are in no figure",
		 lost, driver->member_count, first->host ? first->host : "unknown host",
		 first->reason ? first->reason : "not known why");
	return true;
}

/* The load is then less than asked for. */
static bool tell_streams(const struct run_driver *driver, size_t size, char *ret_text)
{
	if (!driver->streams_allowed.known || driver->streams_allowed.value >= driver->streams)
		return false;
	snprintf(ret_text, size,
		 "the server allows only %s of %s streams at a time on a connection: further "
		 "requests wait",
		 as_count(driver->streams_allowed.value), as_count(driver->streams));
	return true;
}

size_t report_notes(const struct run_driver *driver,
		    struct report_note ret_notes[static REPORT_NOTES])
{
	struct run_outcome outcome = run_driver_outcome(driver);
	size_t notes = report_interrupted(driver, sizeof(ret_notes->text), ret_notes[0].text);

	notes += tell_lost(driver, sizeof(ret_notes->text), ret_notes[notes].text);
	notes += tell_streams(driver, sizeof(ret_notes->text), ret_notes[notes].text);
	if (driver->unsent)
		snprintf(ret_notes[notes++].text, sizeof(ret_notes->text),
			 "%s of the %s requests that were due were never sent, %s: they are in no "
			 "percentile",
			 as_count(driver->unsent), as_count(driver->scheduled), why_unsent(driver));
	/* Without a response there is no percentile to qualify. */
	if (outcome.unanswered && driver->requests)
		snprintf(ret_notes[notes++].text, sizeof(ret_notes->text),
			 "%s of the %s requests failed without a complete response: they are in no "
			 "percentile",
			 as_count(outcome.unanswered), as_count(outcome.tried));
	return notes;
}

/* From this share on, unanswered requests could move a shown percentile (p99.9). */
#define UNANSWERED_SHARE 0.001

/* A censored time: requests had waited this long when given up, and would have waited longer. */
static void format_waited(const struct histogram *waited, uint64_t unanswered, size_t size,
			  char *ret_text)
{
	char of[SHORT_TEXT + 32] = "";

	if (!waited->count) {
		snprintf(ret_text, size, "how long they had waited is not known");
		return;
	}
	if (waited->count < unanswered)
		snprintf(of, sizeof(of), " (known of %s)", as_count(waited->count));
	snprintf(ret_text, size, "they had waited at least %s (p50), %s (p99)%s",
		 as_time((double)histogram_quantile(waited, 0.5)),
		 as_time((double)histogram_quantile(waited, 0.99)), of);
}

bool report_service_note(const struct run_service *service, struct report_note *ret_note)
{
	uint64_t unanswered = service->losses[RUN_LOSS_UNANSWERED];
	uint64_t all = unanswered + service->exchanges;
	char waited[128];

	if (!unanswered || (double)unanswered < UNANSWERED_SHARE * (double)all)
		return false;
	if (run_is_told(service)) {
		snprintf(ret_note->text, sizeof(ret_note->text),
			 "%s connections to port %u ended after a message without an answer. "
			 "Perhaps it wanted none: %s others had none either (oneway)",
			 as_count(unanswered), service->port,
			 as_count(service->losses[RUN_LOSS_ONEWAY]));
		return true;
	}
	format_waited(&service->abandoned, unanswered, sizeof(waited), waited);
	snprintf(ret_note->text, sizeof(ret_note->text),
		 "%s of the %s requests at port %u were never answered: they are in no percentile "
		 "of a stage; %s",
		 as_count(unanswered), as_count(all), service->port, waited);
	return true;
}

void report_print_service_note(const struct page *page, const struct run_service *service)
{
	struct report_note note;

	if (report_service_note(service, &note))
		page_wrap(page, 0, "note: %s", note.text);
}

void report_print_notes(const struct page *page, const struct run_driver *driver)
{
	struct report_note notes[REPORT_NOTES];
	size_t count = report_notes(driver, notes);

	for (size_t i = 0; i < count; i++)
		page_wrap(page, 0, "note: %s", notes[i].text);
}
