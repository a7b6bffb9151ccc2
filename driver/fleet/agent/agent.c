// SPDX-License-Identifier: MIT
/*
 * A member of a fleet; see agent.h. The main thread takes the plan and drives. A second thread
 * serves the channel: it answers pings and sends beats, also while the main thread is busy. It ends
 * the process if the coordinator is gone or silent: nobody then wants a result or can end the load.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "fleet/channel/channel.h"
#include "fleet/channel/plan.h"
#include "run/drive.h"
#include "scenario/job.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "sojourn/units.h"
#include "sojourn/write_all.h"

#define BEAT_NS	      (500 * NSEC_PER_MSEC)
#define LISTEN_MS     250
#define AWAIT_STEP_MS 5
/* For requests under way, if the result is wanted without a coordinator. */
#define LEAVE_S 60U

struct agent {
	const struct ceilings *ceilings;
	struct nats_input lines;
	struct plan_inbox inbox;
	pthread_mutex_t sending; /* held while a line is written */
	pthread_t thread;
	atomic_bool settled; /* the options have been checked, and change no more */
	/*
	 * Runs asked for, counted by the channel's thread, and those whose result was sent. If they are
	 * equal there is no load. The plan counts as a run: at its end that of a sweep was only checked.
	 */
	_Atomic uint64_t asked, done;
	_Atomic(json_t *) step;	      /* of a sweep, that the main thread has not taken yet */
	uint64_t beat_ns;	      /* when the next beat is due */
	uint64_t patience_ns;	      /* a longer silence means that the coordinator is gone */
	bool leaving;		      /* its coordinator is gone, and the load ends */
	bool kept;		      /* the result is stored, also without a coordinator */
	atomic_bool resumed;	      /* its coordinator is another one, which starts nothing */
	_Atomic uint64_t start_at_ns; /* by this host's wall clock */
	int start_fd;		      /* readable once start_at_ns is set */
	int stop_fd;		      /* readable once the run is to end */
	int step_fd;		      /* readable once there is a step, or no more will come */
	int place_fd;		      /* held while it runs: see ceilings_claim() */
	/* Used by the main thread only: */
	struct options options;
	struct scenario *scenario;
	struct scenario_job job;
	struct schedule_deals deals; /* the channel's thread appends */
};

/* ---- sending ---- */

/* Ignore errors: a coordinator that does not read has ended, which receive() notices. */
static void send_text(const char *text)
{
	(void)write_all(STDOUT_FILENO, text, strlen(text), NULL);
}

static void send_message(struct agent *agent, json_t *message)
{
	autofree char *line = channel_line(message);

	if (!line)
		return;
	pthread_mutex_lock(&agent->sending);
	send_text(line);
	pthread_mutex_unlock(&agent->sending);
}

static void send_type(struct agent *agent, const char *type)
{
	send_message(agent, json_pack("{s:s}", "type", type));
}

/* Start a new line first: a login shell may have written to this one. */
static void send_hello(struct agent *agent)
{
	send_text("\n");
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

/* A start or a stop that was not read was for the run before. */
static void take_step(struct agent *agent, const json_t *message)
{
	json_t *step = atomic_load(&agent->step) ? NULL : json_deep_copy(message);
	eventfd_t unused;

	if (!step)
		return;
	(void)eventfd_read(agent->start_fd, &unused);
	(void)eventfd_read(agent->stop_fd, &unused);
	atomic_fetch_add(&agent->asked, 1);
	atomic_store(&agent->step, step);
	raise_fd(agent->step_fd);
}

static void take_deal(struct agent *agent, const json_t *message)
{
	json_int_t number = json_integer_value(json_object_get(message, "number"));
	json_int_t index = json_integer_value(json_object_get(message, "member"));
	json_int_t count = json_integer_value(json_object_get(message, "members"));
	uint32_t dealt = atomic_load(&agent->deals.count);

	if (!atomic_load(&agent->settled) || number < 0 || index < 0 || index >= count ||
	    count > agent->options.load.member.count || dealt == SCHEDULE_DEALS ||
	    !ceilings_allow_rate(agent->ceilings, &agent->options.load, (uint32_t)count))
		return;
	agent->deals.list[dealt] =
		(struct schedule_deal){(uint64_t)number, (uint32_t)index, (uint32_t)count};
	atomic_store(&agent->deals.count, dealt + 1);
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
	else if (!strcmp(type, "step"))
		take_step(agent, message);
	else if (!strcmp(type, "deal"))
		take_deal(agent, message);
	else if (!strcmp(type, "stop"))
		raise_fd(agent->stop_fd);
	else if (!strcmp(type, "resumed"))
		atomic_store(&agent->resumed, true);
}

static bool can_take_more(int fd)
{
	struct pollfd output = {.fd = fd, .events = POLLOUT};

	return poll(&output, 1, 0) > 0;
}

/* Send a beat without waiting. A full or busy channel has content that shows the member lives. */
static void beat_if_due(struct agent *agent)
{
	static const struct timespec at_once = {0};
	uint64_t now_ns = clock_now_ns();

	if (now_ns < agent->beat_ns)
		return;
	agent->beat_ns = now_ns + BEAT_NS;
	if (pthread_mutex_timedlock(&agent->sending, &at_once))
		return;
	if (can_take_more(STDOUT_FILENO))
		send_text("{\"type\":\"beat\"}\n");
	pthread_mutex_unlock(&agent->sending);
}

/* Return 0 and whether anything arrived, or -errno if nothing more can be read. */
static int receive(struct agent *agent, bool *ret_heard)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char bytes[1 << 16];
	ssize_t length;

	beat_if_due(agent);
	*ret_heard = poll(&input, 1, LISTEN_MS) > 0;
	length = *ret_heard ? read(STDIN_FILENO, bytes, sizeof(bytes)) : 0;
	if (!*ret_heard || (length < 0 && errno == EINTR))
		return 0;
	if (length <= 0)
		return -EPIPE;
	return channel_lines_add(&agent->lines, bytes, (size_t)length);
}

