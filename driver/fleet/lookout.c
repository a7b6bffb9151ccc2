// SPDX-License-Identifier: MIT
/*
 * The agent beside an observer; see lookout.h. The observer is asked over HTTP as a driver asks it
 * (run/observer.c), in threads of their own, so this one answers at any time. It may serve several runs
 * at a time, as an observer can. Neighbours: sight.c (whether the observer sees a target), lookouts.c (the
 * other side).
 */
#include "lookout.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "relay.h"
#include "run/observer.h"
#include "sight.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

#define STEP_MS 500U
/* As an observer forgets a driver that is silent for so long. */
#define SILENT_STEPS 120U
/* After a signal, for the observer to end its phases, and for the last messages. */
#define LEAVE_NS    (2 * NSEC_PER_SEC)
#define WATCHES_MAX 32U
#define ASKER_MAX   200
#define REASON_MAX  512
#define PART_MAX    ((size_t)256 << 10)
#define PART_HEAD   1024U

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
	char asker[ASKER_MAX];
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
};

struct lookout {
	const struct agent_options *options;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_signal_t signals[2];
	struct nats *nats; /* NULL: not connected */
	bool was_open;
	char *failed; /* why it ends, or why the last connection did */
	bool over;
	_Atomic uint64_t until_ns; /* when all requests to the observer end; 0: never */
	char agent[SECRET_LENGTH + 1];
	char name[RELAY_NAME_MAX + 1];
	struct watch *watches[WATCHES_MAX];
	size_t count;
};

/* ---- answers ---- */

static void answer(const struct lookout *lookout, const char *run, json_t *message)
{
	char subject[RELAY_SUBJECT];

	snprintf(subject, sizeof(subject), "sojourn.from.%s.%s", run, lookout->agent);
	if (lookout->nats)
		relay_send(lookout->nats, subject, message);
	else
		json_decref(message);
}

static void answer_look(const struct watch *watch)
{
	const struct lookout *lookout = watch->lookout;
	const char *name = lookout->name;

	if (watch->busy)
		answer(lookout, watch->run,
		       json_pack("{s:s, s:s}", "type", "looking", "name", name));
	else if (watch->seen)
		answer(lookout, watch->run,
		       json_pack("{s:s, s:s, s:I}", "type", "sees", "name", name, "targets",
				 (json_int_t)watch->seen));
	else
		answer(lookout, watch->run,
		       json_pack("{s:s, s:s, s:s}", "type", "blind", "name", name, "reason",
				 watch->reason));
}

