// SPDX-License-Identifier: MIT
/*
 * The connection of lookouts.c, in a thread of its own: the main thread measures meanwhile, and the
 * agents must hear of the run. Orders that were not answered are repeated. A lost connection is
 * opened again, as neither side forgets the run so soon. Neighbour: lookout.c (the other end).
 */
#include "lookouts_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/channel/channel.h"

#include "fleet/agent/waiting.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "transport/loop.h"

#define REPEAT_STEPS 5U	  /* between two orders that were not answered, and two calls */
#define KEEP_STEPS   20U  /* an agent gives up a run that is silent for 60 s */
#define DEAF_STEPS   100U /* 10 s: an agent answers at once, even if its observer does not */
#define FLUSH_STEPS  20U  /* for the last messages */

#define HEARD_MAX    4096U /* agents; the rest is ignored */
#define DOCUMENT_MAX ((size_t)64 << 20)

/* ---- messages, by the thread ---- */

static void publish(const struct observer_group *group, const char *subject, json_t *message)
{
	relay_send(group->open ? group->nats : NULL, subject, message);
}

static void order(const struct observer_group *group, const struct lookout_heard *heard,
		  const char *type)
{
	char subject[RELAY_SUBJECT];

	relay_address(heard->agent, group->run, subject);
	publish(group, subject,
		json_pack("{s:s, s:I, s:I, s:s*}", "type", type, "number", group->number, "at",
			  (json_int_t)heard->have, "kept", *group->kept ? group->kept : NULL));
}

static void call(const struct observer_group *group, const char *subject)
{
	char place[SIGHT_PLACE], host[256] = "", asker[320];

	sight_place(place);
	(void)gethostname(host, sizeof(host) - 1);
	snprintf(asker, sizeof(asker), "uid %u at %s", (unsigned int)getuid(), host);
	publish(group, subject,
		json_pack("{s:s, s:s, s:s, s:s, s:O}", "type", "look", "run", group->run, "place",
			  place, "asker", asker, "targets", group->targets.list));
}

const char *lookouts_order(enum mark mark)
{
	return mark == MARK_BEGINNING  ? "begin"
	       : mark == MARK_ENDING   ? "end"
	       : mark == MARK_FETCHING ? "part"
				       : NULL;
}

static void give_order(const struct observer_group *group, const struct lookout_heard *heard)
{
	const char *type = lookouts_order(heard->mark);

	if (type)
		order(group, heard, type);
}

/* ---- answers, by the thread ---- */

static void set_reason(struct lookout_heard *heard, const char *reason)
{
	snprintf(heard->reason, sizeof(heard->reason), "%s", reason);
	text_make_printable(heard->reason, ' ');
}

void lookouts_fail(struct lookout_heard *heard, const char *reason)
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

struct lookout_heard *lookouts_hear(struct observer_group *group, const char *agent,
				    const char *name)
{
	struct lookout_heard *heard = find_heard(group, agent), **added;

	if (heard || !relay_is_name(name) || group->heard_count == HEARD_MAX)
		return heard;
	heard = calloc(1, sizeof(*heard));
	added = heard ? ARRAY_APPEND(group->heard, group->heard_count) : NULL;
	if (!added) {
		free(heard);
		return NULL;
	}
	*added = heard;
	snprintf(heard->agent, sizeof(heard->agent), "%s", agent);
	snprintf(heard->name, sizeof(heard->name), "%s", name);
	heard->sees = SEES_NONE;
	return heard;
}

uint64_t lookouts_targets(const struct observer_group *group)
{
	return group->targets.count == 64 ? UINT64_MAX : (1ULL << group->targets.count) - 1;
}

/* An agent looks once, so a later "looking" is a message that comes twice. */
static bool is_settled(const struct lookout_heard *heard)
{
	return heard->mark || heard->sees == SEES_SOME || heard->sees == SEES_BLIND;
}

static void take_sight(struct observer_group *group, const char *agent, const json_t *message)
{
	static const char *const types[] = {[SEES_LOOKING] = "looking",
					    [SEES_SOME] = "sees",
					    [SEES_BLIND] = "blind",
					    [SEES_NONE] = "unseen"};
	const char *reason = json_string_value(json_object_get(message, "reason"));
	struct lookout_heard *heard =
		lookouts_hear(group, agent, json_string_value(json_object_get(message, "name")));

	for (size_t i = 0; heard && !is_settled(heard) && i < ARRAY_SIZE(types); i++) {
		if (strcmp(channel_type(message), types[i]) != 0)
			continue;
		heard->late |= group->marked && heard->sees != (enum sees)i;
		heard->sees = (enum sees)i;
		heard->targets = (uint64_t)json_integer_value(json_object_get(message, "targets")) &
				 lookouts_targets(group);
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
		lookouts_fail(heard, "its document is longer than 64 MiB, or empty");
		return;
	}
	heard->text = malloc((size_t)length);
	heard->length = (size_t)length;
	heard->have = 0;
	heard->mark = MARK_FETCHING;
	if (!heard->text)
		lookouts_fail(heard, "no memory for its document");
}

