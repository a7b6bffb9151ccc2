// SPDX-License-Identifier: MIT
/*
 * Carries out the steps of a scenario. Each slot is a client with a next step and variables; the
 * engine of a step's target sends its request. Steps towards the same server share its engine's
 * state, so that a client has one connection to each server. Neighbours: scenario.h (the steps),
 * load/worker_load.c (when).
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "payload/message.h"
#include "payload/random.h"
#include "scenario.h"
#include "sojourn/clock.h"

/* A server, and how many kinds of request go to it. */
struct member {
	const struct engine *engine;
	void *shared;
	uint32_t kinds;
};

/* A step, shared by all workers. */
struct step {
	const struct scenario_step *scenario;
	struct request request; /* members borrow from it and from @link */
	struct link_settings link;
	uint32_t member;
	uint32_t kind; /* within the member */
	struct message *sets;
};

struct scenario_shared {
	const struct scenario *scenario;
	struct member *members;
	uint32_t member_count;
	struct step *steps;
	uint32_t step_count;
	uint64_t weight; /* of all steps */
	size_t set_size; /* room for the longest rendering */
};

/* The state of a client. */
struct client {
	uint32_t step;
	bool ready; /* variables are set: the request can be rendered, even again */
};

/* The state of one worker. */
struct scenario_state {
	struct engine_host host; /* first member; the worker's, with clients and steps */
	const struct engine_host *worker;
	struct scenario_shared *shared;
	struct client *clients;
	struct message_room room; /* for values to set, one at a time */
	uint64_t random;
	void *members[]; /* states of the members */
};

/* Return the first step with the same server, if the engine can add kinds; otherwise @step. */
static uint32_t find_first(const struct scenario *scenario, uint32_t step)
{
	const struct target *target = &scenario->steps[step].target;

	for (uint32_t i = 0; i < step && target->engine->add; i++)
		if (scenario->steps[i].target.engine == target->engine &&
		    !strcmp(scenario->steps[i].target.authority, target->authority))
			return i;
	return step;
}

uint32_t scenario_servers(const struct scenario *scenario)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scenario->step_count; i++)
		count += find_first(scenario, i) == i;
	return count;
}

static int add_member(struct scenario_shared *shared, struct step *step, struct target *target,
		      char **ret_error)
{
	struct member *member = &shared->members[shared->member_count];
	int err = 0;

	member->engine = target->engine;
	if (member->engine->unsampled)
		step->link.sampling = false;
	if (engine_has(member->engine, ENGINE_ADDRESSED))
		err = target_resolve(target, ret_error);
	if (!err)
		err = member->engine->prepare(&step->request, &step->link, target, &member->shared,
					      ret_error);
	if (err)
		return err;
	step->member = shared->member_count++;
	step->kind = member->kinds++;
	return 0;
}

static int join_member(struct scenario_shared *shared, struct step *step, uint32_t first,
		       struct target *target, char **ret_error)
{
	struct member *member = &shared->members[shared->steps[first].member];
	int err;

	target->address = shared->scenario->steps[first].target.address;
	err = member->engine->add(member->shared, &step->request, target, ret_error);
	if (err)
		return err;
	step->member = shared->steps[first].member;
	step->kind = member->kinds++;
	return 0;
}

static int build_sets(struct scenario_shared *shared, struct step *step, char **ret_error)
{
	const struct scenario_step *from = step->scenario;
	int err = 0;

	step->sets = calloc(from->set_count, sizeof(*step->sets));
	if (from->set_count && !step->sets)
		return -ENOMEM;
	for (size_t i = 0; i < from->set_count && !err; i++) {
		struct message *message = &step->sets[i];

		message->template.variables = &step->request.variables;
		message->numbers = step->request.numbers;
		err = template_add(&message->template, "set", TEMPLATE_BYTES, from->sets[i].text,
				   strlen(from->sets[i].text), &step->request.rows, ret_error);
		if (!err)
			err = message_settle(message);
		if (!err)
			shared->set_size = message_room_max(message, shared->set_size);
	}
	return err;
}

static int prepare_step(struct scenario_shared *shared, struct scenario *scenario,
			const struct request *request, const struct link_settings *link,
			uint32_t index, char **ret_error)
{
	struct scenario_step *from = &scenario->steps[index];
	struct step *step = &shared->steps[index];
	uint32_t first = find_first(shared->scenario, index);
	int err;

	step->scenario = from;
	scenario_step_request(scenario, from, request, &step->request);
	step->link = *link;
	shared->step_count++;
	shared->weight += from->weight;
	err = build_sets(shared, step, ret_error);
	if (err)
		return err;
	if (first == index)
		return add_member(shared, step, &from->target, ret_error);
	return join_member(shared, step, first, &from->target, ret_error);
}