static void answer_phase(const struct watch *watch)
{
	static const char *const types[] = {[PHASE_NONE] = "failed",
					    [PHASE_BEGUN] = "begun",
					    [PHASE_ENDED] = "ended",
					    [PHASE_FAILED] = "failed"};

	if (watch->busy)
		answer(watch->lookout, watch->run, json_pack("{s:s}", "type", "working"));
	else
		answer(watch->lookout, watch->run,
		       json_pack("{s:s, s:I, s:I, s:s}", "type", types[watch->phase], "number",
				 watch->number, "length", (json_int_t)watch->length, "reason",
				 watch->reason));
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
	const struct observer_access *access = &lookout->options->observers;
	const struct observer_patience patience = {.is_over = is_over, .user = lookout};

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
	if (!uv_queue_work(&watch->lookout->loop, &watch->request, on_work, on_worked))
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

static void free_watch(struct watch *watch)
{
	observer_free(watch->observer);
	free(watch->text);
	free(watch);
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
	free_watch(watch);
	if (lookout->over && !lookout->count)
		uv_stop(&lookout->loop);
}

static void answer_blind(struct lookout *lookout, const char *run, const char *type,
			 const char *reason)
{
	answer(lookout, run,
	       json_pack("{s:s, s:s, s:s}", "type", type, "name", lookout->name, "reason", reason));
}

static void add_watch(struct lookout *lookout, const char *run, const struct sight *sight,
		      const char *asker)
{
	struct watch *watch = lookout->count < WATCHES_MAX ? calloc(1, sizeof(*watch)) : NULL;

	if (!watch) {
		answer_blind(lookout, run, "blind", "it has too many runs already");
		return;
	}
	watch->lookout = lookout;
	watch->sight = *sight;
	snprintf(watch->run, sizeof(watch->run), "%s", run);
	snprintf(watch->asker, sizeof(watch->asker), "%.*s", ASKER_MAX - 1,
		 asker ? asker : "somebody");
	text_make_printable(watch->asker, ' ');
	lookout->watches[lookout->count++] = watch;
	start_work(watch, WORK_LOOK);
	answer_look(watch);
}

static void compare(struct lookout *lookout, const char *run, const json_t *message)
{
	const struct sight_limits limits = {.allow = lookout->options->ceilings.allow,
					    .sees = lookout->options->sees};
	const char *place = json_string_value(json_object_get(message, "place"));
	struct sight sight;

	if (sight_compare(json_object_get(message, "targets"), place, &limits, &sight))
		return;
	if (!sight.any)
		answer_blind(lookout, run, "unseen", "");
	else if (*sight.refused)
		answer_blind(lookout, run, "blind", sight.refused);
	else
		add_watch(lookout, run, &sight,
			  json_string_value(json_object_get(message, "asker")));
}

static void take_look(struct lookout *lookout, const json_t *message)
{
	const char *run = json_string_value(json_object_get(message, "run"));
	struct watch *watch = run && relay_is_key(run) ? find_watch(lookout, run) : NULL;

	if (!run || !relay_is_key(run) || lookout->over)
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

static void take_end(struct watch *watch, json_int_t number)
{
	if (!watch->busy && number == watch->number && watch->phase == PHASE_BEGUN)
		start_work(watch, WORK_END);
	answer_phase(watch);
}

static void take_drop(struct watch *watch, json_int_t number)
{
	if (!watch->busy && number == watch->number)
		start_work(watch, WORK_DROP);
}

static void send_part(const struct watch *watch, json_int_t number, json_int_t at)
{
	const struct lookout *lookout = watch->lookout;
	size_t most = nats_payload_max(lookout->nats) - PART_HEAD, left;
	char subject[RELAY_SUBJECT], head[160];

	if (watch->busy || watch->phase != PHASE_ENDED || number != watch->number || at < 0 ||
	    (size_t)at > watch->length)
		return;
	left = watch->length - (size_t)at;
	most = most < PART_MAX ? most : PART_MAX;
	snprintf(subject, sizeof(subject), "sojourn.from.%s.%s", watch->run, lookout->agent);
	snprintf(head, sizeof(head),
		 "{\"type\":\"part\",\"number\":%" JSON_INTEGER_FORMAT
		 ",\"at\":%" JSON_INTEGER_FORMAT "}\n",
		 number, at);
	/* If it fails, the order comes again. */
	(void)nats_publish(lookout->nats, subject, head, watch->text + at,
			   left < most ? left : most);
}

static void take_order(struct watch *watch, const json_t *message)
{
	const char *type = channel_type(message);
	json_int_t number = json_integer_value(json_object_get(message, "number"));

	watch->silent = 0;
	if (!strcmp(type, "begin"))
		take_begin(watch, number);
	else if (!strcmp(type, "end"))
		take_end(watch, number);
	else if (!strcmp(type, "part"))
		send_part(watch, number, json_integer_value(json_object_get(message, "at")));
	else if (!strcmp(type, "drop"))
		take_drop(watch, number);
	else if (!strcmp(type, "leave"))
		forget(watch);
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct lookout *lookout = user;
	const char *body, *run = strrchr(subject, '.');
	size_t body_length;
	autojson json_t *message = relay_parse(payload, length, &body, &body_length);
	struct watch *watch = run && relay_is_key(run + 1) ? find_watch(lookout, run + 1) : NULL;

	if (!message || !channel_type(message))
		return;
	if (!strcmp(channel_type(message), "look"))
		take_look(lookout, message);
	else if (watch && !watch->leaving)
		take_order(watch, message);
	else if (!watch && run && relay_is_key(run + 1) && strcmp(channel_type(message), "leave"))
		answer_blind(lookout, run + 1, "gone", "its agent does not know the run");
}

/* ---- the connection ---- */

static bool is_final(const struct lookout *lookout, const char *reason)
{
	return !lookout->was_open || strstr(reason, "Permissions Violation");
}

static void note_failure(struct lookout *lookout, const char *reason)
{
	bool same = lookout->failed && !strcmp(lookout->failed, reason);

	if (!same && !is_final(lookout, reason))
		log_warn("%s: %s; trying again", lookout->options->nats.url, reason);
	free(lookout->failed);
	lookout->failed = strdup(reason);
}

/* Phases go on without the connection, which may be there again when they end. */
static void on_failed(void *user, const char *reason)
{
	struct lookout *lookout = user;

	note_failure(lookout, reason);
	nats_close(TAKE_PTR(lookout->nats));
	if (!is_final(lookout, reason))
		return;
	lookout->over = true;
	if (!lookout->count)
		uv_stop(&lookout->loop);
	for (size_t i = lookout->count; i; i--)
		forget(lookout->watches[i - 1]);
}

static void on_open(void *user)
{
	struct lookout *lookout = user;
	char subject[RELAY_SUBJECT];
	int err = nats_subscribe(lookout->nats, LOOKOUT_TO_ALL);

	snprintf(subject, sizeof(subject), "sojourn.to.%s.*", lookout->agent);
	if (!err)
		err = nats_subscribe(lookout->nats, subject);
	if (err) {
		on_failed(lookout, strerror(-err));
		return;
	}
	lookout->was_open = true;
	free(TAKE_PTR(lookout->failed));
	snprintf(subject, sizeof(subject), LOOKOUT_FROM_ALL ".%s", lookout->agent);
	relay_send(lookout->nats, subject,
		   json_pack("{s:s, s:s}", "type", "here", "name", lookout->name));
	log_note("waiting for runs at %s as '%s', with the observer at %s",
		 lookout->options->nats.url, lookout->name, lookout->options->observers.urls[0]);
}

static int connect_to(struct lookout *lookout, char **ret_error)
{
	const struct nats_owner owner = {lookout, on_open, on_message, on_failed};

	return nats_open(&lookout->loop, &lookout->options->nats, &owner, &lookout->nats,
			 ret_error);
}

/* ---- events ---- */

static void on_step(uv_timer_t *timer)
{
	struct lookout *lookout = timer->data;
	autofree char *error = NULL;

	for (size_t i = lookout->count; i; i--) {
		struct watch *watch = lookout->watches[i - 1];

		if (watch->leaving || watch->silent++ < SILENT_STEPS)
			continue;
		log_warn("run %.8s of %s: nothing was heard of it for 60 s", watch->run,
			 watch->asker);
		forget(watch);
	}
	if (lookout->nats || lookout->over)
		return;
	if (connect_to(lookout, &error))
		note_failure(lookout, error ? error : "no memory");
}

/* A second signal does not wait for the observer. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct lookout *lookout = handle->data;
	char reason[128];

	snprintf(reason, sizeof(reason), "its agent was ended by signal %d (%s) on its host",
		 number, strsignal(number));
	atomic_store(&lookout->until_ns, clock_now_ns() + (lookout->over ? 0 : LEAVE_NS));
	lookout->over = true;
	if (!lookout->count)
		uv_stop(&lookout->loop);
	for (size_t i = lookout->count; i; i--) {
		answer_blind(lookout, lookout->watches[i - 1]->run, "gone", reason);
		forget(lookout->watches[i - 1]);
	}
}

/* ---- opened and closed ---- */

static int open_handles(struct lookout *lookout)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	int err = uv_timer_init(&lookout->loop, &lookout->timer);

	lookout->timer.data = lookout;
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++) {
		err = uv_signal_init(&lookout->loop, &lookout->signals[i]);
		lookout->signals[i].data = lookout;
		if (!err)
			err = uv_signal_start(&lookout->signals[i], on_signal, numbers[i]);
	}
	return err ? err : uv_timer_start(&lookout->timer, on_step, STEP_MS, STEP_MS);
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

static void on_flushed(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* Let the last messages leave, but do not wait for a server that does not read. */
static void flush(struct lookout *lookout)
{
	uv_timer_start(&lookout->timer, on_flushed, LEAVE_NS / NSEC_PER_MSEC, 0);
	while (lookout->nats && !nats_is_flushed(lookout->nats) &&
	       uv_is_active((uv_handle_t *)&lookout->timer))
		uv_run(&lookout->loop, UV_RUN_ONCE);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void close_all(struct lookout *lookout)
{
	nats_close(TAKE_PTR(lookout->nats));
	uv_walk(&lookout->loop, close_handle, NULL);
	uv_run(&lookout->loop, UV_RUN_DEFAULT);
	uv_loop_close(&lookout->loop);
	free(lookout->failed);
}

static int serve(struct lookout *lookout, char **ret_error)
{
	int err = secret_make(lookout->agent);

	relay_own_name(lookout->options->name, lookout->agent, lookout->name);
	if (!err)
		err = try_observer(lookout);
	if (!err)
		err = open_handles(lookout);
	if (!err)
		err = connect_to(lookout, ret_error);
	if (err)
		return err;
	uv_run(&lookout->loop, UV_RUN_DEFAULT);
	flush(lookout);
	return lookout->nats || !lookout->failed
		       ? 0
		       : refuse(ret_error, "--fleet: %s: %s", lookout->options->nats.url,
				lookout->failed);
}

int lookout_run(const struct agent_options *options, char **ret_error)
{
	struct lookout lookout = {.options = options};
	int err = uv_loop_init(&lookout.loop);

	if (err)
		return err;
	err = serve(&lookout, ret_error);
	close_all(&lookout);
	return err;
}
