// SPDX-License-Identifier: MIT
/* Messages from options and back; see plan.h. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load/share.h"
#include "options/rows.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "sojourn/write_all.h"

/* A scenario's own, two of each of its steps, and some of the command line. */
#define FILES_MAX     (2 * SCENARIO_STEPS_MAX + 9)
#define FILE_MAX      ((size_t)64 << 20)
#define FILES_BYTES   ((size_t)512 << 20) /* of all */
#define ARGUMENTS_MAX 4096U

#define PATIENCE_MAX_MS 86400000

/* A file's part in base64: 4 characters for 3 bytes. */
#define PART_BYTES    ((size_t)CHANNEL_PART / 4 * 3)
#define ENCODED(size) (((size) + 2) / 3 * 4)

/* ---- what can be divided ---- */

static int check_count(const char *option, uint64_t value, uint32_t members, char **ret_error)
{
	if (!value || value >= members)
		return 0;
	return refuse(ret_error,
		      "--%s: %" PRIu64 " cannot be divided between %u members, each needs at "
		      "least 1; use fewer members, or more of them",
		      option, value, members);
}

static int check_observer(const struct options *options, char **ret_error)
{
	if (!observer_is_given(&options->run.observers) || !options->load.cooldown_ns)
		return 0;
	return refuse(ret_error,
		      "--observer: with --cool-down the coordinator does not know to the request "
		      "when all members end to measure; leave one of the two out");
}

static uint64_t largest_of(const struct ladder *ladder)
{
	return ladder->count ? ladder->loads[ladder->count - 1] : 0;
}

int plan_check(const struct options *options, uint32_t members, char **ret_error)
{
	const struct load_settings *load = &options->load;
	uint64_t largest = largest_of(&options->ladder);
	/* Each step has its own connections, and as many threads as these allow. */
	bool of_connections = options->command == COMMAND_SWEEP && !options->ladder.of_rates;
	int err;

	if (options->link.sources.count && options->link.sources.count < members)
		return refuse(ret_error,
			      "--source: %zu address%s cannot be divided between %u members, each "
			      "needs one of its own host; name more of them, or leave it out",
			      options->link.sources.count,
			      options->link.sources.count > 1 ? "es" : "", members);
	if (options->command == COMMAND_SWEEP && largest < members)
		return refuse(ret_error,
			      "--ladder: its largest load, %" PRIu64
			      ", cannot be divided between %u members, each needs at least 1; use "
			      "fewer members, or more load",
			      largest, members);
	if (!of_connections && load->connections < members * options->run.threads)
		return refuse(ret_error,
			      "--connections: %u cannot be divided between %u members of %u "
			      "thread%s each; every thread needs a connection",
			      load->connections, members, options->run.threads,
			      options->run.threads > 1 ? "s" : "");
	err = check_count("requests", load->requests, members, ret_error);
	if (!err)
		err = check_count("rate", load->schedule.rate, members, ret_error);
	if (!err)
		err = check_count("connect-rate", options->link.policy.connect_rate, members,
				  ret_error);
	return err ? err : check_observer(options, ret_error);
}

/* ---- made ---- */

static bool is_in(const struct cli_table *table, const struct cli_option *option)
{
	return option >= table->rows && option < table->rows + table->count;
}

