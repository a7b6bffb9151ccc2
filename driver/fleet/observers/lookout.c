// SPDX-License-Identifier: MIT
/*
 * The agent beside an observer. The observer is asked over HTTP as a driver asks it
 * (run/observer.c), in threads of their own, so this one answers at any time. It may serve several runs
 * at a time, as an observer can. Neighbours: sight.c (whether the observer sees a target), lookouts.c (the
 * other side).
 *
 * Subjects: sojourn.to.observers (a run describes its targets), sojourn.to.AGENT.RUN (likewise, and orders),
 * sojourn.from.RUN.AGENT (answers), sojourn.from.observers.AGENT (an agent says that it is there).
 * Payloads are as relay.h has them. An order that was not answered is repeated, and a repeated one
 * changes nothing, so that lost messages do no harm.
 *
 * Orders: begin, end, part (of the document), drop, keep, leave. Answers: unseen, looking, sees,
 * blind, gone; working, begun, ended, failed, part. Phases of a run are numbered.
 *
 * A run whose results are kept says so with "begin". If it is silent, its document is stored as those of its
 * members are (keep.h), for the coordinator that takes it up.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/agent/waiting.h"
#include "fleet/channel/channel.h"
#include "fleet/channel/keep.h"
#include "run/observer.h"
#include "sight.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

/* As an observer forgets a driver that is silent for so long. */
#define SILENT_STEPS 120U
/* After a signal, for the observer to end its phases. */
#define LEAVE_NS    (2 * NSEC_PER_SEC)
#define WATCHES_MAX 32U
#define REASON_MAX  512

enum phase {
	PHASE_NONE,
	PHASE_BEGUN,
	PHASE_ENDED, /* its document is here */
	PHASE_FAILED,
};

enum work {
	WORK_LOOK,
	WORK_BEGIN,
	WORK_END,
	WORK_DROP,
};

struct lookout;

/* A run that the observer may see. While @busy, only the thread at work uses what is below it. */
struct watch {
	struct lookout *lookout;
	char run[SECRET_LENGTH + 1];
	char asker[WAITING_ASKER];
	unsigned int silent; /* steps */
	bool leaving;	     /* forget it once the work is done */
	bool busy;
	json_int_t wanted; /* phase to begin once the work is done; 0: none */
	uv_work_t request;
	enum work work;
	struct sight sight;
	uint64_t seen; /* bits of the targets; 0: none, for @reason */
	struct observer *observer;
	json_int_t number; /* of the phase; 0: none yet */
	enum phase phase;
	char *text; /* the document */
	size_t length;
	char reason[REASON_MAX];
	char kept[SECRET_LENGTH + 1]; /* the run that stores results; empty: it does not */
	struct keep keep;
	bool stored;
};

struct lookout {
	struct waiting waiting;
	_Atomic uint64_t until_ns; /* when all requests to the observer end; 0: never */
	struct watch *watches[WATCHES_MAX];
	size_t count;
};

/* ---- answers ---- */

static void answer_reason(const struct lookout *lookout, const char *run, const char *type,
			  const char *reason)
{
	waiting_answer(&lookout->waiting, run,
		       json_pack("{s:s, s:s, s:s}", "type", type, "name", lookout->waiting.name,
				 "reason", reason));
}

static void answer_look(const struct watch *watch)
{
	const struct waiting *waiting = &watch->lookout->waiting;
	const char *name = waiting->name;

	if (watch->busy)
		waiting_answer(waiting, watch->run,
			       json_pack("{s:s, s:s}", "type", "looking", "name", name));
	else if (watch->seen)
		waiting_answer(waiting, watch->run,
			       json_pack("{s:s, s:s, s:I}", "type", "sees", "name", name, "targets",
					 (json_int_t)watch->seen));
	else
		answer_reason(watch->lookout, watch->run, "blind", watch->reason);
}

