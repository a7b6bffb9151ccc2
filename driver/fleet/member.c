// SPDX-License-Identifier: MIT
/* The coordinator's end of a channel; see member.h and channel.h. */
#include "member.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"

/* A shell's status, also over ssh: there is no such program. */
#define NOT_FOUND 127

#define PINGS 8U

/* The year 2116: differences of two clocks fit into 64 bits, with the length of any run. */
#define WALL_MAX_NS (INT64_MAX / 2)

#define LEAD_NS	    (500 * NSEC_PER_MSEC)
#define LEAD_ROUNDS 4U

static void set_state(struct member *member, enum member_state state)
{
	member->state = state;
	member->owner.changed(member->owner.user, member);
}

/* ---- sending ---- */

struct sending {
	uv_write_t request;
	char *line;
	struct member *member;
};

static void send_plan(struct member *member);

/* Send the next part of the plan once this one has left, so that only one waits in memory. */
static void on_sent(uv_write_t *request, int status)
{
	struct sending *sending = (struct sending *)request;
	struct member *member = sending->member;

	free(sending->line);
	free(sending);
	if (!status && member->state == MEMBER_PLANNED && !member->place.over)
		send_plan(member);
	/* Ignore failures: an agent that no longer reads has ended, which its output reports. */
}

static int send_message(struct member *member, json_t *message)
{
	struct sending *sending = calloc(1, sizeof(*sending));
	char *line = channel_line(message);
	uv_buf_t buffer;
	int err;

	if (!sending || !line) {
		free(sending);
		free(line);
		return -ENOMEM;
	}
	sending->line = line;
	sending->member = member;
	buffer = uv_buf_init(line, (unsigned int)strlen(line));
	err = uv_is_closing((uv_handle_t *)&member->in)
		      ? -EPIPE
		      : uv_write(&sending->request, (uv_stream_t *)&member->in, &buffer, 1,
				 on_sent);
	if (err) {
		free(line);
		free(sending);
	}
	return err;
}

/* ---- received messages ---- */