/* Options of the report, of the observer and of the start are for the coordinator only. */
static bool is_for_members(const struct cli_option *option)
{
	static const char *const also[] = {"interval", "fail-fast"};
	static const char *const not[] = {"start-at", "wait-for"};

	for (size_t i = 0; i < ARRAY_SIZE(also); i++)
		if (!strcmp(option->name, also[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(not); i++)
		if (!strcmp(option->name, not[i]))
			return false;
	return !is_in(&option_output, option) && !is_in(&option_observer, option);
}

/* A pipe cannot be read a second time: checking the options has emptied it. */
static int check_file(const char *name, const char *path, char **ret_error)
{
	struct stat status;

	if (stat(path, &status) || S_ISREG(status.st_mode))
		return 0;
	return refuse(ret_error,
		      "--%s: '%s' is no regular file; its content is sent to each member, so give "
		      "one that can be read again",
		      name, path);
}

static int check_size(const struct plan *plan, const char *name, const char *path, char **ret_error)
{
	size_t sum = 0;

	for (size_t i = 0; i < plan->file_count; i++)
		sum += plan->files[i].length;
	if (sum <= FILES_BYTES)
		return 0;
	return refuse(ret_error,
		      "--%s: with '%s' the files to be sent to each member exceed %zu MiB together",
		      name, path, FILES_BYTES >> 20);
}

static int read_file(struct plan *plan, const char *name, const char *path, char **ret_error)
{
	struct plan_file *file;
	int err = check_file(name, path, ret_error);

	if (err)
		return err;
	file = ARRAY_APPEND(plan->files, plan->file_count);
	if (!file)
		return -ENOMEM;
	err = option_read_file(name, path, FILE_MAX, &file->bytes, &file->length, ret_error);
	return err ? err : check_size(plan, name, path, ret_error);
}

/* Messages about files call their keys options. */
static int add_scenario_file(struct plan *plan, const char *key, const char *path, char **ret_error)
{
	autofree char *error = NULL;
	int err = read_file(plan, key, path, &error);
	json_t *name;

	if (err)
		return error ? refuse(ret_error, "%s", error + 2) : err;
	name = json_string(path);
	if (!name)
		return refuse(ret_error,
			      "%s: the name '%s' is no UTF-8, in which it is sent to the members",
			      key, path);
	return json_array_append_new(plan->paths, name) ? -ENOMEM : 0;
}

static int add_scenario(struct plan *plan, const struct scenario *scenario, char **ret_error)
{
	int err;

	if (*scenario->path == '-')
		return refuse(ret_error,
			      "run: '%s' looks like an option to the members; write ./%s",
			      scenario->path, scenario->path);
	err = add_scenario_file(plan, "run", scenario->path, ret_error);
	for (size_t i = 0; i < scenario->file_count && !err; i++)
		err = add_scenario_file(plan, scenario->files[i].key, scenario->files[i].path,
					ret_error);
	return err;
}

/* "--rate=5", or {"option": "--rows=", "file": 0}. */
static int add_use(struct plan *plan, const struct cli_use *use, char **ret_error)
{
	const char *mark = use->option->file, *name = use->option->name;
	json_t *argument;
	int err;

	if (!use->value) {
		argument = json_sprintf("--%s", name);
	} else if (mark && !strncmp(use->value, mark, strlen(mark))) {
		err = read_file(plan, name, use->value + strlen(mark), ret_error);
		if (err)
			return err;
		argument = json_pack("{s:o, s:i}", "option", json_sprintf("--%s=%s", name, mark),
				     "file", (int)plan->file_count - 1);
	} else {
		argument = json_sprintf("--%s=%s", name, use->value);
	}
	if (!argument)
		return refuse(ret_error,
			      "--%s: its value is no UTF-8, in which it is sent to the members; "
			      "give it in a file",
			      name);
	return json_array_append_new(plan->arguments, argument) ? -ENOMEM : 0;
}

static int add_words(struct plan *plan, const struct cli_words *words, int first, char **ret_error)
{
	for (int i = first; i < words->count; i++) {
		json_t *word = json_string(words->list[i]);

		if (!word)
			return refuse(ret_error,
				      "'%s' is no UTF-8, in which it is sent to the members",
				      words->list[i]);
		if (json_array_append_new(plan->arguments, word))
			return -ENOMEM;
	}
	return 0;
}

int plan_make(const struct options *options, const struct scenario *scenario, uint32_t members,
	      struct plan *ret_plan, char **ret_error)
{
	struct plan plan = {.arguments = json_array(), .paths = json_array(), .members = members};
	bool run = options->command == COMMAND_RUN;
	int err = plan.arguments && plan.paths ? 0 : -ENOMEM;

	if (!err && run)
		err = add_scenario(&plan, scenario, ret_error);

	plan.sweep = options->command == COMMAND_SWEEP;
	plan.pauses = observer_is_given(&options->run.observers);
	if (!plan.sweep) /* single exchanges of a sweep are not joined */
		plan.samples = (options->run.samples + members - 1) / members;
	for (size_t i = 0; i < options->words.use_count && !err; i++)
		if (is_for_members(options->words.uses[i].option))
			err = add_use(&plan, &options->words.uses[i], ret_error);
	if (!err)
		err = add_words(&plan, &options->words, run, ret_error);
	if (err)
		plan_clear(&plan);
	else
		*ret_plan = plan;
	return err;
}

void plan_clear(struct plan *plan)
{
	json_decref(plan->arguments);
	json_decref(plan->paths);
	for (size_t i = 0; i < plan->file_count; i++)
		free(plan->files[i].bytes);
	free(plan->files);
	*plan = (struct plan){0};
}

static json_t *file_part(size_t number, const char *bytes, size_t length)
{
	autofree char *encoded = malloc(ENCODED(length) + 1);

	if (!encoded)
		return NULL;
	EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)bytes, (int)length);
	return json_pack("{s:s, s:i, s:i, s:s}", "type", "file", "file", (int)number, "length",
			 (int)length, "base64", encoded);
}

