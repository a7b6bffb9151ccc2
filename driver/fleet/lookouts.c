// SPDX-License-Identifier: MIT
/*
 * The driver's side of observers over NATS; see lookouts.h. A thread of its own holds the connection,
 * as the main thread measures meanwhile, and the agents must hear of the run. The main thread's calls
 * say what they want, wake the thread, and wait. Neighbours: lookout.c (the other side), sight.c (the
 * targets), muster.c (members over NATS).
 */
#include "lookouts.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "channel.h"
#include "fleet_options.h"
#include "lookout.h"
#include "relay.h"
#include "sight.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/run.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define STEP_MS	     100U
#define REPEAT_STEPS 5U	  /* between two orders that were not answered, and two calls */
#define CALM_STEPS   5U	  /* every agent has answered a call by then */
#define KEEP_STEPS   20U  /* an agent gives up a run that is silent for 60 s */
#define DEAF_STEPS   100U /* 10 s: an agent answers at once, even if its observer does not */
#define FLUSH_STEPS  20U  /* for the last messages */
#define PATIENCE_NS  (50 * NSEC_PER_MSEC)

#define HEARD_MAX    4096U /* agents; the rest is ignored */
#define NAMED_MAX    5U
#define DOCUMENT_MAX ((size_t)64 << 20)
#define REASON_MAX   512

enum sees {
	SEES_LOOKING, /* its host has a target's address, and the observer was asked */
	SEES_SOME,
	SEES_BLIND, /* its host has a target's address, but it cannot observe */
	SEES_NONE,
};

/* Phases in their order: an agent in an order of its own (…ING) is asked again until it answers. */
enum mark {
	MARK_NONE,
	MARK_BEGINNING,
	MARK_BEGUN,
	MARK_ENDING,
	MARK_FETCHING,
	MARK_FETCHED,
	MARK_FAILED,
	MARK_DROPPING,
};

/* An agent that has answered. */
struct lookout_heard {
	char agent[SECRET_LENGTH + 1];
	char name[RELAY_NAME_MAX + 1];
	enum sees sees;
	uint64_t targets; /* bits */
	bool late;	  /* it answered when the phase had begun */
	enum mark mark;
	unsigned int silent; /* steps since its last answer, while asked */
	char *text;	     /* the document */
	size_t length, have;
	char reason[REASON_MAX];
};

/* @lock guards all but the first members, which do not change. The thread holds it in callbacks. */
struct observer_group {
	const struct lookouts_settings *settings;
	struct observer_patience patience;
	struct sight_targets targets;
	char run[SECRET_LENGTH + 1];
	pthread_t thread;
	bool threaded;
	uv_loop_t loop;
	uv_timer_t timer;
	uv_async_t wake;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct nats *nats; /* NULL: not connected */
	bool open;
	bool was_open;
	char *failed; /* why the connection has ended; NULL: it has not */
	bool calling; /* for agents */
	bool leaving;
	unsigned int steps, open_steps, leaving_steps;
	struct lookout_heard **heard;
	size_t heard_count;
	json_int_t number; /* of the phase */
	bool marked;	   /* it has begun and not ended */
};

/* ---- messages, by the thread ---- */

static void publish(const struct observer_group *group, const char *subject, json_t *message)
{
	if (group->open)
		relay_send(group->nats, subject, message);
	else
		json_decref(message);
}

static void order(const struct observer_group *group, const struct lookout_heard *heard,
		  const char *type)
{
	char subject[RELAY_SUBJECT];

	snprintf(subject, sizeof(subject), "sojourn.to.%s.%s", heard->agent, group->run);
	publish(group, subject,
		json_pack("{s:s, s:I, s:I}", "type", type, "number", group->number, "at",
			  (json_int_t)heard->have));
}

static void call(const struct observer_group *group)
{
	char place[SIGHT_PLACE], host[256] = "", asker[320];

	sight_place(place);
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(asker, sizeof(asker), "uid %u at %s", (unsigned int)getuid(), host);
	publish(group, LOOKOUT_TO_ALL,
		json_pack("{s:s, s:s, s:s, s:s, s:O}", "type", "look", "run", group->run, "place",
			  place, "asker", asker, "targets", group->targets.list));
}

static const char *order_of(enum mark mark)
{
	return mark == MARK_BEGINNING  ? "begin"
	       : mark == MARK_ENDING   ? "end"
	       : mark == MARK_FETCHING ? "part"
				       : NULL;
}