static void take_phase(struct observer_group *group, struct lookout_heard *heard,
		       const json_t *message)
{
	const char *type = channel_type(message);
	const char *reason = json_string_value(json_object_get(message, "reason"));
	enum mark before = heard->mark;

	if (!lookouts_order(before) ||
	    json_integer_value(json_object_get(message, "number")) != group->number)
		return;
	if (!strcmp(type, "begun") && before == MARK_BEGINNING)
		heard->mark = MARK_BEGUN;
	else if (!strcmp(type, "ended"))
		take_ended(heard, message);
	else if (!strcmp(type, "failed"))
		lookouts_fail(heard, reason && *reason ? reason : "it gives no reason");
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

/* The agent has left, or was restarted, and knows nothing of the run. */
static void take_gone(struct lookout_heard *heard, const json_t *message)
{
	const char *reason = json_string_value(json_object_get(message, "reason"));

	/* An agent that does not take part said why. */
	if (heard->sees == SEES_NONE || heard->sees == SEES_BLIND || heard->mark == MARK_FETCHED ||
	    heard->mark == MARK_FAILED)
		return;
	if (heard->mark)
		lookouts_fail(heard, reason ? reason : "its agent has left");
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
	char answer[RELAY_SUBJECT];
	size_t body_length;
	autojson json_t *message = relay_parse(payload, length, &body, &body_length);

	if (!agent || !relay_is_key(agent + 1) || !message || !channel_type(message))
		return;
	pthread_mutex_lock(&group->lock);
	if (!strncmp(subject, to_all, strlen(to_all))) {
		relay_address(agent + 1, group->run, answer);
		call(group, answer);
	} else {
		take_answer(group, agent + 1, message, body, body_length);
	}
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
		call(group, LOOKOUT_TO_ALL);
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
	char reason[LOOKOUTS_REASON];

	if (!lookouts_order(heard->mark))
		return;
	if (heard->silent++ < DEAF_STEPS) {
		if (heard->silent % REPEAT_STEPS == 0)
			give_order(group, heard);
	} else if (group->failed) {
		snprintf(reason, sizeof(reason), "the connection to %s: %.200s",
			 group->settings->nats.url, group->failed);
		lookouts_fail(heard, reason);
	} else {
		lookouts_fail(heard, "nothing was heard of its agent for 10 s");
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
		if (group->steps % KEEP_STEPS == 0 && group->heard[i]->sees != SEES_NONE)
			order(group, group->heard[i], "keep");
	}
	if (group->calling && group->steps % REPEAT_STEPS == 0)
		call(group, LOOKOUT_TO_ALL);
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

/* The main thread has new orders. */
static void on_wake(uv_async_t *wake)
{
	struct observer_group *group = wake->data;

	pthread_mutex_lock(&group->lock);
	for (size_t i = 0; i < group->heard_count; i++) {
		struct lookout_heard *heard = group->heard[i];

		if (group->leaving && !group->borrowed && heard->sees != SEES_NONE)
			order(group, heard, "leave");
		if (group->leaving)
			continue;
		give_order(group, heard);
		if (heard->mark != MARK_DROPPING)
			continue;
		order(group, heard, "drop");
		heard->mark = MARK_NONE;
	}
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

/* ---- opened and closed, by the main thread ---- */

int lookouts_link_open(struct observer_group *group)
{
	int err = uv_timer_init(&group->loop, &group->timer);

	if (!err)
		err = uv_async_init(&group->loop, &group->wake, on_wake);
	group->timer.data = group;
	group->wake.data = group;
	if (!err)
		err = uv_timer_start(&group->timer, on_step, LOOKOUTS_STEP_MS, LOOKOUTS_STEP_MS);
	if (!err)
		err = loop_thread(&group->thread, run_loop, group);
	group->threaded = !err;
	if (err)
		loop_close_handles(&group->loop);
	return err;
}

void lookouts_link_close(struct observer_group *group)
{
	if (group->threaded) {
		pthread_mutex_lock(&group->lock);
		group->leaving = true;
		pthread_mutex_unlock(&group->lock);
		uv_async_send(&group->wake);
		pthread_join(group->thread, NULL);
	}
	uv_loop_close(&group->loop);
}