static void answer_phase(const struct watch *watch)
{
	static const char *const types[] = {[PHASE_NONE] = "failed",
					    [PHASE_BEGUN] = "begun",
					    [PHASE_ENDED] = "ended",
					    [PHASE_FAILED] = "failed"};

	if (watch->busy)
		waiting_answer(&watch->lookout->waiting, watch->run,
			       json_pack("{s:s}", "type", "working"));
	else
		waiting_answer(&watch->lookout->waiting, watch->run,
			       json_pack("{s:s, s:I, s:I, s:s}", "type", types[watch->phase],
					 "number", watch->number, "length",
					 (json_int_t)watch->length, "reason", watch->reason));
}

/* ---- work with the observer, in threads ---- */

static bool is_over(void *user)
{
	struct lookout *lookout = user;
	uint64_t until_ns = atomic_load(&lookout->until_ns);

	return until_ns && clock_now_ns() >= until_ns;
}

static int open_observer(struct lookout *lookout, struct observer **ret_observer)
{
	const struct observer_access *access = &lookout->waiting.options->observers;
	const struct patience patience = {.is_over = is_over, .user = lookout};

	return observer_new(access, access->urls[0], 0, patience, ret_observer);
}

static void set_reason(struct watch *watch, int err, const char *reason)
{
	snprintf(watch->reason, sizeof(watch->reason), "%s", reason ? reason : strerror(-err));
	text_make_printable(watch->reason, ' ');
}

/* The observer may have been restarted since, with another token. */
static int renew_observer(struct watch *watch)
{
	observer_free(TAKE_PTR(watch->observer));
	return open_observer(watch->lookout, &watch->observer);
}

static const char *first_here(const struct sight *sight)
{
	for (size_t i = 0; i < sight->count; i++)
		if (sight->targets[i].here)
			return sight->targets[i].name;
	return "";
}

static void look(struct watch *watch)
{
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int err = renew_observer(watch);

	if (!err)
		err = observer_services(watch->observer, &run, &error);
	if (!err)
		watch->seen = sight_of(&watch->sight, run);
	if (!err && !watch->seen)
		err = refuse(&error,
			     "%s is of its host, but its observer at %s observes no such port",
			     first_here(&watch->sight), observer_url(watch->observer));
	if (err)
		set_reason(watch, err, error);
}

static void drop_phase(struct watch *watch)
{
	if (watch->phase == PHASE_BEGUN)
		observer_drop(watch->observer);
	free(TAKE_PTR(watch->text));
	watch->length = 0;
	watch->phase = PHASE_NONE;
	set_reason(watch, 0, "this phase is not under way");
}

static void begin(struct watch *watch)
{
	autofree char *error = NULL;
	int err = renew_observer(watch);

	if (!err)
		err = observer_begin(watch->observer, &error);
	watch->phase = err ? PHASE_FAILED : PHASE_BEGUN;
	if (err)
		set_reason(watch, err, error);
}

static void end(struct watch *watch)
{
	autofree char *error = NULL;
	int err = observer_end_text(watch->observer, &watch->text, &watch->length, &error);

	watch->phase = err ? PHASE_FAILED : PHASE_ENDED;
	if (err)
		set_reason(watch, err, error);
}

static void on_work(uv_work_t *request)
{
	struct watch *watch = request->data;

	if (watch->work == WORK_BEGIN || watch->work == WORK_DROP)
		drop_phase(watch);
	if (watch->work == WORK_LOOK)
		look(watch);
	else if (watch->work == WORK_BEGIN)
		begin(watch);
	else if (watch->work == WORK_END)
		end(watch);
}

static void conclude_look(const struct watch *watch)
{
	answer_look(watch);
	if (watch->seen)
		log_note("run %.8s of %s: the observer sees targets of it", watch->run,
			 watch->asker);
	else
		log_warn("run %.8s of %s: %s", watch->run, watch->asker, watch->reason);
}

static void forget(struct watch *watch);
static void take_begin(struct watch *watch, json_int_t number);