static void lose(struct member *member, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void lose(struct member *member, const char *format, ...)
{
	va_list args;
	char *reason;

	va_start(args, format);
	reason = text_format_args(format, args);
	va_end(args);
	member_lose(member, reason);
}

static const char *text_of(const json_t *message, const char *name)
{
	const char *text = json_string_value(json_object_get(message, name));

	return text ? text : "(no text)";
}

static void send_plan(struct member *member)
{
	json_t *message = plan_next(member->plan, member->index, member->name, &member->place);
	int err = message ? send_message(member, message) : -ENOMEM;

	if (err)
		lose(member, "the plan could not be sent: %s", strerror(-err));
}

/* Of several pings, the quickest answer bounds best when the other clock was read. */
static void send_ping(struct member *member)
{
	member->pings++;
	member->ping_wall_ns = clock_wall_ns();
	member->ping_ns = clock_now_ns();
	(void)send_message(member,
			   json_pack("{s:s, s:i}", "type", "ping", "number", (int)member->pings));
}

static void begin_timing(struct member *member)
{
	member->pings = 0;
	member->clock_known = false;
	set_state(member, MEMBER_TIMING);
	send_ping(member);
}

static void take_hello(struct member *member, const json_t *message)
{
	json_int_t protocol = json_integer_value(json_object_get(message, "protocol"));
	const char *version = text_of(message, "version");

	if (member->state != MEMBER_STARTING)
		return;
	if (protocol != CHANNEL_PROTOCOL || strcmp(version, SOJOURN_VERSION)) {
		lose(member,
		     "its sojourn-drive is version %s, protocol %" JSON_INTEGER_FORMAT
		     ", this one %s, %d: install the same one",
		     version, protocol, SOJOURN_VERSION, CHANNEL_PROTOCOL);
		return;
	}
	member->silent = 0;
	set_state(member, MEMBER_PLANNED);
	send_plan(member);
}

static void take_ready(struct member *member, const json_t *message)
{
	if (member->state != MEMBER_PLANNED && !member->warming)
		return;
	member->warming = false;
	member->max_rate = (uint64_t)json_integer_value(json_object_get(message, "max_rate"));
	begin_timing(member);
}

static void take_pong(struct member *member, const json_t *message)
{
	uint64_t round_ns = clock_now_ns() - member->ping_ns;
	json_int_t wall_ns = json_integer_value(json_object_get(message, "wall_ns"));

	if (member->state != MEMBER_TIMING)
		return;
	if (wall_ns <= 0 || (uint64_t)wall_ns > WALL_MAX_NS) {
		lose(member, "its clock cannot be: %" JSON_INTEGER_FORMAT " ns since 1970",
		     wall_ns);
		return;
	}
	if (!member->clock_known || round_ns < member->round_ns) {
		member->clock_known = true;
		member->round_ns = round_ns;
		member->offset_ns = wall_ns - (int64_t)(member->ping_wall_ns + round_ns / 2);
	}
	if (member->pings < PINGS)
		send_ping(member);
	else
		set_state(member, MEMBER_READY);
}

/* Convert times of the member's wall clock to the coordinator's. */
static int settle_times(const struct member *member, struct run *run)
{
	struct run_driver *driver = run->driver;
	uint64_t started_ns;
	char *text;

	driver->begin_ns = (uint64_t)((int64_t)driver->begin_ns - member->offset_ns);
	if (!run->started_at || run_parse_time(run->started_at, &started_ns))
		return 0;
	text = run_format_time((uint64_t)((int64_t)started_ns - member->offset_ns));
	if (!text)
		return -ENOMEM;
	free(run->started_at);
	run->started_at = text;
	free(run->host);
	run->host = strdup(member->name);
	return run->host ? 0 : -ENOMEM;
}

static int read_document(struct member *member, const struct channel_document *document,
			 char **ret_error)
{
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	int err = run_from_json(document->text, document->length, &run, ret_error);

	if (err)
		return err;
	if (!run->driver)
		return refuse(ret_error, "there is no driver's part in it");
	err = settle_times(member, run);
	if (err)
		return err;
	run_free(member->run);
	member->run = TAKE_PTR(run);
	return 0;
}

/* A member with an unreadable document is lost, even if it was already. */
static void read_unread(struct member *member)
{
	struct channel_document document = member->unread;
	autofree char *error = NULL;
	int err;

	member->unread = (struct channel_document){0};
	err = read_document(member, &document, &error);
	channel_document_clear(&document);
	if (err)
		lose(member, "its document cannot be read: %s", error ? error : strerror(-err));
}

struct run *member_read(struct member *member)
{
	if (member->unread.text)
		read_unread(member);
	return member->run;
}

uint64_t member_begin_ns(struct member *member)
{
	const struct run *run = member->result.known ? NULL : member_read(member);

	return run ? run->driver->begin_ns : member->result.begin_ns;
}

static void take_document(struct member *member, const json_t *message)
{
	int whole;

	if (member->state != MEMBER_RUNNING)
		return;
	whole = channel_document_add(&member->document, message);
	if (!whole)
		return;
	if (whole < 0) {
		lose(member, "its document cannot be read: %s", strerror(-whole));
		return;
	}
	channel_document_clear(&member->unread);
	member->unread = member->document;
	member->document = (struct channel_document){0};
	if (!json_is_true(json_object_get(message, "final")))
		return;
	read_unread(member);
	if (member_is_over(member))
		return;
	if (member->run->driver->interrupted && !member->stopped)
		lose(member, "its driver was ended by a signal on its host");
	else
		set_state(member, MEMBER_DONE);
}

static void take_refusal(struct member *member, const json_t *message)
{
	lose(member, "it refuses the plan: %s", text_of(message, "reason"));
}

/* As for a single driver that reports an error, earlier counts are no result. */
static void take_error(struct member *member, const json_t *message)
{
	channel_document_clear(&member->unread);
	run_free(TAKE_PTR(member->run));
	lose(member, "%s", text_of(message, "reason"));
}

static void take_failure(struct member *member, const json_t *message)
{
	(void)message;
	member->owner.failed(member->owner.user, member);
}

static void take_silence(struct member *member, const json_t *message)
{
	(void)message;
	lose(member, "this coordinator was silent for too long, so its agent has ended the load");
}

static const struct {
	const char *type;
	void (*take)(struct member *member, const json_t *message);
} kinds[] = {
	{"hello", take_hello},	  {"refused", take_refusal},
	{"ready", take_ready},	  {"pong", take_pong},
	{"beat", NULL},		  {"document", take_document},
	{"failed", take_failure}, {"error", take_error},
	{"silent", take_silence},
};

/*
 * A login shell may print lines before the agent starts, so other lines are an error only after its
 * hello.
 */
static void take_line(struct member *member, const char *line)
{
	autojson json_t *message = channel_parse(line);

	if (member->state != MEMBER_STARTING)
		member->silent = 0;
	for (size_t i = 0; message && i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(channel_type(message), kinds[i].type)) {
			if (kinds[i].take)
				kinds[i].take(member, message);
			return;
		}
	if (member->state == MEMBER_STARTING && *line)
		snprintf(member->printed, sizeof(member->printed), "%s", line);
	else if (member->state != MEMBER_STARTING)
		lose(member, "it sent no valid message: '%.60s'", line);
}

/* ---- the process ---- */

static void on_allocate(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	(void)handle;
	buffer->base = malloc(size);
	buffer->len = buffer->base ? size : 0;
}

/* Keep the last line of its standard error, which mostly says why there is no agent. */
static void keep_last_line(struct member *member, const char *text, ssize_t length)
{
	const char *begin;

	while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
		length--;
	if (length <= 0)
		return;
	begin = memrchr(text, '\n', (size_t)length);
	begin = begin ? begin + 1 : text;
	snprintf(member->said, sizeof(member->said), "%.*s", (int)(length - (begin - text)), begin);
}

/*
 * Read the available bytes only. Waiting for the end could hang, as other processes may hold the
 * pipe (ssh's ControlPersist).
 */
static void drain_errors(struct member *member)
{
	char text[4096];
	ssize_t length;
	int fd;

	if (uv_fileno((uv_handle_t *)&member->errors, &fd))
		return;
	while ((length = read(fd, text, sizeof(text))) > 0)
		keep_last_line(member, text, length);
}

void member_quote(const struct member *member, char ret_text[static MEMBER_QUOTE])
{
	bool printed = member->state == MEMBER_STARTING && *member->printed;

	snprintf(ret_text, MEMBER_QUOTE, "%s%s%s%s", *member->said ? ": " : "", member->said,
		 printed ? ", after printing: " : "", printed ? member->printed : "");
}

static void lose_ended(struct member *member)
{
	bool starting = member->state == MEMBER_STARTING;
	const char *before = starting ? ", before its agent answered" : "";
	char quote[MEMBER_QUOTE];

	drain_errors(member);
	member_quote(member, quote);
	if (member->relayed)
		lose(member, "%s%s", member->said, before);
	else if (member->signal)
		lose(member, "its process was ended by signal %d (%s)%s%s", member->signal,
		     strsignal(member->signal), before, quote);
	else
		lose(member, "its process ended with status %" PRId64 "%s%s%s", member->status,
		     before, quote,
		     starting && member->status == NOT_FOUND
			     ? "; --agent-program says where the driver is on its host"
			     : "");
}

/* Read all output of an ended process before judging its end. */
static void look_at_end(struct member *member)
{
	if (member->ended && member->out_ended && !member_is_over(member))
		lose_ended(member);
}

static void on_output(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct member *member = stream->data;
	int err = 0;

	if (length > 0)
		err = channel_lines_add(&member->lines, buffer->base, (size_t)length);
	free(buffer->base);
	if (err)
		lose(member, "it sent no valid message: %s", strerror(-err));
	for (char *line; (line = channel_lines_take(&member->lines)); free(line))
		if (!member_is_over(member))
			take_line(member, line);
	if (length >= 0)
		return;
	uv_read_stop(stream);
	member->out_ended = true;
	member->silent = 0;
	look_at_end(member);
}

static void on_errors(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	if (length < 0)
		uv_read_stop(stream);
	keep_last_line(stream->data, buffer->base, length);
	free(buffer->base);
}

static void on_exit_of(uv_process_t *process, int64_t status, int signal)
{
	struct member *member = process->data;

	member->ended = true;
	member->status = status;
	member->signal = signal;
	look_at_end(member);
}

static int open_pipes(struct member *member, uv_loop_t *loop)
{
	uv_pipe_t *pipes[] = {&member->in, &member->out, &member->errors};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pipes) && !err; i++) {
		err = uv_pipe_init(loop, pipes[i], 0);
		pipes[i]->data = member;
	}
	return err;
}

