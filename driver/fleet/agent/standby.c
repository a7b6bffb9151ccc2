// SPDX-License-Identifier: MIT
/*
 * An agent's side of a fleet over NATS. A process of its own drives, so this one
 * relays messages however busy that is. Nothing of a run is left for the next one. muster.c is the
 * other side.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/channel/channel.h"
#include "fleet/channel/keep.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/log.h"
#include "waiting.h"

/* An agent whose channel has closed ends at once, unless its host hangs. */
#define LEAVE_STEPS 4U
/* The agent itself notices a silent coordinator, once it has a plan. */
#define PATIENCE_MORE_NS (5 * NSEC_PER_SEC)
#define PATIENCE_MAX_NS	 (3600 * NSEC_PER_SEC)

/* With a plan and a result that is kept, it ends its load, and requests under way take their time. */
#define KEPT_STEPS 240U
/* A coordinator sends four messages a second. */
#define LED_STEPS 3U

#define WORDS_MAX 12U

struct standby {
	struct waiting waiting;
	/* The run at hand: */
	bool busy;
	char run[SECRET_LENGTH + 1];
	char asker[WAITING_ASKER];
	struct relay relay;
	bool piped; /* the relay's pipes are not closed */
	uv_process_t process;
	bool process_open; /* its handle is not closed */
	bool ended;	   /* the process */
	bool drained;	   /* its output */
	int64_t status;
	int signal;
	uint64_t patience_steps, mute_steps;
	uint64_t silent, leaving; /* steps */
	json_t *claim;		  /* waits until the server has said that it stores results */
	char claimed[SECRET_LENGTH + 1];
	struct keep keep;
	bool resumed; /* another coordinator waits for the result */
};

/* ---- messages ---- */

static void answer(const struct standby *standby, const char *run, const char *type)
{
	waiting_answer(&standby->waiting, run,
		       json_pack("{s:s, s:s}", "type", type, "name", standby->waiting.name));
}

/* The one that it works for calls others, too. */
static void take_call(struct standby *standby, const json_t *message)
{
	const char *run = json_string_value(json_object_get(message, "run"));

	if (!run || !relay_is_key(run) || (standby->busy && !strcmp(run, standby->run)))
		return;
	answer(standby, run, standby->busy ? "busy" : "offer");
}

/* ---- the agent's process ---- */

static void settle(struct standby *standby)
{
	if (!standby->busy || standby->piped || standby->process_open ||
	    !keep_is_over(&standby->keep))
		return;
	standby->busy = false;
	if (standby->keep.failed)
		log_error("run %.8s: its result could not be stored: %s", standby->run,
			  standby->keep.failed);
	keep_clear(&standby->keep);
	relay_clear(&standby->relay);
	log_note("run %.8s has ended", standby->run);
	if (standby->waiting.options->once)
		standby->waiting.over = true;
	waiting_leave(&standby->waiting);
}

static void describe_end(const struct standby *standby, size_t size, char *ret_text)
{
	if (standby->signal)
		snprintf(ret_text, size, "its agent was ended by signal %d (%s)", standby->signal,
			 strsignal(standby->signal));
	else if (standby->relay.muted)
		snprintf(ret_text, size, "its coordinator was silent, so it has ended");
	else
		snprintf(ret_text, size,
			 "its agent ended with status %" PRId64 "; its log has the reason",
			 standby->status);
}

/* Its last words come before its end. */
static void end_if_over(struct standby *standby)
{
	char reason[128];

	if (!standby->ended || !standby->drained)
		return;
	describe_end(standby, sizeof(reason), reason);
	keep_finish(&standby->keep, reason);
	relay_end(&standby->relay, reason);
}

/* The first to know of a silent coordinator is the agent itself. */
static void on_read(void *user, const char *bytes, size_t length)
{
	struct standby *standby = user;

	keep_take(&standby->keep, bytes, length);
	if (standby->keep.stopped)
		relay_mute(&standby->relay);
}