static void on_worked(uv_work_t *request, int status)
{
	struct watch *watch = request->data;

	(void)status;
	watch->busy = false;
	if (watch->leaving)
		forget(watch);
	else if (watch->wanted > watch->number)
		take_begin(watch, watch->wanted);
	else if (watch->work == WORK_LOOK)
		conclude_look(watch);
	else if (watch->work != WORK_DROP)
		answer_phase(watch);
}

static void start_work(struct watch *watch, enum work work)
{
	watch->work = work;
	watch->request.data = watch;
	watch->busy = true;
	if (!uv_queue_work(&watch->lookout->waiting.loop, &watch->request, on_work, on_worked))
		return;
	watch->busy = false;
	set_reason(watch, -ENOMEM, NULL);
	watch->phase = PHASE_FAILED;
}

/* ---- runs ---- */

static struct watch *find_watch(struct lookout *lookout, const char *run)
{
	for (size_t i = 0; i < lookout->count; i++)
		if (!strcmp(lookout->watches[i]->run, run))
			return lookout->watches[i];
	return NULL;
}

/* End its phase at the observer first. */
static void forget(struct watch *watch)
{
	struct lookout *lookout = watch->lookout;

	watch->leaving = true;
	if (!watch->busy && watch->phase == PHASE_BEGUN)
		start_work(watch, WORK_DROP);
	if (watch->busy)
		return;
	for (size_t i = 0; i < lookout->count; i++)
		if (lookout->watches[i] == watch)
			lookout->watches[i] = lookout->watches[--lookout->count];
	observer_free(watch->observer);
	keep_clear(&watch->keep);
	free(watch->text);
	free(watch);
	waiting_leave(&lookout->waiting);
}

static void add_watch(struct lookout *lookout, const char *run, const struct sight *sight,
		      const char *asker)
{
	struct watch *watch = lookout->count < WATCHES_MAX ? calloc(1, sizeof(*watch)) : NULL;

	if (!watch) {
		answer_reason(lookout, run, "blind", "it has too many runs already");
		return;
	}
	watch->lookout = lookout;
	watch->sight = *sight;
	snprintf(watch->run, sizeof(watch->run), "%s", run);
	snprintf(watch->asker, sizeof(watch->asker), "%.*s", WAITING_ASKER - 1,
		 asker ? asker : "somebody");
	text_make_printable(watch->asker, ' ');
	lookout->watches[lookout->count++] = watch;
	start_work(watch, WORK_LOOK);
	answer_look(watch);
}

static void compare(struct lookout *lookout, const char *run, const json_t *message)
{
	const struct agent_options *options = lookout->waiting.options;
	const struct sight_limits limits = {.allow = options->ceilings.allow,
					    .sees = options->sees};
	const char *place = json_string_value(json_object_get(message, "place"));
	struct sight sight;

	if (sight_compare(json_object_get(message, "targets"), place, &limits, &sight))
		return;
	if (!sight.any)
		answer_reason(lookout, run, "unseen", "");
	else if (*sight.refused)
		answer_reason(lookout, run, "blind", sight.refused);
	else
		add_watch(lookout, run, &sight,
			  json_string_value(json_object_get(message, "asker")));
}

static void take_look(struct lookout *lookout, const json_t *message)
{
	const char *run = json_string_value(json_object_get(message, "run"));
	struct watch *watch = run && relay_is_key(run) ? find_watch(lookout, run) : NULL;

	if (!run || !relay_is_key(run) || lookout->waiting.over)
		return;
	if (!watch) {
		compare(lookout, run, message);
		return;
	}
	watch->silent = 0;
	answer_look(watch);
}

/* ---- orders ---- */

static void take_begin(struct watch *watch, json_int_t number)
{
	watch->wanted = number;
	if (!watch->busy && watch->seen && number > watch->number) {
		log_note("run %.8s of %s: the observer marks a phase", watch->run, watch->asker);
		watch->number = number;
		start_work(watch, WORK_BEGIN);
	}
	answer_phase(watch);
}

