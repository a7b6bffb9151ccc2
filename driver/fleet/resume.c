// SPDX-License-Identifier: MIT
/* A run without its first coordinator; see resume.h. */
#include "resume.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "fleet/channel/relay.h"
#include "fleet/channel/seal.h"
#include "fleet/channel/store.h"
#include "fleet/observers/lookouts.h"
#include "kept.h"
#include "member.h"
#include "result.h"
#include "sojourn/array.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "transport/loop.h"

#define STEP_MS 250U
/* For an agent's answer, also after its NATS server was killed. */
#define GONE_STEPS 24U
/* Waiting is mentioned after this time. */
#define SOON_STEPS 4U
/* An agent waits less than two seconds for its first coordinator. */
#define LED_STEPS 16U
/* For the first answers. */
#define ANSWER_STEPS 2U

#define DOCUMENT_MAX ((size_t)64 << 20)

/* A document in pieces, which may come twice and in any order. A zeroed one is valid. */
struct pieces {
	char *text;
	size_t total, have;
	size_t *seen;
	size_t seen_count;
	bool whole;
};

/* A member of the record, or an agent beside an observer, and what it has stored. */
struct place {
	const char *agent, *name;
	struct pieces document;
	bool final, stopped;
	bool interrupted; /* the result is of a part of the run */
	char *reason;
	unsigned int quiet; /* steps since its agent was heard */
	unsigned int asked;
};

struct resume {
	const struct fleet_options *options;
	struct store *store;
	uint64_t number; /* of the last message that was read */
	bool announced;	 /* agents were there */
	bool foreign;	 /* a record was not the coordinator's */
	struct pieces record_pieces;
	json_t *record;
	struct sweep_past past;
	char step_name[32]; /* of the step that is being read */
	struct pieces step_pieces;
	unsigned int next_step; /* the number of the next one to be stored */
	char **command;
	struct place *places; /* those of the members, then @watched others */
	struct member *members;
	uint32_t count, watched;
	struct observer_group *group; /* while the run is taken up; NULL: none */
	uv_timer_t timer;
	uv_signal_t signals[2];
	unsigned int steps;
	bool waiting;
	bool interrupted;
	unsigned int led; /* steps in which an agent had its first coordinator */
	bool is_led;
};

/* ---- pieces ---- */

static bool was_seen(const struct pieces *pieces, size_t at)
{
	for (size_t i = 0; i < pieces->seen_count; i++)
		if (pieces->seen[i] == at)
			return true;
	return false;
}

static int begin_pieces(struct pieces *pieces, size_t total)
{
	if (pieces->text)
		return total == pieces->total ? 0 : -EINVAL;
	pieces->text = calloc(1, total + 1);
	pieces->total = total;
	return pieces->text ? 0 : -ENOMEM;
}

/* Ignore what does not fit: somebody else has stored it. */
static int add_piece(struct pieces *pieces, const struct store_message *message)
{
	json_int_t at = json_integer_value(json_object_get(message->head, "at"));
	json_int_t total = json_integer_value(json_object_get(message->head, "total"));
	size_t *added;

	if (at < 0 || total < 0 || total > (json_int_t)DOCUMENT_MAX || at > total ||
	    message->body_length > (size_t)(total - at) || was_seen(pieces, (size_t)at) ||
	    begin_pieces(pieces, (size_t)total))
		return 0;
	added = ARRAY_APPEND(pieces->seen, pieces->seen_count);
	if (!added)
		return -ENOMEM;
	*added = (size_t)at;
	if (message->body_length)
		memcpy(pieces->text + at, message->body, message->body_length);
	pieces->have += message->body_length;
	pieces->whole = pieces->have == pieces->total;
	return 0;
}

static void clear_pieces(struct pieces *pieces)
{
	free(pieces->text);
	free(pieces->seen);
	*pieces = (struct pieces){0};
}

/* ---- the record ---- */

static const json_t *watching(const struct resume *resume)
{
	return json_object_get(json_object_get(resume->record, "observers"), "agents");
}

static void read_watching(struct resume *resume)
{
	const json_t *list = watching(resume);

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *agent = json_object_get(json_array_get(list, i), "agent");

		if (json_is_string(agent))
			resume->places[resume->count + resume->watched++].agent =
				json_string_value(agent);
	}
}