static json_t *next_part(const struct plan *plan, struct plan_place *place)
{
	const struct plan_file *file = &plan->files[place->file];
	size_t left = file->length - place->at, length = left < PART_BYTES ? left : PART_BYTES;
	json_t *message = file_part(place->file, file->bytes + place->at, length);

	place->at += length;
	if (place->at == file->length)
		*place = (struct plan_place){.file = place->file + 1};
	return message;
}

json_t *plan_next(const struct plan *plan, uint32_t index, const char *name,
		  struct plan_place *place)
{
	json_t *message;

	if (place->over)
		return NULL;
	if (place->file < plan->file_count)
		return next_part(plan, place);
	message =
		json_pack("{s:s, s:O, s:O, s:b, s:b, s:b, s:i, s:i, s:i, s:s, s:I}", "type", "plan",
			  "arguments", plan->arguments, "paths", plan->paths, "sweep", plan->sweep,
			  "pauses", plan->pauses, "kept", plan->kept, "member", (int)index,
			  "members", (int)plan->members, "samples", (int)plan->samples, "name",
			  name, "patience_ms", (json_int_t)(plan->patience_ns / NSEC_PER_MSEC));
	place->over = message != NULL;
	return message;
}

/* ---- the steps of a sweep ---- */

static uint32_t lower_of(uint64_t a, uint64_t b)
{
	return (uint32_t)(a < b ? a : b);
}

struct plan_step plan_step_of(const struct load_settings *load, const struct run_settings *run,
			      uint32_t members)
{
	struct plan_step step = {.load = load, .keep_trying = run->keep_trying};

	step.members = lower_of(members, load->connections);
	if (load->schedule.rate)
		step.members = lower_of(step.members, load->schedule.rate);
	step.threads = lower_of(run->threads, load->connections / step.members);
	return step;
}

json_t *plan_step_message(const struct plan_step *step, uint32_t index)
{
	const struct load_settings *load = step->load;

	return json_pack("{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:b}", "type", "step", "member",
			 (int)index, "members", (int)step->members, "threads", (int)step->threads,
			 "connections", (json_int_t)load->connections, "rate",
			 (json_int_t)load->schedule.rate, "warmup_ns", (json_int_t)load->warmup_ns,
			 "interval_ns", (json_int_t)load->interval_ns, "keep_trying",
			 step->keep_trying);
}