static void give_order(const struct observer_group *group, const struct lookout_heard *heard)
{
	const char *type = order_of(heard->mark);

	if (type)
		order(group, heard, type);
}

/* ---- answers, by the thread ---- */

static void set_reason(struct lookout_heard *heard, const char *reason)
{
	snprintf(heard->reason, sizeof(heard->reason), "%s", reason);
	text_make_printable(heard->reason, ' ');
}

static void fail(struct lookout_heard *heard, const char *reason)
{
	heard->mark = MARK_FAILED;
	free(TAKE_PTR(heard->text));
	set_reason(heard, reason);
}

static struct lookout_heard *find_heard(const struct observer_group *group, const char *agent)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (!strcmp(group->heard[i]->agent, agent))
			return group->heard[i];
	return NULL;
}

static struct lookout_heard *hear(struct observer_group *group, const char *agent, const char *name)
{
	struct lookout_heard *heard = find_heard(group, agent), **grown;

	if (heard || !relay_is_name(name) || group->heard_count == HEARD_MAX)
		return heard;
	grown = reallocarray(group->heard, group->heard_count + 1, sizeof(struct lookout_heard *));
	if (!grown)
		return NULL;
	group->heard = grown;
	heard = calloc(1, sizeof(*heard));
	if (!heard)
		return NULL;
	snprintf(heard->agent, sizeof(heard->agent), "%s", agent);
	snprintf(heard->name, sizeof(heard->name), "%s", name);
	heard->sees = SEES_NONE;
	group->heard[group->heard_count++] = heard;
	return heard;
}

static uint64_t known_targets(const struct observer_group *group)
{
	return group->targets.count == 64 ? UINT64_MAX : (1ULL << group->targets.count) - 1;
}

/* Take what an agent says of the targets. One that has a phase does not change its mind. */
static void take_sight(struct observer_group *group, const char *agent, const json_t *message)
{
	static const char *const types[] = {[SEES_LOOKING] = "looking",
					    [SEES_SOME] = "sees",
					    [SEES_BLIND] = "blind",
					    [SEES_NONE] = "unseen"};
	const char *reason = json_string_value(json_object_get(message, "reason"));
	struct lookout_heard *heard =
		hear(group, agent, json_string_value(json_object_get(message, "name")));

	for (size_t i = 0; heard && !heard->mark && i < ARRAY_SIZE(types); i++) {
		if (strcmp(channel_type(message), types[i]) != 0)
			continue;
		heard->late |= group->marked && heard->sees != (enum sees)i;
		heard->sees = (enum sees)i;
		heard->targets = (uint64_t)json_integer_value(json_object_get(message, "targets")) &
				 known_targets(group);
		if (heard->sees == SEES_BLIND)
			set_reason(heard, reason ? reason : "it gives no reason");
	}
}

static void take_ended(struct lookout_heard *heard, const json_t *message)
{
	json_int_t length = json_integer_value(json_object_get(message, "length"));

	if (heard->mark != MARK_ENDING)
		return;
	if (length <= 0 || length > (json_int_t)DOCUMENT_MAX) {
		fail(heard, "its document is longer than 64 MiB, or empty");
		return;
	}
	heard->text = malloc((size_t)length);
	heard->length = (size_t)length;
	heard->have = 0;
	heard->mark = MARK_FETCHING;
	if (!heard->text)
		fail(heard, "no memory for its document");
}

static void take_phase(struct observer_group *group, struct lookout_heard *heard,
		       const json_t *message)
{
	const char *type = channel_type(message);
	const char *reason = json_string_value(json_object_get(message, "reason"));
	enum mark before = heard->mark;

	if (!order_of(before) ||
	    json_integer_value(json_object_get(message, "number")) != group->number)
		return;
	if (!strcmp(type, "begun") && before == MARK_BEGINNING)
		heard->mark = MARK_BEGUN;
	else if (!strcmp(type, "ended"))
		take_ended(heard, message);
	else if (!strcmp(type, "failed"))
		fail(heard, reason && *reason ? reason : "it gives no reason");
	if (heard->mark != before)
		give_order(group, heard);
}