static int read_members(struct resume *resume, const json_t *list)
{
	size_t count = json_array_size(list);

	if (!count || count > FLEET_HOSTS_MAX)
		return -EBADMSG;
	resume->places = calloc(count + json_array_size(watching(resume)), sizeof(*resume->places));
	resume->members = calloc(count, sizeof(*resume->members));
	if (!resume->places || !resume->members)
		return -ENOMEM;
	resume->count = (uint32_t)count;
	for (uint32_t i = 0; i < resume->count; i++) {
		const json_t *entry = json_array_get(list, i);
		struct place *place = &resume->places[i];
		struct member *member = &resume->members[i];

		place->agent = json_string_value(json_object_get(entry, "agent"));
		place->name = json_string_value(json_object_get(entry, "name"));
		if (!place->agent || !relay_is_key(place->agent) || !place->name)
			return -EBADMSG;
		member->name = place->name;
		member->clock_known = true;
		member->offset_ns = json_integer_value(json_object_get(entry, "offset_ns"));
		member->round_ns = (uint64_t)json_integer_value(json_object_get(entry, "round_ns"));
	}
	return 0;
}

static int read_command(struct resume *resume, const json_t *list)
{
	size_t count = json_array_size(list);

	resume->command = calloc(count + 1, sizeof(*resume->command));
	if (!resume->command)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *word = json_string_value(json_array_get(list, i));

		if (!word)
			return -EBADMSG;
		resume->command[i] = (char *)word;
	}
	return count ? 0 : -EBADMSG;
}

/*
 * Others may write to the stream, too. The command line names files that are written here, so it has
 * to be the coordinator's own.
 */
static int read_record(struct resume *resume, char **ret_error)
{
	const struct pieces *pieces = &resume->record_pieces;
	const char *text = seal_open(resume->options->resume, pieces->text, pieces->total);
	const char *version;
	int err;

	if (!text) {
		clear_pieces(&resume->record_pieces);
		resume->foreign = true;
		return 0;
	}
	resume->record = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	version = json_string_value(json_object_get(resume->record, "version"));
	if (version && strcmp(version, SOJOURN_VERSION) != 0)
		return refuse(ret_error,
			      "the run is of sojourn-drive %s, and this is %s: use the same one",
			      version, SOJOURN_VERSION);
	err = read_members(resume, json_object_get(resume->record, "members"));
	if (!err)
		err = read_command(resume, json_object_get(resume->record, "command"));
	if (!err)
		read_watching(resume);
	return err == -EBADMSG ? refuse(ret_error, "the record of the run is not valid") : err;
}

/* ---- what is stored ---- */

static struct place *find_place(struct resume *resume, const char *agent)
{
	for (uint32_t i = 0; i < resume->count + resume->watched; i++)
		if (!strcmp(resume->places[i].agent, agent))
			return &resume->places[i];
	return NULL;
}

static int take_result(struct place *place, const struct store_message *message)
{
	const char *reason = json_string_value(json_object_get(message->head, "reason"));
	int err = add_piece(&place->document, message);

	place->final = json_is_true(json_object_get(message->head, "final"));
	place->stopped = json_is_true(json_object_get(message->head, "stopped"));
	if (!err && reason && !place->reason)
		place->reason = strdup(reason);
	return err;
}

/* Steps are stored one after another. Ignore those that another has stored. */
static int take_step(struct resume *resume, const struct store_message *message, char **ret_error)
{
	struct pieces *pieces = &resume->step_pieces;
	const char *text, *number = message->name + strlen(KEPT_STEP);
	bool before;
	int err;

	if (strcmp(resume->step_name, message->name) != 0)
		clear_pieces(pieces);
	snprintf(resume->step_name, sizeof(resume->step_name), "%s", message->name);
	before = pieces->whole;
	err = add_piece(pieces, message);
	if (err || before || !pieces->whole)
		return err;
	text = seal_open(resume->options->resume, pieces->text, pieces->total);
	if (text)
		resume->next_step = (unsigned int)strtoul(number, NULL, 10) + 1;
	return text ? steps_read(&resume->past, text, ret_error) : 0;
}