static void on_process_closed(uv_handle_t *handle)
{
	struct standby *standby = handle->data;

	standby->process_open = false;
	settle(standby);
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
	struct standby *standby = process->data;

	standby->ended = true;
	standby->status = status;
	standby->signal = signal;
	uv_close((uv_handle_t *)process, on_process_closed);
	end_if_over(standby);
}

static void on_drained(void *user)
{
	struct standby *standby = user;

	standby->drained = true;
	end_if_over(standby);
}

static void on_relay_ended(void *user, const char *reason)
{
	struct standby *standby = user;

	keep_cancel(&standby->keep);
	if (*reason)
		log_note("the coordinator has ended the run: %.200s", reason);
}

static void on_relay_closed(void *user)
{
	struct standby *standby = user;

	standby->piped = false;
	settle(standby);
}

static void kill_agent(struct standby *standby)
{
	if (standby->process_open && !standby->ended)
		(void)uv_process_kill(&standby->process, SIGKILL);
}

/* The words of the agent's command line: the same ceilings. */
struct command {
	char *words[WORDS_MAX];
	char texts[WORDS_MAX][40];
	size_t count;
};

static void add_number(struct command *command, const char *option, uint64_t number,
		       const char *unit)
{
	char *text = command->texts[command->count];

	if (!number)
		return;
	snprintf(text, sizeof(command->texts[0]), "%" PRIu64 "%s", number, unit);
	command->words[command->count++] = (char *)option;
	command->words[command->count++] = text;
}

static void make_command(const struct ceilings *ceilings, struct command *command)
{
	*command = (struct command){.words = {"sojourn-drive", "agent"}, .count = 2};
	if (ceilings->allow) {
		command->words[command->count++] = "--allow";
		command->words[command->count++] = (char *)ceilings->allow;
	}
	add_number(command, "--max-rate", ceilings->rate, "");
	add_number(command, "--max-connections", ceilings->connections, "");
	add_number(command, "--max-duration", ceilings->duration_ns, "ns");
}

/* In a session of its own: Ctrl-C at a terminal ends it in order, through this process. */
static int spawn(struct standby *standby)
{
	struct command command;
	uv_stdio_container_t streams[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		 .data.stream = (uv_stream_t *)&standby->relay.out},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&standby->relay.in},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	};
	const uv_process_options_t options = {
		.file = "/proc/self/exe",
		.args = command.words,
		.exit_cb = on_exit_of,
		.flags = UV_PROCESS_DETACHED,
		.stdio = streams,
		.stdio_count = ARRAY_SIZE(streams),
	};

	make_command(&standby->waiting.options->ceilings, &command);
	standby->process.data = standby;
	standby->process_open = true; /* its handle exists even if it fails */
	return uv_spawn(&standby->waiting.loop, &standby->process, &options);
}

static int start_agent(struct standby *standby, uint32_t window)
{
	struct waiting *waiting = &standby->waiting;
	const struct relay_owner owner = {standby, on_read, on_drained, on_relay_ended,
					  on_relay_closed};
	char subject[RELAY_SUBJECT];
	int err;

	waiting_address(waiting, standby->run, subject);
	err = relay_open(&standby->relay, &waiting->loop, waiting->nats, subject, &owner);
	standby->piped = true;
	if (!err)
		err = spawn(standby);
	if (!err)
		relay_begin(&standby->relay, window);
	return err;
}

/* ---- claims ---- */

static void fail_to_start(struct standby *standby, int err)
{
	char reason[128];

	snprintf(reason, sizeof(reason), "its agent cannot be started: %s", strerror(-err));
	log_error("%s", reason);
	keep_finish(&standby->keep, reason);
	relay_end(&standby->relay, reason);
	uv_close((uv_handle_t *)&standby->process, on_process_closed);
}