static void take_part(struct observer_group *group, struct lookout_heard *heard,
		      const json_t *message, const char *body, size_t length)
{
	if (heard->mark != MARK_FETCHING || !length || length > heard->length - heard->have ||
	    json_integer_value(json_object_get(message, "number")) != group->number ||
	    json_integer_value(json_object_get(message, "at")) != (json_int_t)heard->have)
		return;
	memcpy(heard->text + heard->have, body, length);
	heard->have += length;
	if (heard->have == heard->length)
		heard->mark = MARK_FETCHED;
	give_order(group, heard);
}

/* The agent has left, or was started anew, and knows nothing of the run. */
static void take_gone(struct lookout_heard *heard, const json_t *message)
{
	const char *reason = json_string_value(json_object_get(message, "reason"));

	if (heard->sees == SEES_NONE || heard->mark == MARK_FETCHED || heard->mark == MARK_FAILED)
		return;
	if (heard->mark)
		fail(heard, reason ? reason : "its agent has left");
	heard->sees = SEES_BLIND;
	set_reason(heard, reason ? reason : "its agent has left");
}

static void take_answer(struct observer_group *group, const char *agent, const json_t *message,
			const char *body, size_t length)
{
	struct lookout_heard *heard;

	take_sight(group, agent, message);
	heard = find_heard(group, agent);
	if (!heard)
		return;
	heard->silent = 0;
	if (!strcmp(channel_type(message), "part"))
		take_part(group, heard, message, body, length);
	else if (!strcmp(channel_type(message), "gone"))
		take_gone(heard, message);
	else
		take_phase(group, heard, message);
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	static const char to_all[] = LOOKOUT_FROM_ALL ".";
	struct observer_group *group = user;
	const char *agent = strrchr(subject, '.'), *body;
	size_t body_length;
	autojson json_t *message = relay_parse(payload, length, &body, &body_length);

	if (!agent || !relay_is_key(agent + 1) || !message || !channel_type(message))
		return;
	pthread_mutex_lock(&group->lock);
	if (!strncmp(subject, to_all, strlen(to_all)))
		call(group);
	else
		take_answer(group, agent + 1, message, body, body_length);
	pthread_cond_signal(&group->changed);
	pthread_mutex_unlock(&group->lock);
}

/* ---- the connection, by the thread ---- */

/* The lock is held. */
static void note_failure(struct observer_group *group, const char *reason)
{
	free(group->failed);
	group->failed = strdup(reason);
	group->open = false;
	nats_close(TAKE_PTR(group->nats));
	pthread_cond_signal(&group->changed);
}

static void on_failed(void *user, const char *reason)
{
	struct observer_group *group = user;

	pthread_mutex_lock(&group->lock);
	note_failure(group, reason);
	pthread_mutex_unlock(&group->lock);
}

static void on_open(void *user)
{
	struct observer_group *group = user;
	char subject[RELAY_SUBJECT];
	int err;

	pthread_mutex_lock(&group->lock);
	snprintf(subject, sizeof(subject), "sojourn.from.%s.*", group->run);
	err = nats_subscribe(group->nats, subject);
	if (!err)
		err = nats_subscribe(group->nats, LOOKOUT_FROM_ALL ".*");
	if (err) {
		note_failure(group, strerror(-err));
	} else {
		group->open = group->was_open = true;
		free(TAKE_PTR(group->failed));
		call(group);
	}
	pthread_cond_signal(&group->changed);
	pthread_mutex_unlock(&group->lock);
}

/* The lock is held. */
static void connect_to(struct observer_group *group)
{
	const struct nats_owner owner = {group, on_open, on_message, on_failed};
	autofree char *error = NULL;
	int err = nats_open(&group->loop, &group->settings->nats, &owner, &group->nats, &error);

	if (!err)
		return;
	free(group->failed);
	group->failed = strdup(error ? error : strerror(-err));
}

/* ---- events, by the thread ---- */

static void watch(struct observer_group *group, struct lookout_heard *heard)
{
	char reason[REASON_MAX];

	if (!order_of(heard->mark))
		return;
	if (heard->silent++ < DEAF_STEPS) {
		if (heard->silent % REPEAT_STEPS == 0)
			give_order(group, heard);
	} else if (group->failed) {
		snprintf(reason, sizeof(reason), "the connection to %s: %.200s",
			 group->settings->nats.url, group->failed);
		fail(heard, reason);
	} else {
		fail(heard, "nothing was heard of its agent for 10 s");
	}
}