static int take_message(struct resume *resume, const struct store_message *message,
			char **ret_error)
{
	struct place *place = find_place(resume, message->name);
	int err;

	if (json_is_true(json_object_get(message->head, "here")))
		resume->announced = true;
	else if (place)
		return take_result(place, message);
	if (!strncmp(message->name, KEPT_STEP, strlen(KEPT_STEP)))
		return take_step(resume, message, ret_error);
	if (resume->record || strcmp(message->name, KEPT_RECORD) != 0)
		return 0;
	err = add_piece(&resume->record_pieces, message);
	return err || !resume->record_pieces.whole ? err : read_record(resume, ret_error);
}

static int collect(struct resume *resume, char **ret_error)
{
	autofree char *error = NULL;
	int more = 1, err = 0;

	while (!err && more > 0) {
		CLEANUP(store_message_clear) struct store_message message = {0};

		more = store_next(resume->store, &resume->number, &message, &error);
		err = more > 0 ? take_message(resume, &message, &error) : more;
	}
	return err && error ? refuse(ret_error, "resume: %s", error) : err;
}

/* ---- the agents ---- */

static void on_heard(void *user, const char *agent, const json_t *message)
{
	struct resume *resume = user;
	struct place *place = find_place(resume, agent);
	bool led = !strcmp(channel_type(message), "led");

	if (!place || (!led && strcmp(channel_type(message), "running") != 0))
		return;
	place->quiet = 0;
	resume->is_led |= led;
}

/* Agents store no results of a sweep. */
static bool is_awaited(const struct resume *resume, const struct place *place)
{
	return !resume_is_sweep(resume) && !place->document.whole && place->quiet < GONE_STEPS;
}

static void ask_agent(struct resume *resume, struct place *place)
{
	store_tell(resume->store, place->agent,
		   resume_is_sweep(resume) ? json_pack("{s:s, s:b}", "type", "resume", "end", 1)
					   : json_pack("{s:s, s:b}", "type", "resume", "stop",
						       resume->interrupted));
	if (is_awaited(resume, place) && place->asked++ == SOON_STEPS)
		log_note("waiting for the result of %s", place->name);
	place->quiet++;
}

/* Agents are asked even if all results are there: the first coordinator may be about to end. */
static void on_step(uv_timer_t *timer)
{
	struct resume *resume = timer->data;

	resume->led = resume->is_led ? resume->led + 1 : 0;
	resume->waiting = resume->is_led || resume->steps++ < ANSWER_STEPS;
	resume->is_led = false;
	for (uint32_t i = 0; i < resume->count; i++) {
		resume->waiting |= is_awaited(resume, &resume->places[i]);
		ask_agent(resume, &resume->places[i]);
	}
}

/* On the first signal end the load; on the second die. Stored results stay there. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct resume *resume = handle->data;

	if (resume->interrupted) {
		signal(number, SIG_DFL);
		raise(number);
	}
	resume->interrupted = true;
}

static int begin_waiting(struct resume *resume)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	uv_loop_t *loop = store_loop(resume->store);
	int err = uv_timer_init(loop, &resume->timer);

	resume->timer.data = resume;
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++)
		err = loop_signal(loop, &resume->signals[i], on_signal, numbers[i], resume);
	return err ? err : uv_timer_start(&resume->timer, on_step, 0, STEP_MS);
}

static int wait_for_members(struct resume *resume, char **ret_error)
{
	int err = begin_waiting(resume);

	resume->waiting = true;
	while (!err && resume->waiting && resume->led < LED_STEPS) {
		uv_run(store_loop(resume->store), UV_RUN_ONCE);
		err = collect(resume, ret_error);
	}
	if (!err && resume->led >= LED_STEPS)
		return refuse(ret_error,
			      "resume: run %s still has a coordinator; only one that is gone can "
			      "be replaced",
			      resume->options->resume);
	return err;
}

/* ---- the document ---- */

static void lose(struct member *member, const char *reason)
{
	member->state = MEMBER_LOST;
	free(member->reason);
	member->reason = strdup(reason);
}

static void settle_member(struct member *member, struct place *place)
{
	member->state = MEMBER_DONE;
	if (!place->document.whole) {
		lose(member, "its agent is gone, and has stored no result");
		return;
	}
	if (!place->final)
		lose(member, place->reason ? place->reason : "no memory");
	if (!place->document.total)
		return;
	member->unread.text = TAKE_PTR(place->document.text);
	member->unread.length = place->document.total;
	if (!member_read(member)) {
		lose(member, "its stored result cannot be read");
		return;
	}
	place->interrupted = place->final && member->run->driver->interrupted;
	if (place->interrupted && !place->stopped)
		lose(member, "its driver was ended by a signal on its host");
}