/*
 * Start it in a session of its own: Ctrl-C at the terminal reaches the coordinator only, which ends
 * the members in order.
 */
static int spawn(struct member *member, uv_loop_t *loop, char **argv)
{
	uv_stdio_container_t streams[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		 .data.stream = (uv_stream_t *)&member->in},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&member->out},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&member->errors},
	};
	const uv_process_options_t options = {
		.file = argv[0],
		.args = argv,
		.exit_cb = on_exit_of,
		.flags = UV_PROCESS_DETACHED,
		.stdio = streams,
		.stdio_count = ARRAY_SIZE(streams),
	};

	member->process.data = member;
	return uv_spawn(loop, &member->process, &options);
}

int member_start(struct member *member, uv_loop_t *loop, char **argv)
{
	int err = open_pipes(member, loop);

	if (err)
		return err;
	err = spawn(member, loop, argv);
	if (err) {
		lose(member, "'%s' cannot be started: %s", argv[0], strerror(-err));
		return 0;
	}
	member->spawned = true;
	uv_read_start((uv_stream_t *)&member->out, on_allocate, on_output);
	uv_read_start((uv_stream_t *)&member->errors, on_allocate, on_errors);
	return 0;
}

/* ---- the relay ---- */

int member_attach(struct member *member, uv_loop_t *loop, int out_fd, int in_fd)
{
	int err = open_pipes(member, loop);

	if (!err)
		err = uv_pipe_open(&member->out, out_fd);
	if (!err)
		err = uv_pipe_open(&member->in, in_fd);
	if (!err)
		err = uv_read_start((uv_stream_t *)&member->out, on_allocate, on_output);
	member->relayed = !err;
	return err;
}