/* The lock is held. */
static void leave(struct observer_group *group)
{
	bool flushed = !group->open || nats_is_flushed(group->nats);

	if (!flushed && group->leaving_steps++ < FLUSH_STEPS)
		return;
	nats_close(TAKE_PTR(group->nats));
	uv_close((uv_handle_t *)&group->timer, NULL);
	uv_close((uv_handle_t *)&group->wake, NULL);
}

static void step(struct observer_group *group)
{
	group->steps++;
	group->open_steps += group->open;
	for (size_t i = 0; i < group->heard_count; i++) {
		watch(group, group->heard[i]);
		if (group->steps % KEEP_STEPS == 0 && group->heard[i]->sees == SEES_SOME)
			order(group, group->heard[i], "keep");
	}
	if (group->calling && group->steps % REPEAT_STEPS == 0)
		call(group);
	if (!group->nats && group->was_open && group->steps % REPEAT_STEPS == 0)
		connect_to(group);
}

static void on_step(uv_timer_t *timer)
{
	struct observer_group *group = timer->data;

	pthread_mutex_lock(&group->lock);
	if (group->leaving)
		leave(group);
	else
		step(group);
	pthread_cond_signal(&group->changed);
	pthread_mutex_unlock(&group->lock);
}

static void say_goodbye(struct observer_group *group)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->sees != SEES_NONE)
			order(group, group->heard[i], "leave");
}

/* The main thread has new orders. */
static void on_wake(uv_async_t *wake)
{
	struct observer_group *group = wake->data;

	pthread_mutex_lock(&group->lock);
	for (size_t i = 0; i < group->heard_count && !group->leaving; i++) {
		give_order(group, group->heard[i]);
		if (group->heard[i]->mark != MARK_DROPPING)
			continue;
		order(group, group->heard[i], "drop");
		group->heard[i]->mark = MARK_NONE;
	}
	if (group->leaving)
		say_goodbye(group);
	pthread_mutex_unlock(&group->lock);
}

static void *run_loop(void *user)
{
	struct observer_group *group = user;

	pthread_mutex_lock(&group->lock);
	connect_to(group);
	pthread_mutex_unlock(&group->lock);
	uv_run(&group->loop, UV_RUN_DEFAULT);
	return NULL;
}

/* ---- waiting, by the main thread ---- */

/*
 * Wait until the thread has done what was asked of it. The lock is held, but not while the user is
 * asked for patience. Return whether the user has none.
 */
static bool wait_while(struct observer_group *group, bool (*is_busy)(const struct observer_group *))
{
	struct timespec until;
	uint64_t now_ns;
	bool over = false;

	while (!over && is_busy(group)) {
		now_ns = clock_now_ns() + PATIENCE_NS;
		until.tv_sec = (time_t)(now_ns / NSEC_PER_SEC);
		until.tv_nsec = (long)(now_ns % NSEC_PER_SEC);
		pthread_cond_timedwait(&group->changed, &group->lock, &until);
		pthread_mutex_unlock(&group->lock);
		over = group->patience.is_over(group->patience.user);
		pthread_mutex_lock(&group->lock);
	}
	return over;
}

static uint64_t covered(const struct observer_group *group)
{
	uint64_t targets = 0;

	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->sees == SEES_SOME)
			targets |= group->heard[i]->targets;
	return targets;
}

static size_t count_of(const struct observer_group *group, enum sees sees)
{
	size_t count = 0;

	for (size_t i = 0; i < group->heard_count; i++)
		count += group->heard[i]->sees == sees;
	return count;
}

/* Go on early if nobody else can be expected. */
static bool is_gathering(const struct observer_group *group)
{
	bool complete = covered(group) == known_targets(group) && !count_of(group, SEES_LOOKING);

	if (group->failed)
		return false;
	if (!group->was_open)
		return true; /* the connection has a limit of its own */
	return group->open_steps < CALM_STEPS ||
	       (!complete &&
		group->open_steps * STEP_MS * NSEC_PER_MSEC < group->settings->gather_ns);
}

static bool is_asking(const struct observer_group *group)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (order_of(group->heard[i]->mark))
			return true;
	return false;
}

/* ---- reasons, for people ---- */