static void scenario_release(void *state)
{
	struct scenario_shared *shared = state;

	if (!shared)
		return;
	for (uint32_t i = 0; i < shared->member_count; i++)
		shared->members[i].engine->release(shared->members[i].shared);
	for (uint32_t i = 0; i < shared->step_count; i++) {
		struct step *step = &shared->steps[i];

		for (size_t j = 0; step->sets && j < step->scenario->set_count; j++)
			message_clear(&step->sets[j]);
		free(step->sets);
	}
	free(shared->members);
	free(shared->steps);
	free(shared);
}

static int prepare_steps(struct scenario *scenario, const struct request *request,
			 const struct link_settings *link, void **ret_shared, char **ret_error)
{
	struct scenario_shared *shared = calloc(1, sizeof(*shared));
	int err = 0;

	if (!shared)
		return -ENOMEM;
	shared->scenario = scenario;
	shared->steps = calloc(scenario->step_count, sizeof(*shared->steps));
	shared->members = calloc(scenario->step_count, sizeof(*shared->members));
	if (!shared->steps || !shared->members)
		err = -ENOMEM;
	for (uint32_t i = 0; i < scenario->step_count && !err; i++)
		err = prepare_step(shared, scenario, request, link, i, ret_error);
	if (err)
		scenario_release(shared);
	else
		*ret_shared = shared;
	return err;
}

/* Return why one server's exchanges are not sampled: due to its engine or one of its steps. */
static const char *member_unsampled(const struct scenario_shared *shared, uint32_t member)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < shared->step_count && !why; i++)
		if (shared->steps[i].member == member)
			why = engine_unsampled(shared->members[member].engine,
					       &shared->steps[i].request);
	return why;
}

static const char *unsampled(const struct scenario_shared *all)
{
	const char *first = NULL;

	for (uint32_t i = 0; i < all->member_count; i++) {
		const char *why = member_unsampled(all, i);

		if (!why)
			return NULL;
		first = first ? first : why;
	}
	return first;
}

static uint32_t draw(struct scenario_state *state)
{
	const struct scenario_shared *shared = state->shared;
	__extension__ unsigned __int128 product = random_next(&state->random);
	uint64_t drawn;
	uint32_t step = 0;

	product *= shared->weight;
	for (drawn = (uint64_t)(product >> 64); drawn >= shared->steps[step].scenario->weight;
	     step++)
		drawn -= shared->steps[step].scenario->weight;
	return step;
}

static uint32_t next_step(struct scenario_state *state, uint32_t step, bool failed)
{
	const struct scenario *scenario = state->shared->scenario;

	if (scenario->order == SCENARIO_MIX)
		return draw(state);
	if (failed && scenario->on_failure == SCENARIO_RESTART)
		return 0;
	return step + 1 == state->shared->step_count ? 0 : step + 1;
}

static void set_variables(struct scenario_state *state, uint32_t slot, const struct step *step)
{
	struct capture_store *store = &state->host.clients[slot].store;

	for (size_t i = 0; i < step->scenario->set_count; i++) {
		size_t length;
		const char *bytes =
			message_next(&step->sets[i], &state->room, slot, store->values, &length);

		capture_set(store, step->scenario->sets[i].variable, bytes, length);
	}
}

static const struct step *begin_step(struct scenario_state *state, uint32_t slot)
{
	struct client *client = &state->clients[slot];
	const struct step *step = &state->shared->steps[client->step];

	if (client->ready)
		return step;
	client->ready = true;
	state->host.clients[slot].kind = step->kind;
	state->host.clients[slot].noun = state->shared->scenario->of_targets ? "target" : "step";
	state->host.clients[slot].name = step->scenario->name;
	set_variables(state, slot, step);
	return step;
}

static void scenario_start(void *user, uint32_t slot)
{
	struct scenario_state *state = user;
	const struct step *step = begin_step(state, slot);

	state->shared->members[step->member].engine->start(state->members[step->member], slot);
}

/*
 * Retry an unsent request; with several targets skip it, as a dead one must not block the others.
 */
static void finish_step(struct scenario_state *state, uint32_t slot,
			const struct engine_result *result)
{
	struct client *client = &state->clients[slot];

	if (result->not_yet || (result->connect_failed && !state->shared->scenario->of_targets))
		return;
	client->step = next_step(state, result->step, engine_failure(result) != RUN_NO_ERROR);
	client->ready = false;
}

/* The engine that has just finished continues only if it also serves the next request. */
static enum engine_next scenario_done(const struct engine_host *host, uint32_t slot,
				      struct engine_result *result)
{
	struct scenario_state *state = (struct scenario_state *)host; /* its first member */
	uint32_t member = state->shared->steps[state->clients[slot].step].member;
	const struct step *step;