/* ---- taken ---- */

static int refuse_message(const char *type, char **ret_error)
{
	return refuse(ret_error, "the coordinator's message '%s' is not understood", type);
}

static int open_file(struct plan_inbox *inbox)
{
	int *file = ARRAY_APPEND(inbox->files, inbox->file_count);

	if (!file)
		return -ENOMEM;
	*file = memfd_create("sojourn-plan", MFD_CLOEXEC);
	if (*file >= 0)
		return 0;
	inbox->file_count--;
	return -errno;
}

/* Parts arrive in order, one file after the other. */
int plan_take_file(struct plan_inbox *inbox, const json_t *message, char **ret_error)
{
	uint64_t number = (uint64_t)json_integer_value(json_object_get(message, "file"));
	uint64_t length = (uint64_t)json_integer_value(json_object_get(message, "length"));
	const json_t *text = json_object_get(message, "base64");
	size_t size = json_string_length(text);
	autofree unsigned char *bytes = malloc(size + 1);
	int err = 0;

	if (!bytes)
		return -ENOMEM;
	if (number > inbox->file_count || number >= FILES_MAX || size % 4 ||
	    length > size / 4 * 3 || size / 4 * 3 - length > 2 ||
	    EVP_DecodeBlock(bytes, (const unsigned char *)(size ? json_string_value(text) : ""),
			    (int)size) < 0)
		return refuse_message("file", ret_error);
	if (number == inbox->file_count)
		err = open_file(inbox);
	inbox->file_bytes += length;
	if (!err && ((uint64_t)lseek(inbox->files[number], 0, SEEK_CUR) + length > FILE_MAX ||
		     inbox->file_bytes > FILES_BYTES))
		return refuse_message("file", ret_error);
	return err ? err : write_all(inbox->files[number], bytes, length, NULL);
}

/*
 * Return whether @text is "--name", "--name=VALUE" or a URL, as coordinators send them. @file: its
 * value is a file that was sent along. No such argument writes a file on this host, reads another
 * one, or connects to anything but the targets.
 */
static bool is_argument(const char *text, bool file)
{
	const char *name = text + 2, *value = strchr(text, '=');
	const struct cli_option *option;

	if (*text != '-')
		return !file && strchr(text, ':');
	if (text[1] != '-')
		return false;
	option = options_row(name, value ? (size_t)(value - name) : strlen(name));
	if (!option || !is_for_members(option) || !option->argument != !value)
		return false;
	if (file)
		return value && option->file && !strcmp(value + 1, option->file);
	return !value || !option->file ||
	       strncmp(value + 1, option->file, strlen(option->file)) != 0;
}

/* An argument that names a file names its descriptor at the member. */
static char *argument_of(const struct plan_inbox *inbox, const json_t *json)
{
	const json_t *file = json_object_get(json, "file");
	const char *text =
		json_string_value(json_is_string(json) ? json : json_object_get(json, "option"));
	uint64_t number = (uint64_t)json_integer_value(file);

	if (!text || !is_argument(text, json_is_object(json)))
		return NULL;
	if (json_is_string(json))
		return strdup(text);
	if (!json_is_integer(file) || number >= inbox->file_count)
		return NULL;
	return text_format("%s/proc/self/fd/%d", text, inbox->files[number]);
}

static int add_argument(struct plan_inbox *inbox, const char *text)
{
	char *argument = strdup(text);

	if (argument)
		inbox->argv[inbox->argc++] = argument;
	return argument ? 0 : -ENOMEM;
}