static void describe_some(const struct observer_group *group, enum sees sees, FILE *file)
{
	size_t shown = 0, count = count_of(group, sees);

	for (size_t i = 0; i < group->heard_count && shown < NAMED_MAX; i++)
		if (group->heard[i]->sees == sees)
			fprintf(file, "%s%s", shown++ ? ", " : "", group->heard[i]->name);
	if (count > shown)
		fprintf(file, " and %zu more", count - shown);
}

static void describe_blind(const struct observer_group *group, const char *before, FILE *file)
{
	for (size_t i = 0; i < group->heard_count; i++) {
		const struct lookout_heard *heard = group->heard[i];

		/* take() has the reason of one that was marked. */
		if ((heard->sees != SEES_BLIND && heard->sees != SEES_LOOKING) || heard->mark)
			continue;
		fprintf(file, "%s%s: %s", before, heard->name,
			heard->sees == SEES_BLIND ? heard->reason
						  : "its observer did not answer in time");
		before = "; ";
	}
}

static void describe_others(const struct observer_group *group, FILE *file)
{
	size_t others = count_of(group, SEES_NONE);

	if (!group->heard_count)
		fputs("; no agent of an observer answered: start one on each host with "
		      "sojourn-drive agent --fleet URL --observer 9180",
		      file);
	if (others)
		fprintf(file, "; %zu answered of which no target is: ", others);
	describe_some(group, SEES_NONE, file);
}

static void list_targets(const struct observer_group *group, uint64_t targets, FILE *file)
{
	const char *before = "";

	for (size_t i = 0; i < group->targets.count; i++) {
		if (!(targets >> i & 1))
			continue;
		fprintf(file, "%s%s", before, group->targets.names[i]);
		before = ", ";
	}
}

static int refuse_none(const struct observer_group *group, char **ret_error)
{
	autofree char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	char time[32];

	if (!file)
		return -ENOMEM;
	units_format_duration((double)group->settings->gather_ns, time, sizeof(time));
	fprintf(file, "--observer: no observer at %s sees ", group->settings->nats.url);
	list_targets(group, known_targets(group), file);
	fprintf(file, " within %s", time);
	describe_blind(group, "; ", file);
	describe_others(group, file);
	if (fclose(file))
		return -ENOMEM;
	return refuse(ret_error, "%s", text);
}

static void describe_late(const struct observer_group *group, const char *before, FILE *file)
{
	for (size_t i = 0; i < group->heard_count; i++) {
		const struct lookout_heard *heard = group->heard[i];

		if (!heard->late || heard->sees != SEES_SOME)
			continue;
		fprintf(file, "%s%s: it answered when the measured phase had begun", before,
			heard->name);
		before = "; ";
	}
}

static bool has_late(const struct observer_group *group)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->late && group->heard[i]->sees == SEES_SOME)
			return true;
	return false;
}

/* Targets of agents that failed under way are not named twice. */
static uint64_t unseen_targets(const struct observer_group *group)
{
	uint64_t targets = known_targets(group);

	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->mark || group->heard[i]->sees == SEES_SOME)
			targets &= ~group->heard[i]->targets;
	return targets;
}

static char *lookouts_missing(const struct observer_group *group)
{
	struct observer_group *own = (struct observer_group *)group;
	uint64_t targets;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return NULL;
	pthread_mutex_lock(&own->lock);
	targets = unseen_targets(group);
	if (targets) {
		list_targets(group, targets, file);
		fprintf(file, ": no observer at %s sees it", group->settings->nats.url);
	}
	describe_late(group, targets ? "; " : "", file);
	describe_blind(group, targets || has_late(group) ? "; " : "", file);
	pthread_mutex_unlock(&own->lock);
	if (!fclose(file) && *text)
		return text;
	free(text);
	return NULL;
}

/* ---- the group ---- */

static void free_heard(struct lookout_heard *heard)
{
	free(heard->text);
	free(heard);
}

static void lookouts_free(struct observer_group *group)
{
	if (!group)
		return;
	if (group->threaded) {
		pthread_mutex_lock(&group->lock);
		group->leaving = true;
		pthread_mutex_unlock(&group->lock);
		uv_async_send(&group->wake);
		pthread_join(group->thread, NULL);
	}
	uv_loop_close(&group->loop);
	pthread_cond_destroy(&group->changed);
	pthread_mutex_destroy(&group->lock);
	for (size_t i = 0; i < group->heard_count; i++)
		free_heard(group->heard[i]);
	free(group->heard);
	free(group->failed);
	sight_targets_clear(&group->targets);
	free(group);
}

