// SPDX-License-Identifier: MIT
/*
 * A member of a fleet; see agent.h. The main thread takes the plan and drives. A second thread
 * serves the channel. It answers pings at once and shows that the member lives, also while the
 * others are busy.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel.h"
#include "plan.h"
#include "run/drive.h"
#include "scenario/job.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"

#define BEAT_NS	      (500 * NSEC_PER_MSEC)
#define AWAIT_STEP_MS 5

struct agent {
	const struct ceilings *ceilings;
	struct channel_lines lines;
	struct plan_inbox inbox;
	pthread_mutex_t sending; /* held while a line is written */
	pthread_t thread;
	_Atomic uint64_t start_at_ns; /* by this host's wall clock */
	int start_fd;		      /* readable once start_at_ns is set */
	int stop_fd;		      /* readable once the run is to end */
	/* Used by the main thread only: */
	struct options options;
	struct scenario *scenario;
	struct scenario_job job;
};

/* ---- sending ---- */

static int write_all(const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t written = write(STDOUT_FILENO, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

/* Ignores errors: a coordinator that does not read has ended, which receive() notices. */
static void send_message(struct agent *agent, json_t *message)
{
	autofree char *line = channel_line(message);

	if (!line)
		return;
	pthread_mutex_lock(&agent->sending);
	(void)write_all(line);
	pthread_mutex_unlock(&agent->sending);
}

static void send_type(struct agent *agent, const char *type)
{
	send_message(agent, json_pack("{s:s}", "type", type));
}

static void send_reason(struct agent *agent, const char *type, const char *reason)
{
	send_message(agent, json_pack("{s:s, s:s}", "type", type, "reason", reason));
}

static void send_hello(struct agent *agent)
{
	send_message(agent, json_pack("{s:s, s:i, s:s}", "type", "hello", "protocol",
				      CHANNEL_PROTOCOL, "version", SOJOURN_VERSION));
}

static int send_document(struct agent *agent, const struct run *run, bool final)
{
	autofree char *text = run_to_json(run);
	size_t at = 0;

	if (!text)
		return -ENOMEM;
	do {
		json_t *part = channel_document_part(text, &at, final);

		if (!part)
			return -ENOMEM;
		send_message(agent, part);
	} while (text[at]);
	return 0;
}

/* ---- the channel's thread ---- */

static void raise_fd(int fd)
{
	(void)eventfd_write(fd, 1);
}

static void answer_ping(struct agent *agent, const json_t *ping)
{
	send_message(agent, json_pack("{s:s, s:O?, s:I}", "type", "pong", "number",
				      json_object_get(ping, "number"), "wall_ns",
				      (json_int_t)clock_wall_ns()));
}

static void take_start(struct agent *agent, const json_t *message)
{
	json_int_t at_ns = json_integer_value(json_object_get(message, "at_ns"));

	atomic_store(&agent->start_at_ns, (uint64_t)at_ns);
	raise_fd(agent->start_fd);
}

/*
 * Other types are ignored. The coordinator refuses members of other versions, so none are expected.
 */
static void take_line(struct agent *agent, const char *line)
{
	autojson json_t *message = channel_parse(line);
	const char *type = message ? channel_type(message) : "";

	if (!strcmp(type, "ping"))
		answer_ping(agent, message);
	else if (!strcmp(type, "start"))
		take_start(agent, message);
	else if (!strcmp(type, "stop"))
		raise_fd(agent->stop_fd);
}

/* Return -EPIPE at the end of the input, or another -errno if no more can be read. */
static int receive(struct agent *agent)
{
	char bytes[1 << 16];
	ssize_t length = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (length < 0 && errno == EINTR)
		return 0;
	if (length <= 0)
		return -EPIPE;
	return channel_lines_add(&agent->lines, bytes, (size_t)length);
}

static void *keep_channel(void *argument)
{
	struct agent *agent = argument;
	uint64_t beat_ns = clock_now_ns();
	int err = 0;

	while (!err) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		uint64_t now_ns = clock_now_ns();

		if (now_ns >= beat_ns) {
			send_type(agent, "beat");
			beat_ns = now_ns + BEAT_NS;
		}
		if (poll(&input, 1, (int)((beat_ns - now_ns) / NSEC_PER_MSEC) + 1) > 0)
			err = receive(agent);
		for (char *line; !err && (line = channel_lines_take(&agent->lines)); free(line))
			take_line(agent, line);
	}
	raise_fd(agent->stop_fd);
	return NULL;
}

/* ---- the run ---- */

/* Wait for the start in short steps; the patience runs the caller's loop between them. */
static int await_start(void *user, struct start_patience patience, struct start_spec *start)
{
	struct agent *agent = user;
	struct pollfd event = {.fd = agent->start_fd, .events = POLLIN};

	send_type(agent, "ready");
	while (poll(&event, 1, AWAIT_STEP_MS) <= 0)
		if (patience.is_over(patience.user))
			return -ECANCELED;
	start->at_ns = atomic_load(&agent->start_at_ns);
	return 0;
}

static void tell_so_far(void *user, const struct run *run)
{
	(void)send_document(user, run, false);
}

static void tell_failure(void *user)
{
	send_type(user, "failed");
}

static int drive(struct agent *agent, char **ret_error)
{
	const struct drive_watch watch = {
		.user = agent,
		.stop_fd = agent->stop_fd,
		.await = await_start,
		.so_far = tell_so_far,
		.failed = tell_failure,
	};
	autorun struct run *run = NULL;
	int err;

	agent->job.job.watch = &watch;
	err = scenario_job_raise_files(&agent->options, &agent->job.job, ret_error);
	if (!err)
		err = drive_run(&agent->job.job, &run, ret_error);
	return err ? err : send_document(agent, run, true);
}

/* ---- the plan ---- */

/* Opening the job resolves the target's name a second time. That answer is not checked again. */
static int prepare(struct agent *agent, const json_t *message, char **ret_error)
{
	int err = plan_take(&agent->inbox, message, &agent->options, &agent->scenario, ret_error);

	if (!err)
		err = ceilings_check_load(agent->ceilings, &agent->options.load, ret_error);
	if (!err)
		err = ceilings_check_targets(agent->ceilings, agent->scenario, ret_error);
	if (!err)
		err = scenario_job_open(&agent->options, agent->scenario, agent->inbox.argv,
					&agent->job, ret_error);
	return err;
}

/*
 * Called before the second thread exists. *@ret_plan is NULL if the channel has ended without a plan.
 */
static int await_plan(struct agent *agent, json_t **ret_plan, char **ret_error)
{
	int err = 0;

	for (*ret_plan = NULL; !err && !*ret_plan;) {
		autofree char *line = channel_lines_take(&agent->lines);
		autojson json_t *message = line ? channel_parse(line) : NULL;
		const char *type = message ? channel_type(message) : "";

		if (!line)
			err = receive(agent);
		else if (!strcmp(type, "file"))
			err = plan_take_file(&agent->inbox, message, ret_error);
		else if (!strcmp(type, "plan"))
			*ret_plan = TAKE_PTR(message);
	}
	return err;
}

static void tell_error(struct agent *agent, const char *type, int err, const char *error)
{
	send_reason(agent, type, error ? error : strerror(-err));
}

static void carry_out(struct agent *agent, const json_t *plan)
{
	autofree char *error = NULL;
	int err = prepare(agent, plan, &error);

	if (err) {
		tell_error(agent, "refused", err, error);
		return;
	}
	err = drive(agent, &error);
	if (err)
		tell_error(agent, "error", err, error);
}

static int serve(struct agent *agent)
{
	autojson json_t *plan = NULL;
	autofree char *error = NULL;
	int err;

	send_hello(agent);
	err = await_plan(agent, &plan, &error);
	if (err == -EPIPE)
		return 0; /* the coordinator has changed its mind */
	if (err) {
		tell_error(agent, "refused", err, error);
		return err;
	}
	err = -pthread_create(&agent->thread, NULL, keep_channel, agent);
	if (err)
		return err;
	carry_out(agent, plan);
	pthread_join(agent->thread, NULL);
	return 0;
}

static void clear(struct agent *agent)
{
	scenario_job_close(&agent->job);
	scenario_free(agent->scenario);
	options_clear(&agent->options);
	plan_inbox_clear(&agent->inbox);
	channel_lines_clear(&agent->lines);
	pthread_mutex_destroy(&agent->sending);
	if (agent->start_fd >= 0)
		close(agent->start_fd);
	if (agent->stop_fd >= 0)
		close(agent->stop_fd);
	free(agent);
}

int agent_run(const struct ceilings *ceilings)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent)
		return -ENOMEM;
	agent->ceilings = ceilings;
	pthread_mutex_init(&agent->sending, NULL);
	agent->start_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	agent->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = agent->start_fd < 0 || agent->stop_fd < 0 ? -errno : serve(agent);
	clear(agent);
	return err;
}
