// SPDX-License-Identifier: MIT
/*
 * Assertions: METRIC, a comparison, a limit. Latency is the response time, without a rate the round
 * trip.
 */
#include "assertion.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/outcome.h"
#include "sojourn/refuse.h"
#include "sojourn/report.h"
#include "sojourn/units.h"

enum kind {
	LATENCY,
	ERRORS,
	UNSENT,
	TIMEOUTS,
	UNANSWERED, /* at the server, as counted by the observer */
	RATE,
	REQUESTS
};

static const struct metric {
	const char *name;
	enum kind kind;
	double quantile; /* LATENCY; negative: the mean */
} metrics[] = {
	{"mean", LATENCY, -1},	     {"p50", LATENCY, 0.5},	    {"p90", LATENCY, 0.9},
	{"p95", LATENCY, 0.95},	     {"p99", LATENCY, 0.99},	    {"p99.9", LATENCY, 0.999},
	{"p99.99", LATENCY, 0.9999}, {"p99.999", LATENCY, 0.99999}, {"max", LATENCY, 1},
	{"errors", ERRORS, 0},	     {"unsent", UNSENT, 0},	    {"rate", RATE, 0},
	{"requests", REQUESTS, 0},   {"timeouts", TIMEOUTS, 0},	    {"unanswered", UNANSWERED, 0},
};

static int refuse_text(const char *text, char **ret_error)
{
	return refuse(
		ret_error,
		"--assert: '%s' is not understood; write it like 'p99<5ms', 'errors<0.1%%' or "
		"'rate>1000' (mean, p50, p90, p95, p99, p99.9, p99.99, p99.999, max, errors, "
		"unsent, timeouts, unanswered, rate, requests)",
		text);
}

static bool find_metric(const char *name, size_t length, unsigned int *ret_metric)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(metrics); i++)
		if (strlen(metrics[i].name) == length && !strncmp(metrics[i].name, name, length)) {
			*ret_metric = i;
			return true;
		}
	return false;
}

static int parse_limit(const char *text, struct assertion *assertion)
{
	enum kind kind = metrics[assertion->metric].kind;
	uint64_t whole = 0;
	char *end;
	int err = 0;

	if (kind != LATENCY && kind != RATE && kind != REQUESTS && strchr(text, '%')) {
		assertion->share = true;
		assertion->limit = strtod(text, &end);
		return end == text || strcmp(end, "%") || !(assertion->limit >= 0) ? -EINVAL : 0;
	}
	if (kind == LATENCY)
		err = units_parse_duration(text, &whole);
	else
		err = units_parse_count(text, &whole);
	assertion->limit = (double)whole;
	return err;
}

/* No condition is longer, spaces not counted. */
#define WORDS_MAX 64

static bool drop_blanks(const char *text, char ret_words[static WORDS_MAX])
{
	size_t length = 0;

	for (; *text; text++) {
		if (*text == ' ')
			continue;
		if (length == WORDS_MAX - 1)
			return false;
		ret_words[length++] = *text;
	}
	ret_words[length] = '\0';
	return true;
}

int assertion_parse(const char *text, struct assertion *ret_assertion, char **ret_error)
{
	struct assertion assertion = {.text = text};
	char words[WORDS_MAX];
	const char *limit;
	size_t name;

	if (!drop_blanks(text, words))
		return refuse_text(text, ret_error);
	name = strcspn(words, "<>");
	limit = words + name + 1;
	assertion.below = words[name] == '<';
	if (!words[name] || !find_metric(words, name, &assertion.metric))
		return refuse_text(text, ret_error);
	assertion.or_same = *limit == '=';
	if (parse_limit(limit + assertion.or_same, &assertion))
		return refuse_text(text, ret_error);
	*ret_assertion = assertion;
	return 0;
}

bool assertion_is_about(const struct assertion *assertion, enum run_error error)
{
	enum kind kind = metrics[assertion->metric].kind;

	return kind == ERRORS || (kind == TIMEOUTS && error == RUN_ERROR_TIMEOUT);
}

bool assertion_needs_observer(const struct assertion *assertion)
{
	return metrics[assertion->metric].kind == UNANSWERED;
}

