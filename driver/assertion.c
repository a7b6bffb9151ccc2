// SPDX-License-Identifier: MIT
/* Assertions: METRIC, a comparison, a limit. Latency is the response time under a rate, else the round trip. */
#include "assertion.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

enum kind {
	LATENCY,
	ERRORS,
	RATE,
	REQUESTS
};

static const struct metric {
	const char *name;
	enum kind kind;
	double quantile; /* LATENCY; negative: the mean */
} metrics[] = {
	{"mean", LATENCY, -1},	     {"p50", LATENCY, 0.5},	{"p90", LATENCY, 0.9},
	{"p95", LATENCY, 0.95},	     {"p99", LATENCY, 0.99},	{"p99.9", LATENCY, 0.999},
	{"p99.99", LATENCY, 0.9999}, {"max", LATENCY, 1},	{"errors", ERRORS, 0},
	{"rate", RATE, 0},	     {"requests", REQUESTS, 0},
};

static int refuse_text(const char *text, char **ret_error)
{
	return refuse(
		ret_error,
		"--assert: '%s' is not understood; write it like 'p99<5ms', 'errors<0.1%%' or "
		"'rate>1000' (mean, p50, p90, p95, p99, p99.9, p99.99, max, errors, rate, "
		"requests)",
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

	if (kind == ERRORS && strchr(text, '%')) {
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

int assertion_parse(const char *text, struct assertion *ret_assertion, char **ret_error)
{
	size_t name = strcspn(text, "<>");
	struct assertion assertion = {.text = text, .below = text[name] == '<'};
	const char *limit = text + name + 1;

	if (!text[name] || !find_metric(text, name, &assertion.metric))
		return refuse_text(text, ret_error);
	assertion.or_same = *limit == '=';
	if (parse_limit(limit + assertion.or_same, &assertion))
		return refuse_text(text, ret_error);
	*ret_assertion = assertion;
	return 0;
}

bool assertion_is_about_errors(const struct assertion *assertion)
{
	return metrics[assertion->metric].kind == ERRORS;
}

/* In percent of what was tried; a response with a bad status is an error, and a request. */
static double error_share(const struct run_driver *driver)
{
	uint64_t errors = run_driver_errors(driver);
	uint64_t tried = driver->requests + errors - driver->errors[RUN_ERROR_STATUS];

	return tried ? 100.0 * (double)errors / (double)tried : 0;
}

static double latency(const struct metric *metric, const struct run_driver *driver)
{
	const struct histogram *h = driver->rate ? &driver->response_time : &driver->round_trip;

	return metric->quantile < 0 ? histogram_mean(h)
				    : (double)histogram_quantile(h, metric->quantile);
}

static double actual_value(const struct assertion *assertion, const struct run_driver *driver)
{
	const struct metric *metric = &metrics[assertion->metric];

	if (metric->kind == LATENCY)
		return latency(metric, driver);
	if (metric->kind == REQUESTS)
		return (double)driver->requests;
	if (metric->kind == RATE)
		return driver->duration_ns
			       ? (double)run_driver_timely(driver) * (double)NSEC_PER_SEC /
					 (double)driver->duration_ns
			       : 0;
	return assertion->share ? error_share(driver) : (double)run_driver_errors(driver);
}

bool assertion_holds(const struct assertion *assertion, const struct run_driver *driver,
		     char ret_actual[static 64])
{
	bool is_latency = metrics[assertion->metric].kind == LATENCY;
	double actual = actual_value(assertion, driver);

	if (is_latency && !driver->requests) {
		snprintf(ret_actual, 64, "unknown: no request was completed");
		return false;
	}
	if (is_latency)
		units_format_duration(actual, ret_actual, 64);
	else
		snprintf(ret_actual, 64, "%.10g%s", actual, assertion->share ? " %" : "");
	if (actual == assertion->limit)
		return assertion->or_same;
	return assertion->below == (actual < assertion->limit);
}