/* Return 0 if the claim can be accepted. */
static int read_claim(const struct standby *standby, const json_t *message, uint32_t *ret_window,
		      uint64_t *ret_patience_ns)
{
	json_int_t window = json_integer_value(json_object_get(message, "window"));
	json_int_t patience_ns = json_integer_value(json_object_get(message, "patience_ns"));

	if (standby->busy || standby->waiting.over || window < RELAY_WINDOW_MIN ||
	    window > RELAY_WINDOW_MAX || patience_ns <= 0 ||
	    patience_ns > (json_int_t)PATIENCE_MAX_NS)
		return -EBUSY;
	*ret_window = (uint32_t)window;
	*ret_patience_ns = (uint64_t)patience_ns;
	return 0;
}

static void begin_run(struct standby *standby, const char *run, const json_t *message,
		      uint64_t patience_ns)
{
	const char *asker = json_string_value(json_object_get(message, "asker"));

	snprintf(standby->run, sizeof(standby->run), "%s", run);
	snprintf(standby->asker, sizeof(standby->asker), "%s", asker ? asker : "somebody");
	log_note("run %.8s is asked for by %s", run, standby->asker);
	standby->busy = true;
	standby->ended = false;
	standby->drained = false;
	standby->resumed = false;
	standby->silent = 0;
	standby->leaving = 0;
	standby->mute_steps = patience_ns / (WAITING_STEP_MS * NSEC_PER_MSEC) + 1;
	standby->patience_steps =
		(patience_ns + PATIENCE_MORE_NS) / (WAITING_STEP_MS * NSEC_PER_MSEC);
}

static void accept_claim(struct standby *standby, const char *run, const json_t *message)
{
	uint64_t patience_ns;
	uint32_t window;
	int err;

	if (read_claim(standby, message, &window, &patience_ns)) {
		answer(standby, run, "busy");
		return;
	}
	begin_run(standby, run, message, patience_ns);
	answer(standby, run, "accepted");
	err = start_agent(standby, window);
	if (err)
		fail_to_start(standby, err);
}

/* A result that is to be kept needs a server that stores it: ask before the run. */
static void take_claim(struct standby *standby, const char *run, json_t *message)
{
	if (standby->busy && !strcmp(run, standby->run))
		return;
	if (standby->busy || !json_is_true(json_object_get(message, "keep"))) {
		accept_claim(standby, run, message);
		return;
	}
	json_decref(standby->claim);
	standby->claim = json_incref(message);
	snprintf(standby->claimed, sizeof(standby->claimed), "%s", run);
	keep_begin(&standby->keep, standby->waiting.nats, run, standby->waiting.agent, KEEP_ANSWER);
	keep_announce(&standby->keep, standby->waiting.name);
}

/* The server answers for the claim that was announced, or for a piece of the result. */
static void take_stored(struct standby *standby, const char *number, const char *payload,
			size_t length)
{
	autojson json_t *answer = json_loadb(payload, length, JSON_REJECT_DUPLICATES, NULL);
	autojson json_t *claim = NULL;

	if (strcmp(number, "0") != 0) {
		keep_answer(&standby->keep, strtoul(number, NULL, 10), answer);
		settle(standby);
	} else if (standby->claim && json_is_integer(json_object_get(answer, "seq"))) {
		claim = TAKE_PTR(standby->claim);
		accept_claim(standby, standby->claimed, claim);
	}
}

/*
 * Another coordinator asks for the result of the run. It is a sign of life for the agent, but not
 * while there is the first one.
 */
static void take_resume(struct standby *standby, const json_t *message)
{
	bool stop = json_is_true(json_object_get(message, "stop"));

	if (!standby->resumed && !standby->relay.over && standby->silent < LED_STEPS) {
		answer(standby, standby->run, "led");
		return;
	}
	if (json_is_true(json_object_get(message, "end"))) {
		keep_cancel(&standby->keep);
		relay_end(&standby->relay, "");
		return;
	}
	standby->resumed = true;
	standby->silent = 0;
	standby->keep.stopped |= stop && !standby->keep.storing;
	relay_mute(&standby->relay);
	relay_inject(&standby->relay, stop ? "{\"type\":\"stop\"}\n" : "{\"type\":\"resumed\"}\n");
	answer(standby, standby->run, "running");
}