/* A count, and the total for a share. */
struct part {
	uint64_t count;
	uint64_t of;
};

/* As a share, errors are failed requests; as a count, failed attempts to connect are included. */
static struct part part_of(const struct assertion *assertion, const struct run *run)
{
	const struct run_driver *driver = run->driver;
	struct run_outcome outcome = run_driver_outcome(driver);
	struct report_unanswered unanswered;

	switch (metrics[assertion->metric].kind) {
	case UNSENT:
		return (struct part){driver->unsent, outcome.tried + driver->unsent};
	case TIMEOUTS:
		return (struct part){driver->errors[RUN_ERROR_TIMEOUT], outcome.tried};
	case UNANSWERED:
		report_unanswered(run, &unanswered);
		return (struct part){unanswered.count, unanswered.of};
	default:
		return (struct part){assertion->share ? outcome.failed : run_driver_errors(driver),
				     outcome.tried};
	}
}

static double actual_value(const struct assertion *assertion, const struct run *run)
{
	const struct metric *metric = &metrics[assertion->metric];
	const struct run_driver *driver = run->driver;
	const struct histogram *latency = run_driver_latency(driver);
	struct part part;

	if (metric->kind == LATENCY)
		return metric->quantile < 0 ? histogram_mean(latency)
					    : (double)histogram_quantile(latency, metric->quantile);
	if (metric->kind == REQUESTS)
		return (double)driver->requests;
	if (metric->kind == RATE)
		return driver->duration_ns
			       ? (double)run_driver_timely(driver) * (double)NSEC_PER_SEC /
					 (double)driver->duration_ns
			       : 0;
	part = part_of(assertion, run);
	return assertion->share ? 100.0 * (double)part.count / (double)part.of : (double)part.count;
}

#define ROUNDING 1e-6 /* in requests: 1 - 0.999 is slightly below 0.001 */

/* Return whether the request of this rank has a latency; missing ones count as the slowest. */
static bool is_answered(const struct metric *metric, const struct run_driver *driver)
{
	uint64_t missing = run_driver_missing(driver);
	double all = (double)(driver->requests + missing);

	return metric->quantile < 0 || (double)missing <= (1 - metric->quantile) * all + ROUNDING;
}

/* Return whether the value is unknown, with the reason in @ret_why. */
static bool is_unknown(const struct assertion *assertion, const struct run *run,
		       char ret_why[static ASSERTION_TEXT])
{
	const struct metric *metric = &metrics[assertion->metric];
	const struct run_driver *driver = run->driver;
	uint64_t missing = run_driver_missing(driver);
	struct report_unanswered unanswered;

	if (metric->kind == LATENCY && !driver->requests)
		snprintf(ret_why, ASSERTION_TEXT, "unknown: no request was completed");
	else if (metric->kind == UNANSWERED && !report_unanswered(run, &unanswered))
		snprintf(ret_why, ASSERTION_TEXT,
			 "unknown: the driven services were not all counted");
	else if (assertion->share && !part_of(assertion, run).of)
		snprintf(ret_why, ASSERTION_TEXT, "unknown: no request was made");
	else if (metric->kind == LATENCY && !is_answered(metric, driver))
		snprintf(ret_why, ASSERTION_TEXT,
			 "unknown: %s of the %s requests have no complete response",
			 as_count(missing), as_count(driver->requests + missing));
	else
		return false;
	return true;
}

bool assertion_holds(const struct assertion *assertion, const struct run *run,
		     char ret_actual[static ASSERTION_TEXT])
{
	double actual;

	if (is_unknown(assertion, run, ret_actual))
		return false;
	actual = actual_value(assertion, run);
	if (metrics[assertion->metric].kind == LATENCY)
		units_format_time(actual, ret_actual, ASSERTION_TEXT);
	else
		snprintf(ret_actual, ASSERTION_TEXT, "%.10g%s", actual,
			 assertion->share ? " %" : "");
	if (actual == assertion->limit)
		return assertion->or_same;
	return assertion->below == (actual < assertion->limit);
}
