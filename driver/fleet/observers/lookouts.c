// SPDX-License-Identifier: MIT
/*
 * The driver's side of observers over NATS; see lookouts.h. The main thread's calls say what they want,
 * wake the connection's thread, and wait. Neighbours: lookouts_link.c (the connection), lookout.c (the
 * other side), sight.c (the targets), muster.c (members over NATS).
 */
#include "lookouts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/agent/fleet_options.h"
#include "lookouts_impl.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/run.h"
#include "sojourn/units.h"

#define CALM_STEPS  5U /* every agent has answered a call by then */
#define PATIENCE_NS (50 * NSEC_PER_MSEC)
#define NAMED_MAX   5U

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
		pthread_cond_clockwait(&group->changed, &group->lock, CLOCK_MONOTONIC, &until);
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
	bool complete = covered(group) == lookouts_targets(group) && !count_of(group, SEES_LOOKING);

	if (group->failed)
		return false;
	if (!group->was_open)
		return true; /* the connection has a limit of its own */
	return group->open_steps < CALM_STEPS ||
	       (!complete &&
		group->open_steps * LOOKOUTS_STEP_MS * NSEC_PER_MSEC < group->settings->gather_ns);
}

static bool is_asking(const struct observer_group *group)
{
	for (size_t i = 0; i < group->heard_count; i++)
		if (lookouts_order(group->heard[i]->mark))
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
	list_targets(group, lookouts_targets(group), file);
	fprintf(file, " within %s", time);
	describe_blind(group, "; ", file);
	describe_others(group, file);
	if (fclose(file))
		return -ENOMEM;
	return refuse(ret_error, "%s", text);
}

/* Print after @before. Return what is to stand before more. */
static const char *describe_late(const struct observer_group *group, const char *before, FILE *file)
{
	for (size_t i = 0; i < group->heard_count; i++) {
		const struct lookout_heard *heard = group->heard[i];

		if (!heard->late || heard->sees != SEES_SOME)
			continue;
		fprintf(file, "%s%s: it answered when the measured phase had begun", before,
			heard->name);
		before = "; ";
	}
	return before;
}

/* Targets of agents that failed under way are not named twice. */
static uint64_t unseen_targets(const struct observer_group *group)
{
	uint64_t targets = lookouts_targets(group);

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
	describe_blind(group, describe_late(group, targets ? "; " : "", file), file);
	pthread_mutex_unlock(&own->lock);
	if (!fclose(file) && *text)
		return text;
	free(text);
	return NULL;
}

/* ---- the group ---- */

static void lookouts_free(struct observer_group *group)
{
	if (!group)
		return;
	lookouts_link_close(group);
	pthread_cond_destroy(&group->changed);
	pthread_mutex_destroy(&group->lock);
	for (size_t i = 0; i < group->heard_count; i++) {
		free(group->heard[i]->text);
		free(group->heard[i]);
	}
	free(group->heard);
	free(group->failed);
	sight_targets_clear(&group->targets);
	free(group);
}

DEFINE_CLEANUP(struct observer_group *, lookouts_free)

static int make_group(const struct lookouts_settings *settings, struct patience patience,
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
	pthread_mutex_init(&group->lock, NULL);
	pthread_cond_init(&group->changed, NULL);
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
			 struct patience patience, struct observer_group **ret_group,
			 char **ret_error)
{
	CLEANUP(cleanup_lookouts_free) struct observer_group *group = NULL;
	int err = make_group(settings, patience, &group);

	if (!err)
		err = sight_describe(rows, &group->targets, ret_error);
	if (!err)
		err = secret_make(group->run) ?: lookouts_link_open(group);
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
	group->borrowed = false;
	if (wait_while(group, is_asking))
		for (size_t i = 0; i < group->heard_count; i++)
			if (lookouts_order(group->heard[i]->mark))
				lookouts_fail(group->heard[i], "interrupted while waiting for it");
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

/* ---- the record, for another coordinator ---- */

static json_t *describe_heard(const struct observer_group *group)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < group->heard_count; i++) {
		const struct lookout_heard *heard = group->heard[i];

		if (heard->sees != SEES_NONE)
			(void)json_array_append_new(
				list,
				json_pack("{s:s, s:s, s:i, s:I, s:s}", "agent", heard->agent,
					  "name", heard->name, "sees", (int)heard->sees, "targets",
					  (json_int_t)heard->targets, "reason", heard->reason));
	}
	return list;
}

