// SPDX-License-Identifier: MIT
/* Compares a plan with the options that it was made for; see lacks.h. */
#include "lacks.h"

#include <string.h>

#include "sojourn/log.h"

/* A missing program for QUESTION_ACCEPT needs no warning: the document names the time as inferred. */
static void warn_missing(const struct plan *plan)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];
		enum question question = row->candidate->question;

		if (question == QUESTION_HTTP && !plan->http)
			continue;
		if (row->rehearsed && row->reason[0] && question != QUESTION_ACCEPT &&
		    !plan_chosen(plan, question))
			log_warn("%s refused, missing: %s: %s", row->candidate->hook,
				 candidate_questions[question].use, row->reason);
	}
}

/* TX timestamps would work if there were a cgroup: the user may change that. */
static void say_without_stamps(const struct plan *plan, const char *cgroup_reason)
{
	const struct plan_row *used = plan_chosen(plan, QUESTION_TRANSMIT);

	for (size_t i = 0; used && i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (row->candidate->question == QUESTION_TRANSMIT && row->reason[0] &&
		    !strcmp(row->reason, cgroup_reason))
			log_warn("responses are followed by %s, not by TX timestamps: %s",
				 used->candidate->hook, row->reason);
	}
}

/* A requested measurement that is refused must not be left out silently. */
static void say_without_http(const struct plan *plan, const struct observe_options *options)
{
	const char *reason = options->http ? plan_missing_http(plan) : NULL;

	if (reason)
		log_warn("--http: refused here, no streams, statuses and routes are known: %s",
			 reason);
	else if (options->tls && plan_missing_tls(plan))
		log_warn(
			"--tls: refused here, no statuses, routes and streams in TLS are known: %s",
			plan_missing_tls(plan));
}

static void say_without_calls(const struct plan *plan, const struct observe_options *options)
{
	const char *reason = options->calls ? plan_missing_calls(plan) : NULL;

	if (reason)
		log_warn("--calls: refused here, no calls to upstreams are timed: %s", reason);
}

static void say_without_commands(const struct plan *plan, const struct observe_options *options)
{
	const char *reason = options->protocol_count ? plan_missing_commands(plan) : NULL;

	if (reason)
		log_warn("--protocol: refused here, no commands are known, pipelined ones count as "
			 "one exchange: %s",
			 reason);
}

/* A source that was requested by name must not be replaced silently. */
static int check_accept_source(const struct plan *plan, const struct observe_options *options)
{
	enum accept_source wish = options->accept_source;

	if (wish == ACCEPT_AUTO || wish == plan_accept_source(plan))
		return EXIT_SUCCESS;
	log_error("--accept-source %s: refused here: %s; inferred works without",
		  options_accept_source(wish), plan_refusal(plan, QUESTION_ACCEPT));
	return EXIT_UNSUPPORTED;
}

static int check_preferred(const struct plan *plan, const struct observe_options *options)
{
	for (size_t i = 0; i < options->prefer_count; i++) {
		const char *reason = plan_not_used(plan, options->prefer[i]);

		if (reason) {
			log_error("--prefer %s: refused here: %s", options->prefer[i], reason);
			return EXIT_UNSUPPORTED;
		}
	}
	return EXIT_SUCCESS;
}

int lacks_check(const struct plan *plan, const struct observe_options *options,
		const char *cgroup_reason)
{
	if (!plan_working(plan)) {
		log_error("cannot observe: %s ('sojourn probe' says more; 'sojourn report' and "
			  "sojourn-drive work without)",
			  plan->rows[0].reason);
		return EXIT_UNSUPPORTED;
	}
	if (check_preferred(plan, options))
		return EXIT_UNSUPPORTED;
	warn_missing(plan);
	say_without_stamps(plan, cgroup_reason);
	say_without_http(plan, options);
	say_without_commands(plan, options);
	say_without_calls(plan, options);
	return check_accept_source(plan, options);
}
