// SPDX-License-Identifier: MIT
/*
 * Several URLs on a command line, as a scenario: a step of the same request for each target, which
 * every client asks in turn. Neighbours: scenario.h, engine.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engines.h"
#include "scenario.h"
#include "sojourn/refuse.h"

static int check_kind(const struct scenario *scenario, const struct scenario_step *step,
		      char **ret_error)
{
	const unsigned int kind = ENGINE_PLAIN | ENGINE_DATAGRAMS | ENGINE_HTTP2;
	const struct scenario_step *first = &scenario->steps[0];
	const struct engine *a = first->target.engine, *b = step->target.engine;

	if ((a->bits & kind) == (b->bits & kind) && !a->form == !b->form)
		return 0;
	return refuse(ret_error,
		      "'%s' and '%s' cannot be asked in turn: %s: and %s: take different requests; "
		      "give URLs of http: and https:, of h2: and h2c:, of tcp: and unix:, or of "
		      "udp:",
		      first->name, step->name, a->scheme, b->scheme);
}

/* Options of TLS are for targets with TLS. */
static int check_options(const struct scenario *scenario, const struct scenario_step *step,
			 const struct options *run, bool tls, char **ret_error)
{
	const struct engine *engine = step->target.engine;
	struct link_settings link = run->link;
	struct request request;
	int err;

	scenario_step_request(scenario, step, &run->request, &request);
	if (tls && !engine_has(engine, ENGINE_TLS))
		link.tls = (struct tls_options){0};
	err = options_check(&request, &link, engine, ret_error);
	return err || !engine->check ? err
				     : engine->check(&request, &link, &step->target, ret_error);
}

static int check(const struct scenario *scenario, const struct options *options, char **ret_error)
{
	bool tls = false;
	int err = 0;

	for (size_t i = 0; i < scenario->step_count && !err; i++) {
		tls |= engine_has(scenario->steps[i].target.engine, ENGINE_TLS);
		err = check_kind(scenario, &scenario->steps[i], ret_error);
	}
	for (size_t i = 0; i < scenario->step_count && !err; i++)
		err = check_options(scenario, &scenario->steps[i], options, tls, ret_error);
	return err;
}

/* Names identify rows, also when documents are merged. */
static bool has_step(const struct scenario *scenario, const char *name)
{
	for (size_t i = 0; i < scenario->step_count; i++)
		if (!strcmp(scenario->steps[i].name, name))
			return true;
	return false;
}

static int add_target(struct scenario *scenario, const char *url, const struct options *options,
		      char **ret_error)
{
	struct scenario_step *step = &scenario->steps[scenario->step_count];
	int err = has_step(scenario, url)
			  ? refuse(ret_error, "'%s' is given twice; each URL once", url)
			  : target_parse(engines, url, &step->target, ret_error);

	if (err)
		return err;
	scenario->step_count++;
	step->name = step->url = url;
	step->weight = 1;
	step->request = options->request; /* borrowed */
	return 0;
}

int scenario_of_targets(char *const *urls, size_t count, const struct options *options,
			struct scenario **ret_scenario, char **ret_error)
{
	struct scenario *scenario;
	int err = 0;

	if (count > SCENARIO_STEPS_MAX)
		return refuse(ret_error, "%zu URLs are given; up to %u are asked in turn", count,
			      SCENARIO_STEPS_MAX);
	scenario = calloc(1, sizeof(*scenario));
	if (!scenario)
		return -ENOMEM;
	scenario->of_targets = true;
	scenario->on_failure = SCENARIO_NEXT;
	scenario->steps = calloc(count, sizeof(*scenario->steps));
	if (!scenario->steps)
		err = -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		err = add_target(scenario, urls[i], options, ret_error);
	if (!err)
		err = check(scenario, options, ret_error);
	if (err)
		scenario_free(scenario);
	else
		*ret_scenario = scenario;
	return err;
}