static bool is_idle(struct agent *agent)
{
	return atomic_load(&agent->asked) == atomic_load(&agent->done);
}

/* Count steps, not time: if this agent itself was stopped, its coordinator was not silent. */
static int listen_patiently(struct agent *agent, uint64_t patience_ns)
{
	uint64_t steps = patience_ns / (LISTEN_MS * NSEC_PER_MSEC);
	uint64_t silent = 0;
	int err = 0;

	while (!err && silent <= steps && !(agent->leaving && is_idle(agent))) {
		bool heard;

		for (char *line; (line = channel_lines_take(&agent->lines)); free(line))
			take_line(agent, line);
		err = receive(agent, &heard);
		silent = heard ? 0 : silent + 1;
	}
	return err ? err : -ETIMEDOUT;
}

static void tell_silence(const struct agent *agent)
{
	char time[32];

	units_format_duration((double)agent->patience_ns, time, sizeof(time));
	if (can_take_more(STDERR_FILENO))
		log_error("the coordinator was silent for %s", time);
}

/*
 * End the load as a stop does. The process that relays the result learns why it comes early. The
 * alarm ends this process if nobody reads what it sends.
 */
static void leave_orderly(struct agent *agent)
{
	(void)alarm(LEAVE_S);
	raise_fd(agent->stop_fd);
	send_type(agent, "silent");
	agent->leaving = true;
	(void)listen_patiently(agent, LEAVE_S * NSEC_PER_SEC);
}

/*
 * End the process from here: the main thread may wait where nothing wakes it, in getaddrinfo() or
 * on a full channel.
 */
static void *keep_channel(void *argument)
{
	struct agent *agent = argument;
	int err = listen_patiently(agent, agent->patience_ns);

	if (err == -ETIMEDOUT && !is_idle(agent))
		tell_silence(agent);
	if (err == -ETIMEDOUT && !is_idle(agent) && agent->kept)
		leave_orderly(agent);
	if (is_idle(agent)) {
		raise_fd(agent->step_fd);
		return NULL;
	}
	_exit(EXIT_FAILURE);
}

/* ---- the run ---- */

static void send_ready(struct agent *agent)
{
	send_message(agent, json_pack("{s:s, s:I}", "type", "ready", "max_rate",
				      (json_int_t)agent->ceilings->rate));
}

/* The first coordinator's start came before, if it came. */
static bool is_in_vain(struct agent *agent)
{
	struct pollfd event = {.fd = agent->start_fd, .events = POLLIN};

	return atomic_load(&agent->resumed) && poll(&event, 1, 0) <= 0;
}

/* Wait for the start in short steps; the patience runs the caller's loop between them. */
static int await_start(void *user, struct patience patience, struct start_spec *start)
{
	struct agent *agent = user;
	struct pollfd event = {.fd = agent->start_fd, .events = POLLIN};
	eventfd_t unused;

	atomic_store(&agent->settled, !agent->inbox.sweep); /* the next step changes the load */
	send_ready(agent);
	while (poll(&event, 1, AWAIT_STEP_MS) <= 0)
		if (patience.is_over(patience.user) || is_in_vain(agent))
			return -ECANCELED;
	(void)eventfd_read(agent->start_fd, &unused); /* a second start may follow */
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
		.pauses = agent->inbox.pauses,
		.so_far = tell_so_far,
		.failed = tell_failure,
	};
	autorun struct run *run = NULL;
	int err;

	agent->job.job.watch = &watch;
	agent->options.load.member.deals = &agent->deals;
	err = scenario_job_raise_files(&agent->options, &agent->job.job, ret_error);
	if (!err)
		err = drive_run(&agent->job.job, &run, ret_error);
	return err ? err : send_document(agent, run, true);
}

/* ---- the plan ---- */

