// SPDX-License-Identifier: MIT
/* The coordinator's record of a run, stored at the NATS server; see kept.h. */
#include "kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/channel/relay.h"
#include "fleet/channel/seal.h"
#include "sojourn/array.h"
#include "sojourn/autojson.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

static const struct store_owner nobody = {0};

int kept_open(struct kept *kept, const struct fleet_options *options, bool sweep)
{
	CLEANUP(cleanup_store_close) struct store *store = NULL;
	char *error = NULL;
	int err = *kept->secret ? 0 : secret_make(kept->secret);

	kept->options = options;
	kept->sweep = sweep;
	if (!err)
		err = seal_key(kept->secret, kept->run);
	if (err)
		return err;
	if (store_open(&options->nats, kept->run, &nobody, &store, &error)) {
		free(error);
		return 0; /* the muster connects, too, and reports it */
	}
	err = store_prepare(store, &kept->age_ns, &error);
	kept->on = !err;
	if (err)
		kept->why = error ? error : strdup(strerror(-err));
	return 0;
}

void kept_tell(const struct kept *kept)
{
	const char *url = kept->options->nats.url;
	uint64_t hours = kept->age_ns / (3600 * NSEC_PER_SEC);
	char age[32] = "ever";

	if (kept->age_ns && hours)
		snprintf(age, sizeof(age), "%" PRIu64 " h", hours);
	else if (kept->age_ns)
		units_format_duration((double)kept->age_ns, age, sizeof(age));
	if (kept->on)
		log_note("run %.8s: its results are kept at %s for %s; if this process is killed: "
			 "sojourn-drive fleet resume %s --via %s",
			 kept->run, url, age, kept->secret, url);
	else if (kept->why)
		log_note("run %.8s: its results are not kept at %s (%s), so none are left if this "
			 "process is killed",
			 kept->run, url, kept->why);
}