/* Another coordinator may end a phase that the first one could not begin. */
static void take_end(struct watch *watch, json_int_t number)
{
	if (number > watch->number) {
		waiting_answer(&watch->lookout->waiting, watch->run,
			       json_pack("{s:s, s:I, s:s}", "type", "failed", "number", number,
					 "reason", "its phase had not begun"));
		return;
	}
	if (!watch->busy && number == watch->number && watch->phase == PHASE_BEGUN)
		start_work(watch, WORK_END);
	answer_phase(watch);
}

static void send_part(const struct watch *watch, json_int_t number, json_int_t at)
{
	const struct waiting *waiting = &watch->lookout->waiting;
	size_t most = relay_piece(waiting->nats), left;
	char subject[RELAY_SUBJECT];

	if (watch->busy || watch->phase != PHASE_ENDED || number != watch->number || at < 0 ||
	    (size_t)at > watch->length)
		return;
	left = watch->length - (size_t)at;

	waiting_address(waiting, watch->run, subject);
	/* If it fails, the order comes again. */
	relay_publish(waiting->nats, subject, NULL,
		      json_pack("{s:s, s:I, s:I}", "type", "part", "number", number, "at", at),
		      watch->text + at, left < most ? left : most);
}

static void note_kept(struct watch *watch, const char *kept)
{
	if (kept && relay_is_key(kept))
		snprintf(watch->kept, sizeof(watch->kept), "%s", kept);
}

static void take_order(struct watch *watch, const json_t *message)
{
	const char *type = channel_type(message);
	json_int_t number = json_integer_value(json_object_get(message, "number"));

	watch->silent = 0;
	note_kept(watch, json_string_value(json_object_get(message, "kept")));
	if (!strcmp(type, "begin"))
		take_begin(watch, number);
	else if (!strcmp(type, "end"))
		take_end(watch, number);
	else if (!strcmp(type, "part"))
		send_part(watch, number, json_integer_value(json_object_get(message, "at")));
	else if (!strcmp(type, "drop") && !watch->busy && number == watch->number)
		start_work(watch, WORK_DROP);
	else if (!strcmp(type, "leave"))
		forget(watch);
}

/* The server answers for a piece of a document: @answered is RUN-NUMBER. */
static void take_stored(struct lookout *lookout, const char *answered, const char *payload,
			size_t length)
{
	autojson json_t *answer = json_loadb(payload, length, JSON_REJECT_DUPLICATES, NULL);
	char run[SECRET_LENGTH + 1] = "";
	struct watch *watch;

	strncat(run, answered, SECRET_LENGTH);
	watch = find_watch(lookout, run);
	if (watch && answered[strlen(run)] == '-')
		keep_answer(&watch->keep, strtoul(answered + strlen(run) + 1, NULL, 10), answer);
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct lookout *lookout = user;
	const char *body, *run = strrchr(subject, '.');
	size_t body_length;
	autojson json_t *message = relay_parse(payload, length, &body, &body_length);
	struct watch *watch = run && relay_is_key(run + 1) ? find_watch(lookout, run + 1) : NULL;

	if (run && !strncmp(run + 1, KEEP_ANSWER, strlen(KEEP_ANSWER))) {
		take_stored(lookout, run + 1 + strlen(KEEP_ANSWER), payload, length);
		return;
	}
	if (!message || !channel_type(message))
		return;
	if (!strcmp(channel_type(message), "look"))
		take_look(lookout, message);
	else if (watch && !watch->leaving)
		take_order(watch, message);
	else if (!watch && run && relay_is_key(run + 1) && strcmp(channel_type(message), "leave"))
		answer_reason(lookout, run + 1, "gone", "its agent does not know the run");
}

/* ---- a run that is silent ---- */

static void store_document(struct watch *watch)
{
	const struct waiting *waiting = &watch->lookout->waiting;
	char kind[RELAY_SUBJECT];

	snprintf(kind, sizeof(kind), KEEP_ANSWER "%s-", watch->run);
	keep_begin(&watch->keep, waiting->nats, watch->kept, waiting->agent, kind);
	if (keep_put(&watch->keep, watch->text, watch->length))
		forget(watch);
}

