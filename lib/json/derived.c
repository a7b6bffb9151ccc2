// SPDX-License-Identifier: MIT
/*
 * Whether a document's derived values follow from its buckets: our reader ignores them, people and
 * other programs do not. Part of sojourn/check.h, as this needs the text.
 */
#include "sojourn/check.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "reader.h"
#include "sojourn/autojson.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"

static const char *const derived[] = {"mean_ns", "stddev_ns", "p50_ns",	  "p90_ns",
				      "p99_ns",	 "p999_ns",   "p9999_ns", "p99999_ns"};

struct comparing {
	char path[160];
	char ***broken;
};

static int say(struct comparing *comparing, const char *name, const json_t *written,
	       const json_t *follows)
{
	autofree char *is = json_dumps(written, JSON_ENCODE_ANY);
	autofree char *must = json_dumps(follows, JSON_ENCODE_ANY), *text = NULL;

	if (is && must)
		text = text_format("derived-follows: %s: %s is %s, must be %s, which follows from "
				   "its buckets",
				   comparing->path, name, is, must);
	return text ? run_add_text(comparing->broken, text) : -ENOMEM;
}

/* A writer without a percentile omits it, or writes null. */
static int compare_histogram(struct comparing *comparing, const json_t *written,
			     const json_t *follows)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(derived) && !err; i++) {
		const json_t *is = json_object_get(written, derived[i]);
		const json_t *must = json_object_get(follows, derived[i]);

		if (is && must && !json_is_null(is) && !json_equal(is, must))
			err = say(comparing, derived[i], is, must);
	}
	return err;
}

static int compare(struct comparing *comparing, const json_t *written, const json_t *follows);

static int enter(struct comparing *comparing, const char *name, size_t index, const json_t *written,
		 const json_t *follows)
{
	size_t length = strlen(comparing->path), room = sizeof(comparing->path) - length;
	int err;

	if (name)
		snprintf(comparing->path + length, room, "%s%s", length ? "." : "", name);
	else
		snprintf(comparing->path + length, room, "[%zu]", index);
	err = compare(comparing, written, follows);
	comparing->path[length] = '\0';
	return err;
}

/* Compare members that both have. Our own text, @follows, bounds the depth of the recursion. */
static int compare(struct comparing *comparing, const json_t *written, const json_t *follows)
{
	size_t count = json_array_size(written);
	const char *name;
	json_t *value;
	int err = 0;

	if (json_is_object(written) && json_is_array(json_object_get(follows, "buckets")))
		return compare_histogram(comparing, written, follows);
	json_object_foreach ((json_t *)follows, name, value) {
		const json_t *member = json_object_get(written, name);

		if (!err && (json_is_object(member) || json_is_array(member)))
			err = enter(comparing, name, 0, member, value);
	}
	for (size_t i = 0; i < count && count == json_array_size(follows) && !err; i++)
		err = enter(comparing, NULL, i, json_array_get(written, i),
			    json_array_get(follows, i));
	return err;
}

int run_check_derived(const char *text, size_t length, const struct run *run, char ***broken)
{
	autofree char *again = run_to_json(run), *error = NULL;
	autojson json_t *written = NULL, *follows = NULL;
	struct comparing comparing = {.broken = broken};
	int err = again ? reader_parse(text, length, &written, &error) : -ENOMEM;

	if (!err)
		err = reader_parse(again, strlen(again), &follows, &error);
	return err ? err : compare(&comparing, written, follows);
}
