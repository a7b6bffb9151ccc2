/* SPDX-License-Identifier: MIT */
/*
 * The observers of a run, one after the other. A phase begins before the first request and ends after the
 * last one, so the observers need not begin it at the same time.
 */
#include "observers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/refuse.h"

struct observers {
	size_t count;
	struct observer *list[OBSERVERS_MAX];
};

int observers_new(const struct observer_access *access, uint16_t port,
		  struct observer_patience patience, struct observers **ret_observers)
{
	CLEANUP(cleanup_observers_free) struct observers *observers = NULL;

	if (!access->url_count)
		return 0;
	observers = calloc(1, sizeof(*observers));
	if (!observers)
		return -ENOMEM;
	for (; observers->count < access->url_count; observers->count++) {
		int err = observer_new(access, access->urls[observers->count], port, patience,
				       &observers->list[observers->count]);

		if (err)
			return err;
	}
	*ret_observers = TAKE_PTR(observers);
	return 0;
}

void observers_free(struct observers *observers)
{
	if (!observers)
		return;
	for (size_t i = 0; i < observers->count; i++)
		observer_free(observers->list[i]);
	free(observers);
}

static void drop(struct observers *observers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		observer_drop(observers->list[i]);
}

void observers_drop(struct observers *observers)
{
	if (observers)
		drop(observers, observers->count);
}

int observers_begin(struct observers *observers, char **ret_error)
{
	for (size_t i = 0; i < observers->count; i++) {
		int err = observer_begin(observers->list[i], ret_error);

		if (!err)
			continue;
		drop(observers, i);
		return err;
	}
	return 0;
}

int observers_rehearse(struct observers *observers, char **ret_error)
{
	int err = observers_begin(observers, ret_error);

	if (!err)
		observers_drop(observers);
	return err;
}

/* Add a reason to those of other observers. Names are needed to distinguish several. */
static int add_reason(const struct observers *observers, size_t index, const char *reason,
		      struct run_driver *driver)
{
	const char *url = observer_url(observers->list[index]), *before = driver->observer_error;
	bool named = observers->count == 1 || strstr(reason, url);
	char *text;

	if (asprintf(&text, "%s%s%s%s%s", before ? before : "", before ? "; " : "",
		     named ? "" : url, named ? "" : ": ", reason) < 0)
		return -ENOMEM;
	free(driver->observer_error);
	driver->observer_error = text;
	return 0;
}

int observers_merge(struct observers *observers, struct run *run)
{
	int err = 0;

	for (size_t i = 0; i < observers->count && err != -ENOMEM; i++) {
		autofree char *reason = NULL;

		err = observer_merge(observers->list[i], run, &reason);
		if (err && err != -ENOMEM)
			err = add_reason(observers, i, reason ? reason : strerror(-err),
					 run->driver);
	}
	return err;
}