DEFINE_CLEANUP(struct observer_group *, lookouts_free)

/* Use CLOCK_MONOTONIC: the wall clock may be set meanwhile. */
static void init_lock(struct observer_group *group)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&group->lock, NULL);
	pthread_cond_init(&group->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Signals belong to the main thread. */
static int start_thread(struct observer_group *group)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = -pthread_create(&group->thread, NULL, run_loop, group);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	group->threaded = !err;
	return err;
}

static void close_handle(uv_handle_t *handle, void *unused)
{
	(void)unused;
	uv_close(handle, NULL);
}

static int open_group(struct observer_group *group)
{
	int err = secret_make(group->run);

	if (!err)
		err = uv_timer_init(&group->loop, &group->timer);
	if (!err)
		err = uv_async_init(&group->loop, &group->wake, on_wake);
	group->timer.data = group;
	group->wake.data = group;
	if (!err)
		err = uv_timer_start(&group->timer, on_step, STEP_MS, STEP_MS);
	if (!err)
		err = start_thread(group);
	if (err) {
		uv_walk(&group->loop, close_handle, NULL);
		uv_run(&group->loop, UV_RUN_DEFAULT);
	}
	return err;
}

static int make_group(const struct lookouts_settings *settings, struct observer_patience patience,
		      struct observer_group **ret_group)
{
	struct observer_group *group = calloc(1, sizeof(*group));
	int err = group ? uv_loop_init(&group->loop) : -ENOMEM;

	if (err) {
		free(group);
		return err;
	}
	group->settings = settings;
	group->patience = patience;
	group->calling = true;
	init_lock(group);
	*ret_group = group;
	return 0;
}

/* The lock is held. */
static int gather(struct observer_group *group, char **ret_error)
{
	bool over = wait_while(group, is_gathering);

	group->calling = false;
	if (over)
		return refuse(ret_error, "interrupted while waiting for observers at %s",
			      group->settings->nats.url);
	if (group->failed)
		return refuse(ret_error, "--observer: %s: %s", group->settings->nats.url,
			      group->failed);
	return count_of(group, SEES_SOME) ? 0 : refuse_none(group, ret_error);
}

static int lookouts_find(const void *settings, const struct drive_rows *rows,
			 struct observer_patience patience, struct observer_group **ret_group,
			 char **ret_error)
{
	CLEANUP(cleanup_lookouts_free) struct observer_group *group = NULL;
	int err = make_group(settings, patience, &group);

	if (!err)
		err = sight_describe(rows, &group->targets, ret_error);
	if (!err)
		err = open_group(group);
	if (err)
		return err;
	pthread_mutex_lock(&group->lock);
	err = gather(group, ret_error);
	pthread_mutex_unlock(&group->lock);
	if (!err)
		*ret_group = TAKE_PTR(group);
	return err;
}

/* The lock is held. Set the mark of all that have @before. */
static void mark_all(struct observer_group *group, enum mark before, enum mark mark)
{
	for (size_t i = 0; i < group->heard_count; i++) {
		struct lookout_heard *heard = group->heard[i];

		if (heard->sees != SEES_SOME || heard->mark != before)
			continue;
		heard->mark = mark;
		heard->silent = 0;
	}
}

/* The lock is held. All agents that see a target are without a phase. */
static void rest_all(struct observer_group *group)
{
	for (size_t i = 0; i < group->heard_count; i++) {
		struct lookout_heard *heard = group->heard[i];

		heard->mark = MARK_NONE;
		heard->late = false;
		free(TAKE_PTR(heard->text));
		heard->length = heard->have = 0;
	}
}

static int refuse_failed(const struct observer_group *group, char **ret_error)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->mark == MARK_FAILED)
			return refuse(ret_error, "%s: %s", group->heard[i]->name,
				      group->heard[i]->reason);
	return 0;
}

static void lookouts_drop(struct observer_group *group)
{
	pthread_mutex_lock(&group->lock);
	for (size_t i = 0; i < group->heard_count; i++)
		group->heard[i]->mark = group->heard[i]->mark ? MARK_DROPPING : MARK_NONE;
	group->marked = false;
	pthread_mutex_unlock(&group->lock);
	uv_async_send(&group->wake);
}