static int take_paths(struct plan_inbox *inbox, const json_t *paths, char **ret_error)
{
	size_t count = json_array_size(paths);
	struct scenario_sent_file *list = calloc(count + 1, sizeof(*list));
	int err = list ? 0 : -ENOMEM;

	inbox->sent.list = list;
	if (count > inbox->file_count)
		return refuse_message("plan", ret_error);
	for (; inbox->sent.count < count && !err; inbox->sent.count++) {
		struct scenario_sent_file *file = &list[inbox->sent.count];
		const char *path = json_string_value(json_array_get(paths, inbox->sent.count));

		if (!path || !*path || *path == '-')
			return refuse_message("plan", ret_error);
		file->path = strdup(path);
		file->own = text_format("/proc/self/fd/%d", inbox->files[inbox->sent.count]);
		err = file->path && file->own ? 0 : -ENOMEM;
	}
	return err;
}

/* "sojourn-drive", "sojourn-drive sweep" or "sojourn-drive run FILE". */
static int begin_arguments(struct plan_inbox *inbox)
{
	const char *path = inbox->sent.count ? inbox->sent.list[0].path : NULL;
	int err = add_argument(inbox, "sojourn-drive");

	if (!err && inbox->sweep)
		err = add_argument(inbox, "sweep");
	if (!err && path)
		err = add_argument(inbox, "run");
	if (!err && path)
		err = add_argument(inbox, path);
	return err;
}

static int take_arguments(struct plan_inbox *inbox, const json_t *arguments, char **ret_error)
{
	size_t count = json_array_size(arguments);
	int err;

	if (!json_is_array(arguments) || count > ARGUMENTS_MAX ||
	    (inbox->sweep ? inbox->sent.count : 0) || (!count && !inbox->sent.count))
		return refuse_message("plan", ret_error);
	inbox->argv = calloc(count + 4, sizeof(*inbox->argv));
	if (!inbox->argv)
		return -ENOMEM;
	err = begin_arguments(inbox);
	if (err)
		return err;
	for (size_t i = 0; i < count; i++) {
		char *argument = argument_of(inbox, json_array_get(arguments, i));

		if (!argument)
			return refuse_message("plan", ret_error);
		inbox->argv[inbox->argc++] = argument;
	}
	return 0;
}

/* The load is that of the whole run: reduce it to this member's share. */
static void take_share(const struct plan_inbox *inbox, struct options *options, uint32_t index,
		       uint32_t count)
{
	uint32_t all = options->load.connections;

	options->load.member = (struct load_member){index, count, all, NULL};
	options->load.connections = share_of_driver(all, options->run.threads, count, index);
	options->load.requests = share_of_count(options->load.requests, count, index);
	options->link.policy.connect_rate = share_of_count(inbox->connect_rate, count, index);
}

/*
 * Of a sweep keep the largest step. Its longest warm-up is before the last attempt to measure it.
 */
static void keep_whole(struct plan_inbox *inbox, struct options *options, uint32_t members)
{
	struct load_settings *load = &options->load;

	if (inbox->sweep && options->ladder.of_rates)
		schedule_set_rate(&load->schedule, largest_of(&options->ladder));
	else if (inbox->sweep)
		load->connections = (uint32_t)largest_of(&options->ladder);
	if (inbox->sweep)
		load->warmup_ns <<= LADDER_ATTEMPTS - 1;
	inbox->members = members;
	inbox->threads = options->run.threads;
	inbox->connect_rate = options->link.policy.connect_rate;
	inbox->load = *load;
}

/*
 * No step has more connections than the ladder. At 75 % of the plateau it has a rate even in a sweep
 * over connections.
 */
