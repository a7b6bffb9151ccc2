// SPDX-License-Identifier: MIT
/*
 * The observers of a run, one after the other. A phase begins before the first request and ends after the
 * last one, so the observers need not begin it at the same time. Those of a group come after those that
 * were given by URL.
 */
#include "observers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/target.h"
#include "sojourn/refuse.h"

struct observers {
	size_t count;
	struct observer *list[OBSERVERS_MAX];
	const struct observer_source *source; /* NULL: no group */
	struct observer_group *group;
};

int observers_new(const struct observer_access *access, const struct drive_rows *rows,
		  struct patience patience, bool rehearse, struct observers **ret_observers,
		  char **ret_error)
{
	CLEANUP(cleanup_observers_free) struct observers *observers = NULL;
	int err = 0;

	if (!observer_is_given(access))
		return 0;
	observers = calloc(1, sizeof(*observers));
	if (!observers)
		return -ENOMEM;
	for (; observers->count < access->url_count && !err; observers->count += !err)
		err = observer_new(access, access->urls[observers->count], rows->targets[0]->port,
				   patience, &observers->list[observers->count]);
	observers->source = access->source;
	if (!err && observers->source)
		err = observers->source->find(observers->source->settings, rows, patience,
					      &observers->group, ret_error);
	if (!err && rehearse)
		err = observers_begin(observers, ret_error);
	if (!err && rehearse)
		observers_drop(observers);
	if (!err)
		*ret_observers = TAKE_PTR(observers);
	return err;
}

int observers_adopt(const struct observer_access *access, struct observer_group *group,
		    struct observers **ret_observers)
{
	struct observers *observers = calloc(1, sizeof(*observers));

	if (!observers)
		return -ENOMEM;
	observers->source = access->source;
	observers->group = group;
	*ret_observers = observers;
	return 0;
}

json_t *observers_record(struct observers *observers, const char *kept)
{
	return observers && observers->source ? observers->source->record(observers->group, kept)
					      : NULL;
}

void observers_free(struct observers *observers)
{
	if (!observers)
		return;
	for (size_t i = 0; i < observers->count; i++)
		observer_free(observers->list[i]);
	if (observers->source)
		observers->source->free(observers->group);
	free(observers);
}

static void drop(struct observers *observers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		observer_drop(observers->list[i]);
}

void observers_drop(struct observers *observers)
{
	if (!observers)
		return;
	drop(observers, observers->count);
	if (observers->source)
		observers->source->drop(observers->group);
}

int observers_begin(struct observers *observers, char **ret_error)
{
	size_t begun = 0;
	int err = 0;

	for (; begun < observers->count && !err; begun += !err)
		err = observer_begin(observers->list[begun], ret_error);
	if (!err && observers->source)
		err = observers->source->begin(observers->group, ret_error);
	if (err)
		drop(observers, begun);
	return err;
}

/* Add a reason to those of other observers. @name: of the observer, or NULL. */
static int add_reason(const char *name, const char *reason, struct run_driver *driver)
{
	const char *before = driver->observer_error;
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", before ? before : "", before ? "; " : "",
		     name ? name : "", name ? ": " : "", reason) < 0)
		return -ENOMEM;
	free(driver->observer_error);
	driver->observer_error = text;
	return 0;
}

/* @run stays valid if the observer's part is missing. */
static int merge_document(struct run *run, struct run *observed, char **ret_error)
{
	if (observed->driver)
		return refuse(ret_error, "the document does not hold an observer's part alone");
	return run_merge(run, observed, ret_error);
}

static int merge_one(struct observers *observers, size_t index, struct run *run)
{
	struct observer *observer = observers->list[index];
	autorun struct run *observed = NULL;
	autofree char *error = NULL;
	int err = observer_end(observer, &observed, &error);
	bool alone = observers->count == 1 && !observers->source;
	const char *reason, *name = observer_url(observer);

	if (!err)
		err = merge_document(run, observed, &error);
	if (!err || err == -ENOMEM)
		return err;
	reason = error ? error : strerror(-err);
	/* Names are needed to distinguish several. */
	return add_reason(alone || strstr(reason, name) ? NULL : name, reason, run->driver);
}

static int merge_of_group(struct observers *observers, size_t index, struct run *run)
{
	autorun struct run *observed = NULL;
	autofree char *error = NULL;
	const char *name;
	int err = observers->source->take(observers->group, index, &name, &observed, &error);

	if (!err)
		err = merge_document(run, observed, &error);
	if (!err || err == -ENOMEM)
		return err;
	return add_reason(name, error ? error : strerror(-err), run->driver);
}

static int merge_group(struct observers *observers, struct run *run)
{
	const struct observer_source *source = observers->source;
	autofree char *missing = NULL;
	size_t count = source->end(observers->group);
	int err = 0;

	for (size_t i = 0; i < count && err != -ENOMEM; i++)
		err = merge_of_group(observers, i, run);
	missing = source->missing(observers->group);
	return err != -ENOMEM && missing ? add_reason(NULL, missing, run->driver) : err;
}

int observers_merge(struct observers *observers, struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < observers->count && err != -ENOMEM; i++)
		err = merge_one(observers, i, run);
	if (err != -ENOMEM && observers->source)
		err = merge_group(observers, run);
	return err;
}