/* ---- the observers ---- */

static bool is_interrupted(void *user)
{
	struct resume *resume = user;
	bool before = resume->interrupted;

	uv_run(store_loop(resume->store), UV_RUN_NOWAIT);
	return resume->interrupted && !before;
}

/* From now on the agents beside the observers hear of the run. */
static int adopt_observers(struct resume *resume, const struct options *options,
			   struct observers **ret_observers, char **ret_error)
{
	const struct observer_access *access = &options->run.observers;
	const struct patience patience = {.is_over = is_interrupted, .user = resume};
	const json_t *record = json_object_get(resume->record, "observers");
	int err;

	if (!record || !access->source)
		return 0;
	err = lookouts_adopt(access->source->settings, record, patience, &resume->group);
	if (err)
		return err == -EBADMSG ? refuse(ret_error, "the record of the run is not valid")
				       : err;
	err = observers_adopt(access, resume->group, ret_observers);
	if (err)
		access->source->free(resume->group);
	return err;
}

/* The marks of the first coordinator on observers that it alone reached are lost with it. */
static int note_lost_marks(struct run *run)
{
	free(run->driver->observer_error);
	run->driver->observer_error =
		strdup("the coordinator that had marked the observers of --observer URL ended "
		       "before it had read their part");
	return run->driver->observer_error ? 0 : -ENOMEM;
}

/* An agent that has forgotten the run has stored its document before. */
static int add_observers(struct resume *resume, const struct options *options,
			 struct observers *observers, struct run *run, char **ret_error)
{
	const struct observer_access *access = &options->run.observers;
	int err = access->url_count ? note_lost_marks(run) : 0;

	if (err || !observers)
		return err;
	(void)access->source->end(resume->group);
	err = collect(resume, ret_error);
	for (uint32_t i = 0; i < resume->watched && !err; i++) {
		const struct place *place = &resume->places[resume->count + i];

		if (place->document.whole)
			err = lookouts_give(resume->group, place->agent, place->document.text,
					    place->document.total);
	}
	return err ? err : fleet_result_observe(observers, &options->run, run);
}

/* ---- the run ---- */

int resume_run(struct resume *resume, const struct options *options, struct run **ret_run,
	       char **ret_error)
{
	CLEANUP(cleanup_observers_free) struct observers *observers = NULL;
	CLEANUP(fleet_sum_clear) struct fleet_sum sum = {0};
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	struct fleet_outcome outcome = {
		.load = &options->load,
		.threads = options->run.threads,
		.command = resume->command,
	};
	int err = adopt_observers(resume, options, &observers, ret_error);

	if (!err)
		err = wait_for_members(resume, ret_error);
	if (err)
		return err;
	for (uint32_t i = 0; i < resume->count; i++) {
		settle_member(&resume->members[i], &resume->places[i]);
		outcome.interrupted |= resume->places[i].interrupted;
	}
	if (outcome.interrupted && !resume->interrupted)
		log_note("members ended the load early, as they had no coordinator");
	err = fleet_result(&sum, resume->members, resume->count, &outcome, &run, ret_error);
	if (!err)
		err = add_observers(resume, options, observers, run, ret_error);
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}

/* ---- a sweep ---- */

static int refuse_unknown(const struct resume *resume, char **ret_error)
{
	const struct fleet_options *options = resume->options;

	if (resume->foreign)
		return refuse(ret_error,
			      "resume: the record of run %s was not stored by its coordinator, so "
			      "its command line is not trusted",
			      options->resume);
	if (resume->announced)
		return refuse(ret_error, "resume: run %s had not begun: nothing was measured",
			      options->resume);
	return refuse(
		ret_error,
		"resume: nothing is stored of run %s at %s: its report was written, it is too "
		"old, or the server had no JetStream",
		options->resume, options->nats.url);
}

bool resume_is_sweep(const struct resume *resume)
{
	return json_is_true(json_object_get(resume->record, "sweep"));
}

