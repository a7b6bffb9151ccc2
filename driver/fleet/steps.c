// SPDX-License-Identifier: MIT
/* The steps of a sweep for another coordinator; see steps.h. */
#include "steps.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "relay.h"
#include "sojourn/array.h"
#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/run.h"
#include "sojourn/sweep.h"
#include "sojourn/text.h"

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