/* Opening the job resolves names a second time, and the addresses are checked again. */
static int prepare(struct agent *agent, const json_t *message, char **ret_error)
{
	int err = plan_take(&agent->inbox, message, &agent->options, &agent->scenario, ret_error);

	if (!err)
		err = ceilings_claim(agent->ceilings, &agent->place_fd, ret_error);
	if (!err)
		err = ceilings_check_load(agent->ceilings, &agent->options, agent->scenario,
					  ret_error);
	if (!err)
		err = ceilings_check_targets(agent->ceilings, agent->scenario, ret_error);
	if (!err)
		err = scenario_job_open(&agent->options, agent->scenario, agent->inbox.argv,
					&agent->job, ret_error);
	if (!err)
		err = ceilings_check_addresses(agent->ceilings, agent->scenario, ret_error);
	return err;
}

/*
 * Called before the second thread exists. *@ret_plan is NULL if the channel ended without a plan.
 */
static int await_plan(struct agent *agent, json_t **ret_plan, char **ret_error)
{
	bool unused;
	int err = 0;

	for (*ret_plan = NULL; !err && !*ret_plan;) {
		autofree char *line = channel_lines_take(&agent->lines);
		autojson json_t *message = line ? channel_parse(line) : NULL;
		const char *type = message ? channel_type(message) : "";

		if (!line)
			err = receive(agent, &unused);
		else if (!strcmp(type, "file"))
			err = plan_take_file(&agent->inbox, message, ret_error);
		else if (!strcmp(type, "plan"))
			*ret_plan = TAKE_PTR(message);
	}
	return err;
}

static void tell_error(struct agent *agent, const char *type, int err, const char *error)
{
	send_message(agent, json_pack("{s:s, s:s}", "type", type, "reason",
				      error ? error : strerror(-err)));
}

/* The ceilings were checked with the largest step. A coordinator may ask for another one. */
static int carry_out_step(struct agent *agent, const json_t *step, char **ret_error)
{
	int err = plan_take_step(&agent->inbox, step, &agent->options, ret_error);

	if (!err)
		err = ceilings_check_load(agent->ceilings, &agent->options, agent->scenario,
					  ret_error);
	return err ? err : drive(agent, ret_error);
}

/* Return the next step; NULL: the coordinator has left. */
static json_t *await_step(struct agent *agent)
{
	struct pollfd event = {.fd = agent->step_fd, .events = POLLIN};
	eventfd_t unused;

	while (poll(&event, 1, -1) <= 0)
		;
	(void)eventfd_read(agent->step_fd, &unused);
	return atomic_exchange(&agent->step, NULL);
}

static int sweep(struct agent *agent, char **ret_error)
{
	json_t *step;
	int err = 0;

	send_ready(agent);
	atomic_fetch_add(&agent->done, 1);
	while (!err && (step = await_step(agent))) {
		err = carry_out_step(agent, step, ret_error);
		json_decref(step);
		if (!err)
			atomic_fetch_add(&agent->done, 1);
	}
	return err;
}

static void carry_out(struct agent *agent, const json_t *plan)
{
	autofree char *error = NULL;
	int err = prepare(agent, plan, &error);

	if (err) {
		tell_error(agent, "refused", err, error);
		return;
	}
	err = agent->inbox.sweep ? sweep(agent, &error) : drive(agent, &error);
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
		return 0; /* the coordinator left before it sent a plan */
	if (!err)
		err = plan_take_patience(plan, &agent->patience_ns, &error);
	if (err) {
		tell_error(agent, "refused", err, error);
		return err;
	}
	agent->kept = json_is_true(json_object_get(plan, "kept"));
	err = -pthread_create(&agent->thread, NULL, keep_channel, agent);
	if (err)
		return err;
	carry_out(agent, plan);
	atomic_store(&agent->done, atomic_load(&agent->asked));
	pthread_join(agent->thread, NULL);
	return 0;
}

static void clear(struct agent *agent)
{
	scenario_job_close(&agent->job);
	scenario_free(agent->scenario);
	options_clear(&agent->options);
	plan_inbox_clear(&agent->inbox);
	nats_input_clear(&agent->lines);
	pthread_mutex_destroy(&agent->sending);
	cleanup_close(&agent->start_fd);
	cleanup_close(&agent->stop_fd);
	cleanup_close(&agent->step_fd);
	json_decref(agent->step);
	cleanup_close(&agent->place_fd);
	free(agent);
}

int agent_run(const struct ceilings *ceilings)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	int err;

	if (!agent)
		return -ENOMEM;
	agent->ceilings = ceilings;
	agent->place_fd = -1;
	atomic_store(&agent->asked, 1);
	pthread_mutex_init(&agent->sending, NULL);
	agent->start_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	agent->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	agent->step_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = agent->start_fd < 0 || agent->stop_fd < 0 || agent->step_fd < 0 ? -errno
									      : serve(agent);
	clear(agent);
	return err;
}