static int lookouts_begin(struct observer_group *group, char **ret_error)
{
	bool over;
	int err;

	pthread_mutex_lock(&group->lock);
	rest_all(group);
	group->number++;
	mark_all(group, MARK_NONE, MARK_BEGINNING);
	uv_async_send(&group->wake);
	over = wait_while(group, is_asking);
	err = over ? refuse(ret_error, "interrupted while waiting for observers at %s",
			    group->settings->nats.url)
		   : refuse_failed(group, ret_error);
	group->marked = !err;
	pthread_mutex_unlock(&group->lock);
	if (err)
		lookouts_drop(group);
	return err;
}

static size_t lookouts_end(struct observer_group *group)
{
	size_t count = 0;

	pthread_mutex_lock(&group->lock);
	mark_all(group, MARK_BEGUN, MARK_ENDING);
	uv_async_send(&group->wake);
	if (wait_while(group, is_asking))
		for (size_t i = 0; i < group->heard_count; i++)
			if (order_of(group->heard[i]->mark))
				fail(group->heard[i], "interrupted while waiting for it");
	group->marked = false;
	for (size_t i = 0; i < group->heard_count; i++)
		count += group->heard[i]->mark != MARK_NONE;
	pthread_mutex_unlock(&group->lock);
	return count;
}

static struct lookout_heard *find_marked(const struct observer_group *group, size_t index)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (group->heard[i]->mark != MARK_NONE && !index--)
			return group->heard[i];
	return NULL;
}

static int read_document(const struct lookout_heard *heard, struct run **ret_run, char **ret_error)
{
	autofree char *error = NULL;
	int err = run_from_json(heard->text, heard->length, ret_run, &error);

	return err ? refuse(ret_error, "it sent no run document: %s",
			    error ? error : strerror(-err))
		   : 0;
}

/* Documents that are here do not change, so the lock is not held while one is read. */
static int lookouts_take(struct observer_group *group, size_t index, const char **ret_name,
			 struct run **ret_run, char **ret_error)
{
	struct lookout_heard *heard;
	int err;

	pthread_mutex_lock(&group->lock);
	heard = find_marked(group, index);
	*ret_name = heard->name;
	err = heard->mark == MARK_FETCHED ? 0 : refuse(ret_error, "%s", heard->reason);
	pthread_mutex_unlock(&group->lock);
	return err ? err : read_document(heard, ret_run, ret_error);
}

/* ---- settings ---- */

static int settle_own(const struct observer_access *access, struct lookouts_settings *settings,
		      char **ret_error)
{
	settings->gather_ns = FLEET_GATHER_NS;
	return fleet_options_observers(access, &settings->nats, ret_error);
}

/* Borrow the fleet's. */
static int settle_fleets(const struct observer_access *access, const struct fleet_options *fleet,
			 struct lookouts_settings *settings, char **ret_error)
{
	if (!fleet || !fleet->nats.url)
		return refuse(ret_error,
			      "--observer: 'fleet' means the NATS server of sojourn-drive fleet "
			      "--via nats://HOST; without it write --observer nats://HOST");
	if (access->credentials_path || access->cert_path || access->key_path ||
	    (access->ca_path && !access->url_count))
		return refuse(ret_error,
			      "--observer: 'fleet' uses the login and the certificates of the "
			      "fleet's --via; leave out --observer-credentials, --observer-ca, "
			      "--observer-cert and --observer-key");
	settings->nats = fleet->nats;
	settings->gather_ns = fleet->gather_ns;
	return 0;
}

int lookouts_settle(struct observer_access *access, const struct fleet_options *fleet,
		    struct lookouts_settings *settings, char **ret_error)
{
	int err;

	*settings = (struct lookouts_settings){.source = {
						       .settings = settings,
						       .find = lookouts_find,
						       .begin = lookouts_begin,
						       .end = lookouts_end,
						       .take = lookouts_take,
						       .missing = lookouts_missing,
						       .drop = lookouts_drop,
						       .free = lookouts_free,
					       }};
	if (!access->fleet)
		return 0;
	settings->own = strcmp(access->fleet, "fleet") != 0;
	err = settings->own ? settle_own(access, settings, ret_error)
			    : settle_fleets(access, fleet, settings, ret_error);
	if (!err)
		access->source = &settings->source;
	return err;
}

void lookouts_clear(struct lookouts_settings *settings)
{
	if (settings->own)
		nats_settings_clear(&settings->nats);
	*settings = (struct lookouts_settings){0};
}