void member_detach(struct member *member, const char *reason)
{
	snprintf(member->said, sizeof(member->said), "%s", reason);
	member->ended = true;
	look_at_end(member);
}

/* ---- sent messages ---- */

void member_rest(struct member *member)
{
	if (member->state == MEMBER_LOST)
		return;
	run_free(TAKE_PTR(member->run));
	run_strings_free(TAKE_PTR(member->result.sources));
	free(TAKE_PTR(member->result.limited));
	member->result = (struct member_result){0};
	channel_document_clear(&member->unread);
	member->stopped = false;
	member->silent = 0;
	member->state = MEMBER_READY;
	look_at_end(member);
}

void member_step(struct member *member, json_t *message)
{
	int err = send_message(member, message);

	member->pings = 0;
	member->clock_known = false;
	member->state = MEMBER_PLANNED;
	if (err)
		lose(member, "the step could not be sent: %s", strerror(-err));
}

void member_compare(struct member *member)
{
	if (member->state == MEMBER_READY)
		begin_timing(member);
}

void member_begin(struct member *member, uint64_t at_ns, bool warming)
{
	member->warming = warming;
	set_state(member, MEMBER_RUNNING);
	(void)send_message(member, json_pack("{s:s, s:I}", "type", "start", "at_ns",
					     (json_int_t)at_ns + member->offset_ns));
}

void member_beat(struct member *member)
{
	if (member->place.over && !member_is_over(member))
		(void)send_message(member, json_pack("{s:s}", "type", "beat"));
}

void member_deal(struct member *member, uint64_t number, uint32_t index, uint32_t count)
{
	(void)send_message(member, json_pack("{s:s, s:I, s:i, s:i}", "type", "deal", "number",
					     (json_int_t)number, "member", (int)index, "members",
					     (int)count));
}

void member_stop(struct member *member)
{
	if (member_is_over(member) || member->stopped)
		return;
	member->stopped = true;
	(void)send_message(member, json_pack("{s:s}", "type", "stop"));
}

void member_leave(struct member *member)
{
	if (!uv_is_closing((uv_handle_t *)&member->in))
		uv_close((uv_handle_t *)&member->in, NULL);
}

void member_kill(struct member *member)
{
	if (member->spawned && !member->ended)
		kill(-member->process.pid, SIGKILL);
}

void member_lose(struct member *member, char *reason)
{
	if (member_is_over(member)) {
		free(reason);
		return;
	}
	member->reason = reason;
	member_leave(member);
	member_kill(member);
	set_state(member, MEMBER_LOST);
}

bool member_is_silent(struct member *member, unsigned int steps)
{
	return member->silent++ >= steps;
}

uint64_t member_lead_ns(const struct member *members, uint32_t count)
{
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!member_is_over(&members[i]) && members[i].round_ns > longest_ns)
			longest_ns = members[i].round_ns;
	return LEAD_NS + LEAD_ROUNDS * longest_ns;
}

void member_clear(struct member *member)
{
	run_free(member->run);
	free(member->reason);
	nats_input_clear(&member->lines);
	channel_document_clear(&member->document);
	channel_document_clear(&member->unread);
	run_strings_free(member->result.sources);
	free(member->result.limited);
	*member = (struct member){0};
}