/* Step by step: end its phase, store the document, forget it. It may be heard of again meanwhile. */
static void give_up(struct watch *watch)
{
	if (watch->busy || watch->keep.on)
		return;
	if (!*watch->kept || watch->stored ||
	    (watch->phase != PHASE_BEGUN && watch->phase != PHASE_ENDED))
		forget(watch);
	else if (watch->phase == PHASE_BEGUN)
		start_work(watch, WORK_END);
	else
		store_document(watch);
}

static void settle_stored(struct watch *watch)
{
	keep_step(&watch->keep);
	if (!keep_is_over(&watch->keep))
		return;
	if (watch->keep.failed)
		log_error("run %.8s of %s: its document could not be stored: %s", watch->run,
			  watch->asker, watch->keep.failed);
	else
		log_note("run %.8s of %s: the observer's document is stored", watch->run,
			 watch->asker);
	keep_clear(&watch->keep);
	watch->stored = true;
}

static void attach(struct lookout *lookout, struct nats *nats)
{
	for (size_t i = 0; i < lookout->count; i++)
		keep_attach(&lookout->watches[i]->keep, nats);
}

/* ---- events ---- */

/* Phases go on without the connection, which may be there again when they end. */
static void on_lost(void *user, bool final)
{
	struct lookout *lookout = user;

	attach(lookout, NULL);
	for (size_t i = lookout->count; i && final; i--)
		forget(lookout->watches[i - 1]);
}

static void on_open(void *user)
{
	const struct waiting *waiting = &((const struct lookout *)user)->waiting;
	char subject[RELAY_SUBJECT];

	attach(user, waiting->nats);
	snprintf(subject, sizeof(subject), LOOKOUT_FROM_ALL ".%s", waiting->agent);
	relay_send(waiting->nats, subject,
		   json_pack("{s:s, s:s}", "type", "here", "name", waiting->name));
	log_note("waiting for runs at %s as '%s', with the observer at %s",
		 waiting->options->nats.url, waiting->name, waiting->options->observers.urls[0]);
}

static bool on_step(void *user)
{
	struct lookout *lookout = user;

	for (size_t i = lookout->count; i; i--) {
		struct watch *watch = lookout->watches[i - 1];

		if (watch->keep.on)
			settle_stored(watch);
		if (watch->leaving || watch->silent++ < SILENT_STEPS)
			continue;
		if (watch->silent == SILENT_STEPS + 1)
			log_warn("run %.8s of %s: nothing was heard of it for 60 s", watch->run,
				 watch->asker);
		give_up(watch);
	}
	return !lookout->waiting.over;
}

/* A second signal does not wait for the observer. */
static void on_ended(void *user, bool again, const char *reason)
{
	struct lookout *lookout = user;

	atomic_store(&lookout->until_ns, clock_now_ns() + (again ? 0 : LEAVE_NS));
	for (size_t i = lookout->count; i; i--) {
		answer_reason(lookout, lookout->watches[i - 1]->run, "gone", reason);
		forget(lookout->watches[i - 1]);
	}
}

static bool is_busy(void *user)
{
	return ((const struct lookout *)user)->count;
}

/* Warn only: the observer may be started later. */
static int try_observer(struct lookout *lookout)
{
	CLEANUP(cleanup_observer_free) struct observer *observer = NULL;
	autorun struct run *run = NULL;
	autofree char *error = NULL;
	int err = open_observer(lookout, &observer);

	if (err)
		return err;
	if (observer_services(observer, &run, &error) && error)
		log_warn("%s", error);
	return 0;
}

int lookout_run(const struct agent_options *options, char **ret_error)
{
	struct lookout lookout = {
		.waiting = {.options = options,
			    .owner = {&lookout, LOOKOUT_TO_ALL, on_open, on_message, on_lost,
				      on_step, on_ended, is_busy}}};
	int err = try_observer(&lookout);

	return err ? err : waiting_run(&lookout.waiting, ret_error);
}