static json_t *list_words(char **words)
{
	json_t *list = json_array();

	for (char **word = words; list && *word; word++)
		if (json_array_append_new(list, json_string(*word))) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static int put(const struct kept *kept, const char *name, const char *text,
	       const struct store_owner *waiting, char **ret_error)
{
	CLEANUP(cleanup_store_close) struct store *store = NULL;
	autofree char *sealed = text ? seal_put(kept->secret, text) : NULL;
	int err = sealed ? store_open(&kept->options->nats, kept->run, waiting, &store, ret_error)
			 : -ENOMEM;

	return err ? err : store_put(store, name, sealed, ret_error);
}

void kept_record(struct kept *kept, char **command, json_t *members, json_t *observers,
		 const struct store_owner *waiting)
{
	autojson json_t *record =
		json_pack("{s:s, s:o, s:o, s:o*, s:b, s:I}", "version", SOJOURN_VERSION, "command",
			  list_words(command), "members", members, "observers", observers, "sweep",
			  kept->sweep, "lost_after_ns", (json_int_t)kept->options->lost_after_ns);
	autofree char *text = record ? json_dumps(record, JSON_COMPACT) : NULL;
	autofree char *error = NULL;
	int err = put(kept, KEPT_RECORD, text, waiting, &error);

	kept->begun = true;
	if (err)
		log_warn("run %.8s: it cannot be resumed, as its record could not be stored: %s",
			 kept->run, error ? error : strerror(-err));
}

bool kept_by_members(const struct kept *kept)
{
	return kept->on && !kept->sweep;
}

/* Steps after one that is missing would be of no use. */
void kept_step(struct kept *kept, const char *text, const struct store_owner *waiting)
{
	autofree char *error = NULL;
	char name[32];
	int err;

	if (!kept->on || kept->broken)
		return;
	snprintf(name, sizeof(name), KEPT_STEP "%u", kept->steps++);
	err = put(kept, name, text, waiting, &error);
	kept->broken = err;
	if (err)
		log_warn("run %.8s: its steps from now on are not kept, as one could not be "
			 "stored: %s",
			 kept->run, error ? error : strerror(-err));
}

static void forget(const struct kept *kept)
{
	CLEANUP(cleanup_store_close) struct store *store = NULL;
	autofree char *error = NULL;
	int err = store_open(&kept->options->nats, kept->run, &nobody, &store, &error);

	if (!err)
		err = store_forget(store, &error);
	if (err)
		log_warn("run %.8s: its results are still kept, as they could not be deleted: %s",
			 kept->run, error ? error : strerror(-err));
}

void kept_settle(const struct kept *kept, bool complete)
{
	if (!kept->on)
		return;
	if (complete || !kept->begun)
		forget(kept);
	else
		log_note("run %.8s: %s: sojourn-drive fleet resume %s --via %s", kept->run,
			 kept->sweep ? "it can be taken up again"
				     : "what its members have stored is still kept; to collect it",
			 kept->secret, kept->options->nats.url);
}

void kept_clear(struct kept *kept)
{
	free(kept->why);
	free(kept->agents);
	*kept = (struct kept){0};
}

/* ---- the steps of a sweep ---- */

char *steps_write(const struct run *run, size_t index, const struct run_outcome *outcome)
{
	struct run_sweep one = *run->sweep;
	struct run copy = *run;
	autofree char *document = NULL, *line = NULL;
	autojson json_t *head =
		json_pack("{s:I, s:I, s:I}", "step", (json_int_t)index, "tried",
			  (json_int_t)outcome->tried, "failed", (json_int_t)outcome->failed);

	one.steps += index;
	one.step_count = 1;
	copy.sweep = &one;
	document = run_to_json(&copy);
	line = head ? json_dumps(head, JSON_COMPACT) : NULL;
	return document && line ? text_format("%s\n%s", line, document) : NULL;
}

static size_t count_of(const struct sweep_past *past)
{
	return past->run ? past->run->sweep->step_count : 0;
}

int steps_note(struct sweep_past *past, size_t total, char **ret_text)
{
	const char *before = past->resumed ? past->resumed : "";
	autofree char *now = text_format("after %zu of %zu steps", count_of(past), total);
	autojson json_t *head = NULL;
	autofree char *line = NULL;
	char *all;

	*ret_text = NULL;
	if (!now)
		return -ENOMEM;
	if (strlen(before) >= strlen(now) && !strcmp(before + strlen(before) - strlen(now), now))
		return 0;
	all = text_format("%s%s%s", before, *before ? ", " : "", now);
	head = all ? json_pack("{s:s}", "resumed", all) : NULL;
	line = head ? json_dumps(head, JSON_COMPACT) : NULL;
	free(past->resumed);
	past->resumed = all;
	*ret_text = line ? text_format("%s\n", line) : NULL;
	return *ret_text ? 0 : -ENOMEM;
}

/* Move the only step of @from to place @index. */
static int put_step(struct run_sweep *sweep, size_t index, struct run_sweep *from)
{
	struct run_sweep_step *step = index == sweep->step_count
					      ? ARRAY_APPEND(sweep->steps, sweep->step_count)
					      : &sweep->steps[index];

	if (!step)
		return -ENOMEM;
	run_sweep_step_clear(step);
	*step = from->steps[0];
	from->steps[0] = (struct run_sweep_step){0};
	return 0;
}

static int take_step(struct sweep_past *past, const json_t *head, const char *document,
		     size_t length, char **ret_error)
{
	autorun struct run *run = NULL;
	json_int_t index = json_integer_value(json_object_get(head, "step"));
	int err = run_from_json(document, length, &run, ret_error);

	if (err)
		return err;
	if (!run->sweep || run->sweep->step_count != 1 || index < 0)
		return refuse(ret_error, "resume: a stored step of the run is not valid");
	if ((size_t)index > count_of(past))
		return 0;
	if (past->run)
		err = put_step(past->run->sweep, (size_t)index, run->sweep);
	else
		past->run = TAKE_PTR(run);
	if (!err && (size_t)index + 1 == count_of(past))
		past->outcome = (struct run_outcome){
			.tried = (uint64_t)json_integer_value(json_object_get(head, "tried")),
			.failed = (uint64_t)json_integer_value(json_object_get(head, "failed")),
		};
	return err;
}

int steps_read(struct sweep_past *past, const char *text, char **ret_error)
{
	const char *document, *resumed;
	size_t length;
	autojson json_t *head = relay_parse(text, strlen(text), &document, &length);

	if (!head)
		return refuse(ret_error, "resume: a stored step of the run is not valid");
	if (length)
		return take_step(past, head, document, length, ret_error);
	resumed = json_string_value(json_object_get(head, "resumed"));
	free(past->resumed);
	past->resumed = resumed ? strdup(resumed) : NULL;
	return resumed && !past->resumed ? -ENOMEM : 0;
}

void steps_clear(struct sweep_past *past)
{
	run_free(past->run);
	free(past->resumed);
	*past = (struct sweep_past){0};
}
