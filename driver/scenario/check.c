// SPDX-License-Identifier: MIT
/* Checks the steps of a scenario, each alone and in their order. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engines.h"
#include "scenario.h"
#include "sojourn/refuse.h"

/* The last place counts: a step's own key follows its defaults. */
static const struct scenario_place *find_place(const struct scenario_places *places,
					       const char *name, size_t length)
{
	for (size_t i = places->count; i-- > 0;)
		if (strlen(places->list[i].name) == length &&
		    !strncmp(places->list[i].name, name, length))
			return &places->list[i];
	return NULL;
}

int scenario_refuse_at(const char *path, const struct scenario_places *places,
		       const struct scenario_place *fallback, const char *sentence,
		       char **ret_error)
{
	bool option = !strncmp(sentence, "--", 2);
	const char *key = sentence + (option ? 2 : 0);
	const struct scenario_place *place = NULL;

	if (option)
		place = find_place(places, key, strcspn(key, ": "));
	if (!place && !strncmp(key, "header:", 7))
		place = find_place(places, "headers", 7);
	if (place)
		sentence = key; /* as written there */
	if (!place)
		place = fallback;
	if (!place)
		return refuse(ret_error, "%s: %s", path, sentence);
	return refuse(ret_error, "%s:%zu:%zu: %s", path, place->line, place->column, sentence);
}

static int refuse_step(const struct scenario *scenario, const struct scenario_step *step,
		       const char *key, const char *sentence, char **ret_error)
{
	const struct scenario_place *place = find_place(&step->places, key, strlen(key));

	return scenario_refuse_at(scenario->path, &step->places, place ? place : &step->place,
				  sentence, ret_error);
}

void scenario_step_request(const struct scenario *scenario, const struct scenario_step *step,
			   const struct request *run, struct request *ret_request)
{
	*ret_request = step->request;
	ret_request->grpc = run->grpc;
	ret_request->grpc_messages = run->grpc_messages;
	ret_request->grpc_expectation = run->grpc_expectation;
	ret_request->match = run->match;
	ret_request->captures = &step->captures;
	ret_request->variables = (struct template_variables){
		.list = scenario->variables,
		.count = scenario->variable_count,
		.visible = step->visible,
	};
}

void scenario_rows(const struct scenario *scenario, struct drive_rows *ret_rows)
{
	_Static_assert(DRIVE_ROWS_MAX >= SCENARIO_STEPS_MAX, "a row for each step");
	*ret_rows = (struct drive_rows){
		.kind = !scenario->of_targets	   ? DRIVE_STEPS
			: scenario->step_count > 1 ? DRIVE_TARGETS
						   : DRIVE_ONE,
		.scenario = scenario->name ? scenario->name : scenario->path,
		.count = (uint32_t)scenario->step_count,
		.think_ns = scenario->thinks ? scenario->think_ns : NULL,
	};
	for (size_t i = 0; i < scenario->step_count; i++) {
		const struct scenario_step *step = &scenario->steps[i];
		bool plain = engine_has(step->target.engine, ENGINE_PLAIN);

		ret_rows->list[i] = (struct drive_row){
			.name = step->name,
			.method = plain ? NULL : step->request.method,
		};
		ret_rows->targets[i] = &step->target;
	}
}

static int replace_path(struct scenario_step *step)
{
	char *path = strdup(step->path);

	if (!path)
		return -ENOMEM;
	free(step->target.path);
	step->target.path = path;
	return 0;
}

/* Refuse the default target, which the file or the command line gave. */
static int refuse_default(const struct scenario *scenario, const struct options *run,
			  const char *sentence, char **ret_error)
{
	const struct scenario_place *place = find_place(&scenario->places, "target", 6);

	if (run->url)
		return refuse(ret_error, "%s", sentence);
	return scenario_refuse_at(scenario->path, &scenario->places, place, sentence, ret_error);
}

static int check_target(const struct scenario *scenario, struct scenario_step *step,
			const struct options *run, char **ret_error)
{
	const char *url = step->url ? step->url : scenario->url;
	autofree char *error = NULL;
	int err;

	if (!url)
		return refuse_step(scenario, step, "name",
				   "the step has no target; give one here, or to the scenario",
				   ret_error);
	target_clear(&step->target);
	err = target_parse(engines, url, &step->target, &error);
	if (err == -EINVAL && error && !step->url)
		return refuse_default(scenario, run, error, ret_error);
	if (err == -EINVAL && error)
		return refuse_step(scenario, step, "target", error, ret_error);
	if (err || !step->path)
		return err;
	if (engine_has(step->target.engine, ENGINE_PLAIN))
		return refuse_step(
			scenario, step, "path",
			"path: targets of this kind have none; it goes with http:", ret_error);
	return replace_path(step);
}