static void take_for_run(struct standby *standby, const char *run, const char *payload,
			 size_t length)
{
	const char *body;
	size_t body_length;
	autojson json_t *head = relay_parse(payload, length, &body, &body_length);
	const char *type = head ? channel_type(head) : NULL;

	if (type && !strcmp(type, "claim")) {
		take_claim(standby, run, head);
	} else if (!standby->busy || strcmp(run, standby->run) != 0) {
		return;
	} else if (type && !strcmp(type, "resume")) {
		take_resume(standby, head);
	} else {
		standby->silent = 0;
		relay_take(&standby->relay, payload, length);
	}
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct standby *standby = user;
	const char *run = strrchr(subject, '.');
	const char *body;
	size_t body_length;

	if (run && !strncmp(run + 1, KEEP_ANSWER, strlen(KEEP_ANSWER))) {
		take_stored(standby, run + 1 + strlen(KEEP_ANSWER), payload, length);
	} else if (run && relay_is_key(run + 1)) {
		take_for_run(standby, run + 1, payload, length);
	} else if (!strcmp(subject, RELAY_TO_ALL)) {
		autojson json_t *head = relay_parse(payload, length, &body, &body_length);

		take_call(standby, head);
	}
}

/* ---- the connection ---- */

/* A run whose result is kept waits for the next connection. */
static void detach(struct standby *standby)
{
	if (!standby->busy)
		return;
	if (!standby->keep.on) {
		relay_drop(&standby->relay);
		return;
	}
	relay_attach(&standby->relay, NULL);
	keep_attach(&standby->keep, NULL);
}

static void on_lost(void *user, bool final)
{
	struct standby *standby = user;

	json_decref(TAKE_PTR(standby->claim));
	if (final)
		standby->keep.on = false;
	detach(standby);
}

static void on_open(void *user)
{
	struct standby *standby = user;
	const struct waiting *waiting = &standby->waiting;

	if (!standby->busy) {
		log_note("waiting for plans at %s as '%s'", waiting->options->nats.url,
			 waiting->name);
		return;
	}
	log_note("run %.8s: connected to NATS again", standby->run);
	relay_attach(&standby->relay, waiting->nats);
	keep_attach(&standby->keep, waiting->nats);
}

/* ---- events ---- */

static uint64_t patience_with_run(const struct standby *standby)
{
	const struct keep *keep = &standby->keep;

	return standby->patience_steps + (keep->on && keep->planned ? KEPT_STEPS : 0);
}

static void watch_run(struct standby *standby)
{
	if (!standby->busy)
		return;
	keep_step(&standby->keep);
	if (standby->keep.on && standby->silent > standby->mute_steps)
		relay_mute(&standby->relay);
	if (standby->piped && !standby->relay.over &&
	    standby->silent++ > patience_with_run(standby)) {
		log_error("run %.8s: nothing was heard of its coordinator", standby->run);
		keep_finish(&standby->keep, "its agent heard nothing of the coordinator");
		relay_end(&standby->relay, "its agent heard nothing of the coordinator");
	}
	if (standby->relay.over && standby->leaving++ >= LEAVE_STEPS)
		kill_agent(standby);
}

static bool on_step(void *user)
{
	struct standby *standby = user;

	watch_run(standby);
	settle(standby);
	return !standby->waiting.over || standby->busy;
}

static void on_ended(void *user, bool again, const char *reason)
{
	struct standby *standby = user;

	if (again)
		standby->keep.on = false;
	if (!standby->busy)
		return;
	keep_finish(&standby->keep, reason);
	relay_end(&standby->relay, reason);
	kill_agent(standby);
}

static bool is_busy(void *user)
{
	return ((const struct standby *)user)->busy;
}

int standby_run(const struct agent_options *options, char **ret_error)
{
	struct standby standby = {.waiting = {.options = options,
					      .owner = {&standby, RELAY_TO_ALL, on_open, on_message,
							on_lost, on_step, on_ended, is_busy}}};
	int err = waiting_run(&standby.waiting, ret_error);

	json_decref(standby.claim);
	keep_clear(&standby.keep);
	relay_clear(&standby.relay);
	return err;
}