/* The document says so, also if this process is killed in turn. */
static int note_resumption(struct resume *resume, size_t total, char **ret_error)
{
	autofree char *text = NULL, *sealed = NULL, *error = NULL;
	char name[32];
	int err = steps_note(&resume->past, total, &text);

	if (err || !text)
		return err;
	snprintf(name, sizeof(name), KEPT_STEP "%u", resume->next_step++);
	sealed = seal_put(resume->options->resume, text);
	err = sealed ? store_put(resume->store, name, sealed, &error) : -ENOMEM;
	return err && error ? refuse(ret_error, "resume: %s", error) : err;
}

/* The first coordinator may have ended its sweep, and deleted what was stored of it. */
static int check_kept(const struct resume *resume, char **ret_error)
{
	CLEANUP(store_message_clear) struct store_message message = {0};
	autofree char *error = NULL;
	uint64_t number = 0;
	int more = store_next(resume->store, &number, &message, &error);

	if (more < 0)
		return error ? refuse(ret_error, "resume: %s", error) : more;
	return more ? 0 : refuse_unknown(resume, ret_error);
}

int resume_sweep(struct resume *resume, size_t total, struct fleet_options *fleet,
		 struct kept *ret_kept, struct sweep_past *ret_past, char **ret_error)
{
	int err = wait_for_members(resume, ret_error);

	if (!err && resume->interrupted)
		err = refuse(ret_error, "resume: interrupted; the run is still kept");
	if (!err)
		err = check_kept(resume, ret_error);
	if (!err)
		err = note_resumption(resume, total, ret_error);
	if (err)
		return err;
	store_close(TAKE_PTR(resume->store));
	fleet->members = resume->count;
	fleet->gather_ns = 2 * FLEET_GATHER_NS; /* its agents may still be ending their last step */
	fleet->lost_after_ns =
		(uint64_t)json_integer_value(json_object_get(resume->record, "lost_after_ns"));
	ret_kept->agents = calloc(resume->count, sizeof(*ret_kept->agents));
	if (!ret_kept->agents)
		return -ENOMEM;
	for (uint32_t i = 0; i < resume->count; i++)
		ret_kept->agents[i] = resume->places[i].agent;
	snprintf(ret_kept->secret, sizeof(ret_kept->secret), "%s", fleet->resume);
	ret_kept->begun = true;
	ret_kept->steps = resume->next_step;
	*ret_past = resume->past;
	resume->past = (struct sweep_past){0};
	return 0;
}

/* ---- opened and closed ---- */

char **resume_command(const struct resume *resume)
{
	return resume->command;
}

int resume_open(const struct fleet_options *fleet, struct resume **ret_resume, char **ret_error)
{
	struct resume *resume = calloc(1, sizeof(*resume));
	const struct store_owner owner = {.user = resume, .heard = on_heard};
	autofree char *error = NULL;
	char run[SECRET_LENGTH + 1];
	int err;

	if (!resume)
		return -ENOMEM;
	*ret_resume = resume;
	resume->options = fleet;
	err = seal_key(fleet->resume, run);
	if (!err)
		err = store_open(&fleet->nats, run, &owner, &resume->store, &error);
	if (err)
		return error ? refuse(ret_error, "--via: %s: %s", fleet->nats.url, error) : err;
	err = collect(resume, ret_error);
	return err || resume->record ? err : refuse_unknown(resume, ret_error);
}

/* Release the agents, and delete what is stored once all of it is here. */
void resume_forget(struct resume *resume)
{
	autofree char *error = NULL;

	for (uint32_t i = 0; i < resume->count; i++)
		store_tell(resume->store, resume->places[i].agent,
			   json_pack("{s:s, s:b}", "type", "resume", "end", 1));
	for (uint32_t i = 0; i < resume->count; i++)
		if (!resume->places[i].document.whole)
			return;
	if (store_forget(resume->store, &error))
		log_warn("run %s: its results are still kept, as they could not be deleted: %s",
			 resume->options->resume, error ? error : "no memory");
}

void resume_close(struct resume *resume)
{
	if (!resume)
		return;
	store_close(resume->store);
	clear_pieces(&resume->record_pieces);
	clear_pieces(&resume->step_pieces);
	steps_clear(&resume->past);
	for (uint32_t i = 0; i < resume->count + resume->watched; i++) {
		clear_pieces(&resume->places[i].document);
		free(resume->places[i].reason);
	}
	for (uint32_t i = 0; i < resume->count; i++)
		member_clear(&resume->members[i]);
	free(resume->places);
	free(resume->members);
	free(resume->command);
	json_decref(resume->record);
	free(resume);
}
