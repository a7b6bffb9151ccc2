// SPDX-License-Identifier: MIT
/* An agent that waits at a NATS server; see waiting.h. */
#include "waiting.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/cleanup.h"
#include "sojourn/log.h"
#include "sojourn/refuse.h"
#include "transport/loop.h"

void waiting_address(const struct waiting *waiting, const char *run,
		     char ret_subject[static RELAY_SUBJECT])
{
	snprintf(ret_subject, RELAY_SUBJECT, "sojourn.from.%s.%s", run, waiting->agent);
}

void waiting_answer(const struct waiting *waiting, const char *run, json_t *message)
{
	char subject[RELAY_SUBJECT];

	waiting_address(waiting, run, subject);
	relay_send(waiting->nats, subject, message);
}

void waiting_leave(struct waiting *waiting)
{
	if (waiting->over && !waiting->owner.is_busy(waiting->owner.user))
		uv_stop(&waiting->loop);
}

/* ---- the connection ---- */

/* Return whether trying again is of no use. */
static bool is_final(const struct waiting *waiting, const char *reason)
{
	return !waiting->was_open || strstr(reason, "Permissions Violation");
}

static void note_failure(struct waiting *waiting, const char *reason)
{
	bool same = waiting->failed && !strcmp(waiting->failed, reason);

	if (!same && !is_final(waiting, reason))
		log_warn("%s: %s; trying again", waiting->options->nats.url, reason);
	free(waiting->failed);
	waiting->failed = strdup(reason);
}

static void on_failed(void *user, const char *reason)
{
	struct waiting *waiting = user;
	bool final = is_final(waiting, reason);

	note_failure(waiting, reason);
	nats_close(TAKE_PTR(waiting->nats));
	waiting->over |= final;
	waiting->owner.lost(waiting->owner.user, final);
	if (final)
		waiting_leave(waiting);
}

static void on_open(void *user)
{
	struct waiting *waiting = user;
	char subject[RELAY_SUBJECT];
	int err = nats_subscribe(waiting->nats, waiting->owner.to_all);

	snprintf(subject, sizeof(subject), "sojourn.to.%s.*", waiting->agent);
	if (!err)
		err = nats_subscribe(waiting->nats, subject);
	if (err) {
		on_failed(waiting, strerror(-err));
		return;
	}
	waiting->was_open = true;
	free(TAKE_PTR(waiting->failed));
	waiting->owner.opened(waiting->owner.user);
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct waiting *waiting = user;

	waiting->owner.message(waiting->owner.user, subject, payload, length);
}

static int connect_to(struct waiting *waiting, char **ret_error)
{
	const struct nats_owner owner = {waiting, on_open, on_message, on_failed};

	return nats_open(&waiting->loop, &waiting->options->nats, &owner, &waiting->nats,
			 ret_error);
}

/* ---- events ---- */

static void on_step(uv_timer_t *timer)
{
	struct waiting *waiting = timer->data;
	bool wanted = waiting->owner.step(waiting->owner.user);
	autofree char *error = NULL;

	if (!waiting->nats && wanted && connect_to(waiting, &error))
		note_failure(waiting, error ? error : "no memory");
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct waiting *waiting = handle->data;
	bool again = waiting->over;
	char reason[128];

	snprintf(reason, sizeof(reason), "its agent was ended by signal %d (%s) on its host",
		 number, strsignal(number));
	waiting->over = true;
	waiting->owner.ended(waiting->owner.user, again, reason);
	waiting_leave(waiting);
}

/* ---- opened and closed ---- */

static int open_handles(struct waiting *waiting)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	int err = uv_timer_init(&waiting->loop, &waiting->timer);

	waiting->timer.data = waiting;
	for (size_t i = 0; i < ARRAY_SIZE(numbers) && !err; i++)
		err = loop_signal(&waiting->loop, &waiting->signals[i], on_signal, numbers[i],
				  waiting);
	return err ? err
		   : uv_timer_start(&waiting->timer, on_step, WAITING_STEP_MS, WAITING_STEP_MS);
}

static void on_flushed(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

/* Let the last messages leave, but do not wait for a server that does not read. */
static void flush(struct waiting *waiting)
{
	uv_timer_start(&waiting->timer, on_flushed, WAITING_LEAVE_MS, 0);
	while (waiting->nats && !nats_is_flushed(waiting->nats) &&
	       uv_is_active((uv_handle_t *)&waiting->timer))
		uv_run(&waiting->loop, UV_RUN_ONCE);
}

static int serve(struct waiting *waiting, char **ret_error)
{
	int err = secret_make(waiting->agent);

	relay_own_name(waiting->options->name, waiting->agent, waiting->name);
	if (!err)
		err = open_handles(waiting);
	if (!err)
		err = connect_to(waiting, ret_error);
	if (err)
		return err;
	uv_run(&waiting->loop, UV_RUN_DEFAULT);
	flush(waiting);
	return waiting->nats || !waiting->failed
		       ? 0
		       : refuse(ret_error, "--fleet: %s: %s", waiting->options->nats.url,
				waiting->failed);
}

int waiting_run(struct waiting *waiting, char **ret_error)
{
	int err = uv_loop_init(&waiting->loop);

	if (err)
		return err;
	err = serve(waiting, ret_error);
	nats_close(TAKE_PTR(waiting->nats));
	loop_close_handles(&waiting->loop);
	uv_loop_close(&waiting->loop);
	free(waiting->failed);
	return err;
}