	result->step = state->clients[slot].step;
	finish_step(state, slot, result);
	if (state->worker->done(state->worker, slot, result) != ENGINE_AGAIN)
		return ENGINE_REST;
	step = begin_step(state, slot);
	if (step->member == member)
		return ENGINE_AGAIN;
	state->shared->members[step->member].engine->start(state->members[step->member], slot);
	return ENGINE_REST;
}

static void scenario_retire(void *user, uint32_t slot)
{
	struct scenario_state *state = user;

	for (uint32_t i = 0; i < state->shared->member_count; i++)
		if (state->shared->members[i].engine->retire)
			state->shared->members[i].engine->retire(state->members[i], slot);
}

static void scenario_expire(void *user, uint64_t over_ns)
{
	struct scenario_state *state = user;

	for (uint32_t i = 0; i < state->shared->member_count; i++)
		state->shared->members[i].engine->expire(state->members[i], over_ns);
}

static void scenario_close(void *user)
{
	struct scenario_state *state = user;

	for (uint32_t i = 0; i < state->shared->member_count; i++)
		if (state->members[i])
			state->shared->members[i].engine->close(state->members[i]);
}

static void scenario_free_state(void *user)
{
	struct scenario_state *state = user;

	if (!state)
		return;
	for (uint32_t i = 0; i < state->shared->member_count; i++)
		if (state->members[i])
			state->shared->members[i].engine->free(state->members[i]);
	for (uint32_t i = 0; state->host.clients && i < state->host.slots; i++)
		capture_close(&state->host.clients[i].store);
	message_room_close(&state->room);
	free(state->host.clients);
	free(state->clients);
	free(state);
}

static int open_clients(struct scenario_state *state)
{
	const struct scenario *scenario = state->shared->scenario;
	int err = 0;

	state->clients = calloc(state->host.slots, sizeof(*state->clients));
	state->host.clients = calloc(state->host.slots, sizeof(*state->host.clients));
	if (!state->clients || !state->host.clients)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->host.slots && !err; i++) {
		if (scenario->order == SCENARIO_MIX)
			state->clients[i].step = draw(state);
		else if (scenario->of_targets) /* spread evenly from the start */
			state->clients[i].step =
				(state->host.first_client + i) % (uint32_t)scenario->step_count;
		err = capture_open(&state->host.clients[i].store, scenario->variables,
				   scenario->variable_count);
	}
	return err ? err
		   : message_room_open(&state->room, state->shared->set_size,
				       state->host.first_client, state->host.slots);
}

/* After a failure, open members have handles on the loop: the caller closes and frees them. */
static int open_members(struct scenario_state *state)
{
	int err = 0;

	for (uint32_t i = 0; i < state->shared->member_count && !err; i++)
		err = state->shared->members[i].engine->open(
			&state->host, state->shared->members[i].shared, &state->members[i]);
	return err;
}

static int scenario_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	struct scenario_shared *all = (struct scenario_shared *)shared; /* counts requests */
	struct scenario_state *state =
		calloc(1, sizeof(*state) + all->member_count * sizeof(state->members[0]));
	int err;

	if (!state)
		return -ENOMEM;
	state->shared = all;
	state->host = *host;
	state->host.clients = NULL;
	state->host.done = scenario_done;
	state->worker = host;
	state->random = clock_now_ns() * 0x9e3779b97f4a7c15ULL;
	err = open_clients(state);
	if (!err)
		err = open_members(state);
	if (err) {
		scenario_close(state);
		uv_run(host->loop, UV_RUN_NOWAIT);
		scenario_free_state(state);
		return err;
	}
	*ret_state = state;
	return 0;
}

static const struct engine engine_scenario = {
	.scheme = "scenario",
	.release = scenario_release,
	.open = scenario_open,
	.start = scenario_start,
	.retire = scenario_retire,
	.expire = scenario_expire,
	.close = scenario_close,
	.free = scenario_free_state,
};

/* A single step needs only its target's engine. */
static int prepare_only(struct scenario_step *step, struct drive_job *job, char **ret_error)
{
	const struct engine *engine = step->target.engine;
	int err = 0;

	job->engine = engine;
	job->sockets = 1;
	job->unsampled = engine_unsampled(engine, &step->request);
	if (engine_has(engine, ENGINE_ADDRESSED))
		err = target_resolve(&step->target, ret_error);
	return err ? err
		   : engine->prepare(&step->request, job->link, &step->target, &job->shared,
				     ret_error);
}

int scenario_engine_prepare(struct scenario *scenario, const struct request *request,
			    struct drive_job *job, char **ret_error)
{
	const struct scenario_shared *shared;
	int err;

	if (scenario->of_targets && scenario->step_count == 1)
		return prepare_only(&scenario->steps[0], job, ret_error);
	err = prepare_steps(scenario, request, job->link, &job->shared, ret_error);
	if (err)
		return err;
	shared = job->shared;
	job->engine = &engine_scenario;
	job->sockets = shared->member_count;
	job->unsampled = unsampled(shared);
	return 0;
}