int plan_take_step(const struct plan_inbox *inbox, const json_t *message, struct options *options,
		   char **ret_error)
{
	json_int_t index = json_integer_value(json_object_get(message, "member"));
	json_int_t members = json_integer_value(json_object_get(message, "members"));
	json_int_t threads = json_integer_value(json_object_get(message, "threads"));
	json_int_t connections = json_integer_value(json_object_get(message, "connections"));
	json_int_t rate = json_integer_value(json_object_get(message, "rate"));
	json_int_t warmup_ns = json_integer_value(json_object_get(message, "warmup_ns"));
	json_int_t interval_ns = json_integer_value(json_object_get(message, "interval_ns"));

	if (index < 0 || index >= members || members > inbox->members || threads < 1 ||
	    threads > inbox->threads || connections < members * threads ||
	    connections > inbox->load.connections || rate < 0 || warmup_ns < 0 || interval_ns < 1)
		return refuse_message("step", ret_error);
	options->load = inbox->load;
	options->load.connections = (uint32_t)connections;
	options->load.warmup_ns = (uint64_t)warmup_ns;
	options->load.interval_ns = (uint64_t)interval_ns;
	if (rate)
		schedule_set_rate(&options->load.schedule, (uint64_t)rate);
	options->run.threads = (uint32_t)threads;
	options->run.keep_trying = json_is_true(json_object_get(message, "keep_trying"));
	take_share(inbox, options, (uint32_t)index, (uint32_t)members);
	return 0;
}

int plan_take_patience(const json_t *message, uint64_t *ret_ns, char **ret_error)
{
	json_int_t ms = json_integer_value(json_object_get(message, "patience_ms"));

	if (ms < 1 || ms > PATIENCE_MAX_MS)
		return refuse_message("plan", ret_error);
	*ret_ns = (uint64_t)ms * NSEC_PER_MSEC;
	return 0;
}

int plan_take(struct plan_inbox *inbox, const json_t *message, struct options *ret_options,
	      struct scenario **ret_scenario, char **ret_error)
{
	json_int_t index = json_integer_value(json_object_get(message, "member"));
	json_int_t count = json_integer_value(json_object_get(message, "members"));
	json_int_t samples = json_integer_value(json_object_get(message, "samples"));
	int err;

	inbox->sweep = json_is_true(json_object_get(message, "sweep"));
	inbox->pauses = json_is_true(json_object_get(message, "pauses"));
	err = take_paths(inbox, json_object_get(message, "paths"), ret_error);
	if (!err)
		err = take_arguments(inbox, json_object_get(message, "arguments"), ret_error);
	if (err)
		return err;
	if (count < 1 || count > UINT16_MAX || index < 0 || index >= count || samples < 0)
		return refuse_message("plan", ret_error);
	err = scenario_of_command((int)inbox->argc, inbox->argv, &inbox->sent, ret_options,
				  ret_scenario, ret_error);
	if (err) {
		*ret_scenario = NULL;
		return err;
	}
	err = plan_check(ret_options, (uint32_t)count, ret_error);
	if (err)
		return err;
	keep_whole(inbox, ret_options, (uint32_t)count);
	take_share(inbox, ret_options, (uint32_t)index, (uint32_t)count);
	source_keep_share(&ret_options->link.sources, (uint32_t)index, (uint32_t)count);
	for (size_t i = 0; i < (*ret_scenario)->step_count; i++)
		(*ret_scenario)->steps[i].request.numbers =
			(struct request_numbers){(uint32_t)index, (uint32_t)count};
	ret_options->run.quiet = true;
	ret_options->run.start = (struct start_spec){0}; /* a scenario's is the coordinator's */
	ret_options->run.samples = samples < UINT16_MAX ? (uint32_t)samples : UINT16_MAX;
	ret_options->link.sampling = samples != 0;
	return 0;
}

void plan_inbox_clear(struct plan_inbox *inbox)
{
	for (size_t i = 0; i < inbox->file_count; i++)
		close(inbox->files[i]);
	free(inbox->files);
	for (size_t i = 0; i < inbox->argc; i++)
		free(inbox->argv[i]);
	free(inbox->argv);
	for (size_t i = 0; inbox->sent.list && i <= inbox->sent.count; i++) {
		free(inbox->sent.list[i].path);
		free(inbox->sent.list[i].own);
	}
	free(inbox->sent.list);
	*inbox = (struct plan_inbox){0};
}