static int check_request(const struct scenario *scenario, const struct scenario_step *step,
			 const struct options *run, char **ret_error)
{
	const struct engine *engine = step->target.engine;
	autofree char *error = NULL;
	struct link_settings link = run->link;
	struct request request;
	int err;

	scenario_step_request(scenario, step, &run->request, &request);
	if (!engine_has(engine, ENGINE_TLS))
		link.tls = (struct tls_options){0}; /* options of TLS are for other steps */
	link.datagrams.given &= engine_has(engine, ENGINE_DATAGRAMS); /* likewise */
	err = options_check(&request, &link, engine, &error);
	if (!err && engine->check)
		err = engine->check(&request, &link, &step->target, &error);
	if (err == -EINVAL && error)
		return refuse_step(scenario, step,
				   strncmp(error, "the URL", 7) ? "name"
				   : step->path			? "path"
								: "target",
				   error, ret_error);
	if (!err && step->captures.count && !engine_has(engine, ENGINE_CAPTURES))
		return refuse_step(scenario, step, "capture",
				   "capture: targets of this kind give nothing to capture",
				   ret_error);
	return err;
}

/* Check a value to set; its template limits the length of the variable. */
static int check_set(struct scenario *scenario, struct scenario_step *step,
		     const struct scenario_set *set, char **ret_error)
{
	struct template_variable *variable = &scenario->variables[set->variable];
	const struct template_variables variables = {scenario->variables, scenario->variable_count,
						     step->visible};
	struct template template = {.variables = &variables};
	autofree char *error = NULL;
	size_t max;
	int err = template_add(&template, "set", TEMPLATE_BYTES, set->text, strlen(set->text),
			       &step->request.rows, &error);

	max = template.max;
	template_clear(&template);
	if (err == -EINVAL && error)
		return scenario_refuse_at(scenario->path, &step->places, &set->place, error,
					  ret_error);
	if (!err && max > CAPTURE_SIZE_MAX)
		return scenario_refuse_at(scenario->path, &step->places, &set->place,
					  "set: the value may exceed 4096 bytes, which a variable "
					  "cannot hold",
					  ret_error);
	if (max > variable->max)
		variable->max = max;
	step->visible |= UINT64_C(1) << set->variable;
	return err;
}

static int check_weight(const struct scenario *scenario, struct scenario_step *step,
			char **ret_error)
{
	if (scenario->order == SCENARIO_CYCLE && step->weight)
		return refuse_step(scenario, step, "weight",
				   "weight: the steps of a cycle take turns; it goes with "
				   "'order: mix'",
				   ret_error);
	if (!step->weight)
		step->weight = 1;
	return 0;
}

/* @visible: variables set by earlier steps; this step's are added. */
static int check_step(struct scenario *scenario, struct scenario_step *step,
		      const struct options *run, uint64_t *visible, char **ret_error)
{
	int err = check_weight(scenario, step, ret_error);

	if (!err && step->think_ns && run->load.schedule.rate)
		return refuse_step(scenario, step, "think",
				   "think: a rate and a think time exclude each other", ret_error);
	step->visible = scenario->order == SCENARIO_CYCLE ? *visible : 0;
	for (size_t i = 0; i < step->set_count && !err; i++)
		err = check_set(scenario, step, &step->sets[i], ret_error);
	if (!err)
		err = check_target(scenario, step, run, ret_error);
	if (!err)
		err = check_request(scenario, step, run, ret_error);
	scenario->think_ns[step - scenario->steps] = find_place(&step->places, "think", 5)
							     ? step->think_ns
							     : run->load.schedule.think_ns;
	scenario->thinks |= scenario->think_ns[step - scenario->steps] != 0;
	*visible |= step->visible;
	for (size_t i = 0; i < step->captures.count; i++)
		*visible |= UINT64_C(1) << step->captures.list[i].variable;
	return err;
}

/* Options of TLS or datagrams need a step that uses them. */
static int check_unused(const struct scenario *scenario, const struct options *options,
			char **ret_error)
{
	const char *tls_option = tls_option_given(&options->link.tls);
	bool tls = false, datagrams = false;

	for (size_t i = 0; i < scenario->step_count; i++) {
		const struct engine *engine = scenario->steps[i].target.engine;

		tls |= engine_has(engine, ENGINE_TLS);
		datagrams |= engine_has(engine, ENGINE_DATAGRAMS);
	}
	if (tls_option && !tls)
		return refuse(ret_error,
			      "%s: no step's target has TLS; it goes with https:", tls_option);
	if (options->link.datagrams.given && !datagrams)
		return refuse(ret_error,
			      "--match, --outstanding and --retransmit: no step's target has "
			      "datagrams; they go with udp:");
	return 0;
}

int scenario_check(struct scenario *scenario, const struct options *options, char **ret_error)
{
	uint64_t visible = 0;
	int err = 0;

	if (options->url)
		scenario->url = options->url;
	for (size_t i = 0; i < scenario->step_count && !err; i++) {
		struct scenario_step *step = &scenario->steps[i];

		step->request.method = step->request.method ? step->request.method
				       : step->request.body ? "POST"
							    : "GET";
		err = check_step(scenario, step, options, &visible, ret_error);
	}
	return err ? err : check_unused(scenario, options, ret_error);
}