/* Its next phase is the measured one. */
static json_t *lookouts_record(struct observer_group *group, const char *kept)
{
	json_t *record;

	pthread_mutex_lock(&group->lock);
	if (!group->settings->own)
		snprintf(group->kept, sizeof(group->kept), "%s", kept);
	record = json_pack("{s:s, s:I, s:O, s:o}", "run", group->run, "number", group->number + 1,
			   "targets", group->targets.list, "agents", describe_heard(group));
	pthread_mutex_unlock(&group->lock);
	return record;
}

static int adopt_agent(struct observer_group *group, const json_t *entry)
{
	const char *agent = json_string_value(json_object_get(entry, "agent"));
	const char *name = json_string_value(json_object_get(entry, "name"));
	const char *reason = json_string_value(json_object_get(entry, "reason"));
	json_int_t sees = json_integer_value(json_object_get(entry, "sees"));
	struct lookout_heard *heard;

	if (!agent || !relay_is_key(agent) || !reason || sees < 0 || sees >= SEES_NONE)
		return -EBADMSG;
	heard = lookouts_hear(group, agent, name);
	if (!heard)
		return -EBADMSG;
	heard->sees = (enum sees)sees;
	heard->targets = (uint64_t)json_integer_value(json_object_get(entry, "targets"));
	heard->mark = sees == SEES_SOME ? MARK_BEGUN : MARK_NONE;
	snprintf(heard->reason, sizeof(heard->reason), "%s", reason);
	return 0;
}

static int adopt_record(struct observer_group *group, const json_t *record)
{
	const char *run = json_string_value(json_object_get(record, "run"));
	json_t *targets = json_object_get(record, "targets");
	const json_t *agents = json_object_get(record, "agents");
	int err = sight_again(targets, &group->targets);

	if (err || !run || !relay_is_key(run))
		return -EBADMSG;
	snprintf(group->run, sizeof(group->run), "%s", run);
	group->number = json_integer_value(json_object_get(record, "number"));
	group->calling = false;
	group->marked = group->borrowed = true;
	for (size_t i = 0; i < json_array_size(agents) && !err; i++)
		err = adopt_agent(group, json_array_get(agents, i));
	return err;
}

int lookouts_adopt(const struct lookouts_settings *settings, const json_t *record,
		   struct patience patience, struct observer_group **ret_group)
{
	CLEANUP(cleanup_lookouts_free) struct observer_group *group = NULL;
	int err = make_group(settings, patience, &group);

	if (!err)
		err = adopt_record(group, record) ?: lookouts_link_open(group);
	if (!err)
		*ret_group = TAKE_PTR(group);
	return err;
}

int lookouts_give(struct observer_group *group, const char *agent, const char *text, size_t length)
{
	struct lookout_heard *heard;
	int err = 0;

	pthread_mutex_lock(&group->lock);
	heard = lookouts_hear(group, agent, NULL);
	if (heard && heard->mark != MARK_FETCHED) {
		free(heard->text);
		heard->text = malloc(length);
		err = heard->text ? 0 : -ENOMEM;
		if (!err)
			memcpy(heard->text, text, length);
		heard->length = err ? 0 : length;
		heard->mark = err ? MARK_FAILED : MARK_FETCHED;
	}
	pthread_mutex_unlock(&group->lock);
	return err;
}

/* ---- settings ---- */

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
						       .record = lookouts_record,
						       .free = lookouts_free,
					       }};
	if (!access->fleet)
		return 0;
	settings->own = strcmp(access->fleet, "fleet") != 0;
	settings->gather_ns = FLEET_GATHER_NS;
	err = settings->own ? fleet_options_observers(access, &settings->nats, ret_error)
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
