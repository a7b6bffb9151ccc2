// SPDX-License-Identifier: MIT
/*
 * The coordinator. Members get ready, each at its own pace, and then begin at one time. The loop
 * runs until each has sent its result or is lost. Neighbours: member.c (one member), plan.c (its
 * share), result.c (their sum).
 */
#include "fleet.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "deal.h"
#include "fleet/channel/plan.h"
#include "member.h"
#include "muster.h"
#include "result.h"
#include "run/observers.h"
#include "run/start.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "sojourn/units.h"
#include "transport/loop.h"
#include "view.h"

#define WATCH_MS 250U /* also the interval of beats to the members */

/* Time for a login over the network. */
#define HELLO_NS (60 * NSEC_PER_SEC)
/* For the record and the roll before --start-at. */
#define ROLL_NS (2 * NSEC_PER_SEC)
/* The end of an agent's output precedes that of its process, which says more. */
#define END_NS (2 * NSEC_PER_SEC)
/* An agent whose channel has closed ends at once, unless its host hangs. */
#define LEAVE_MS 2000U

/* Standard streams, the loop's, the observer's; pipes of each member, and their other ends. */
#define FILES_BASE     64U
#define FILES_OF_SPAWN 3U
#define FILES_OF_RELAY 4U

struct fleet {
	const struct fleet_options *fleet;
	const struct options *options;
	const struct scenario *scenario;
	/* Of this run; in a sweep those of its step: */
	const struct load_settings *load;
	const struct run_settings *run;
	uint32_t threads; /* of each member */
	uint32_t parts;	  /* how many members take part, the first ones */
	uv_loop_t loop;
	uv_timer_t watch, leave;
	uv_signal_t signals[2];
	uv_signal_t resized;
	struct plan plan;
	struct muster *muster; /* NULL: a command reaches the members */
	struct kept *kept;
	struct member *members;
	uint32_t count;
	struct fleet_sum sum;	     /* of members with a result */
	uint64_t begin_ns;	     /* start time of the members, by the wall clock */
	uint64_t beat_ns;	     /* when the members were last sent a beat */
	bool running;		     /* members have their start time */
	bool warmed;		     /* they have warmed up, and wait for a second one */
	struct observers *observers; /* NULL: none */
	bool interrupted;	     /* by a signal */
	bool cut;		     /* ended early, by the user or after the loss of a member */
	struct fleet_view view;
	char *what;		   /* what is loaded, for people */
	const struct member *lost; /* the first one; NULL: none */
	char *loss;		   /* how a step of a sweep lost it */
};

int fleet_check(const struct fleet_options *fleet, const struct options *options,
		const struct scenario *scenario, char **ret_error)
{
	struct plan plan = {0};
	int err;

	if (options->command == COMMAND_SWEEP && fleet->on_loss == FLEET_LOSS_CONTINUE)
		return refuse(ret_error, "--on-loss: a step of a sweep is a load of all members, "
					 "so the sweep ends at the loss of one; leave it out");
	err = plan_check(options, fleet->members, ret_error);
	if (!err)
		err = plan_make(options, scenario, fleet->members, &plan, ret_error);
	plan_clear(&plan);
	return err;
}

static bool are_all(const struct fleet *fleet, bool (*is)(const struct member *))
{
	for (uint32_t i = 0; i < fleet->count; i++)
		if (!is(&fleet->members[i]))
			return false;
	return true;
}

static bool is_ready(const struct member *member)
{
	return member->state == MEMBER_READY;
}

/* In a small step of a sweep some have no part. */
static bool has_stopped(const struct member *member)
{
	return member->state != MEMBER_RUNNING;
}

static void beat_all(struct fleet *fleet)
{
	fleet->beat_ns = clock_now_ns();
	for (uint32_t i = 0; i < fleet->count; i++)
		member_beat(&fleet->members[i]);
}

/*
 * Call after each document: a thousand take seconds to read in one turn of the loop, and members
 * that hear nothing end.
 */
static void beat_if_due(struct fleet *fleet)
{
	if (clock_now_ns() - fleet->beat_ns >= WATCH_MS * NSEC_PER_MSEC)
		beat_all(fleet);
}

static void stop_all(struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->count; i++)
		member_stop(&fleet->members[i]);
}

/* ---- events ---- */

/*
 * Before the start all members must be ready. After it, the loss of one may end the run of the
 * others.
 */
static void on_changed(void *user, struct member *member)
{
	struct fleet *fleet = user;

	/* A member that the user has stopped while it warmed up has no result to send. */
	if (member->state == MEMBER_LOST && !fleet->lost &&
	    !(fleet->interrupted && member->stopped))
		fleet->lost = member;
	if (!fleet->running) {
		if (member->state == MEMBER_LOST || are_all(fleet, is_ready))
			uv_stop(&fleet->loop);
		return;
	}
	if (member->state == MEMBER_DONE) {
		fleet_sum_add(&fleet->sum, member);
		beat_if_due(fleet);
	}
	if (member->state == MEMBER_LOST && fleet->fleet->on_loss == FLEET_LOSS_STOP) {
		fleet->cut = true;
		stop_all(fleet);
	} else if (member->state == MEMBER_LOST && !fleet->cut) {
		deal_again(fleet->members, fleet->count, member, fleet->load,
			   fleet->warmed || !fleet->load->warmup_ns ? fleet->begin_ns : 0);
	}
	if (are_all(fleet, has_stopped))
		uv_stop(&fleet->loop);
}

static void on_failed(void *user, struct member *member)
{
	(void)member;
	stop_all(user);
}

/* On the second signal die at once, as the user expects. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct fleet *fleet = handle->data;

	if (fleet->interrupted) {
		fleet_view_close(&fleet->view);
		for (uint32_t i = 0; i < fleet->count; i++)
			member_kill(&fleet->members[i]);
		signal(number, SIG_DFL);
		raise(number);
	}
	fleet->interrupted = true;
	fleet->cut = true;
	if (fleet->running)
		stop_all(fleet);
	else
		uv_stop(&fleet->loop);
}

static void on_resize(uv_signal_t *handle, int number)
{
	struct fleet *fleet = handle->data;

	(void)number;
	progress_resize(&fleet->view.progress);
}

/* Return how long nothing may be heard of a member, and the name of such a silence. */
static uint64_t patience_with(const struct fleet *fleet, const struct member *member,
			      const char **ret_name)
{
	if (member->out_ended) {
		*ret_name = "its output has ended, and its process goes on";
		return END_NS;
	}
	*ret_name = member->state == MEMBER_STARTING ? "its agent did not answer"
						     : "nothing was heard of it";
	return member->state == MEMBER_STARTING ? HELLO_NS : fleet->fleet->lost_after_ns;
}

static void lose_silent(const struct fleet *fleet, struct member *member)
{
	const char *name;
	uint64_t limit_ns = patience_with(fleet, member, &name);
	char time[32], quote[MEMBER_QUOTE] = "";

	if (member_is_over(member) ||
	    !member_is_silent(member, (unsigned int)(limit_ns / NSEC_PER_MSEC / WATCH_MS)))
		return;
	units_format_duration((double)limit_ns, time, sizeof(time));
	if (member->state == MEMBER_STARTING)
		member_quote(member, quote);
	member_lose(member, text_format("%s for %s%s", name, time, quote));
}

/*
 * Count steps, not time. If the coordinator itself was stopped, the messages of members are still
 * unread, and no member was silent.
 */
static void on_watch(uv_timer_t *timer)
{
	struct fleet *fleet = timer->data;

	for (uint32_t i = 0; i < fleet->count; i++)
		lose_silent(fleet, &fleet->members[i]);
	beat_all(fleet);
}

/* ---- the run ---- */

/* Many documents are read in one turn of the loop. */
static void beat_between(void *user)
{
	beat_if_due(user);
}

static void open_view(struct fleet *fleet)
{
	struct fleet_view *view = &fleet->view;

	view->members = fleet->members;
	view->count = fleet->count;
	view->parts = fleet->parts;
	view->sum = &fleet->sum;
	view->load = fleet->load;
	view->between = beat_between;
	view->user = fleet;
	fleet_view_open(view, fleet->run, fleet->what);
}

static int start_member(struct fleet *fleet, uint32_t index)
{
	struct member *member = &fleet->members[index];
	char **command;
	int err;

	member->index = index;
	member->plan = &fleet->plan;
	member->owner = (struct member_owner){fleet, on_changed, on_failed};
	if (fleet->muster)
		return muster_attach(fleet->muster, index, member);
	command = fleet_options_command(fleet->fleet, member->name);
	err = command ? member_start(member, &fleet->loop, command) : -ENOMEM;
	run_strings_free(command);
	return err;
}

static int check_gathered(const struct fleet *fleet, char **ret_error)
{
	const struct member *lost = fleet->lost;

	if (lost)
		return refuse(ret_error, "%s: %s; nothing was %s%s", lost->name,
			      lost->reason ? lost->reason : "no memory",
			      fleet->begin_ns ? "measured" : "started",
			      fleet->muster || fleet_options_names_host(fleet->fleet)
				      ? ""
				      : "; --via has no {host}, so all members have one command");
	if (fleet->interrupted)
		return refuse(ret_error, "interrupted before the %s: nothing to report",
			      fleet->begin_ns ? "measured phase" : "start");
	return 0;
}

static int await_ready(struct fleet *fleet, char **ret_error)
{
	uv_timer_start(&fleet->watch, on_watch, WATCH_MS, WATCH_MS);
	while (!fleet->lost && !fleet->interrupted && !are_all(fleet, is_ready))
		uv_run(&fleet->loop, UV_RUN_DEFAULT);
	return check_gathered(fleet, ret_error);
}

static int gather(struct fleet *fleet, char **ret_error)
{
	int err = 0;

	for (uint32_t i = 0; i < fleet->count && !err; i++)
		err = start_member(fleet, i);
	if (err)
		return err;
	return await_ready(fleet, ret_error);
}

static bool is_interrupted(void *user)
{
	struct fleet *fleet = user;
	bool before = fleet->interrupted;

	uv_run(&fleet->loop, UV_RUN_NOWAIT);
	return fleet->interrupted && !before;
}

/* Return whether to give up waiting for the start: without a member there is none. */
static bool is_in_vain(void *user)
{
	const struct fleet *fleet = user;

	return is_interrupted(user) || fleet->lost;
}

static void begin(struct fleet *fleet, bool warming)
{
	uint64_t at_ns = clock_wall_ns() + member_lead_ns(fleet->members, fleet->count);

	if (fleet->run->start.at_ns > at_ns)
		at_ns = fleet->run->start.at_ns;
	fleet->running = true;
	fleet->begin_ns = at_ns;
	for (uint32_t i = 0; i < fleet->parts; i++)
		member_begin(&fleet->members[i], at_ns, warming);
	fleet_view_start(&fleet->view, at_ns, fleet->warmed ? 0 : fleet->load->warmup_ns);
}

/*
 * Let the members warm up, and wait until all of them rest: the observers count what comes next. The
 * clocks are compared again for the second start.
 */
static int warm_up(struct fleet *fleet, char **ret_error)
{
	int err;

	open_view(fleet);
	begin(fleet, true);
	fleet->running = false;
	err = await_ready(fleet, ret_error);
	fleet_view_stop(&fleet->view);
	fleet->warmed = !err;
	return err;
}

static void measure(struct fleet *fleet)
{
	if (!fleet->warmed)
		open_view(fleet);
	begin(fleet, false);
	while (!are_all(fleet, has_stopped))
		uv_run(&fleet->loop, UV_RUN_DEFAULT);
	fleet_view_stop(&fleet->view);
	uv_timer_stop(&fleet->watch);
	fleet_view_close(&fleet->view);
}

static int open_observers(struct fleet *fleet, char **ret_error)
{
	struct patience patience = {.is_over = is_interrupted, .user = fleet};
	struct drive_rows rows;

	scenario_rows(fleet->scenario, &rows);
	return observers_new(&fleet->run->observers, &rows, patience, fleet->load->warmup_ns,
			     &fleet->observers, ret_error);
}

static int take_result(struct fleet *fleet, char **command, struct run **ret_run, char **ret_error)
{
	const struct fleet_outcome outcome = {
		.load = fleet->load,
		.threads = fleet->threads,
		.command = command,
		.interrupted = fleet->cut,
	};
	CLEANUP(cleanup_run_free) struct run *run = NULL;
	int err =
		fleet_result(&fleet->sum, fleet->members, fleet->parts, &outcome, &run, ret_error);

	if (err)
		observers_drop(fleet->observers);
	if (!err && fleet->observers)
		err = fleet_result_observe(fleet->observers, fleet->run, run);
	if (!err)
		*ret_run = TAKE_PTR(run);
	return err;
}

static void attend(void *user)
{
	struct fleet *fleet = user;

	uv_run(&fleet->loop, UV_RUN_NOWAIT);
}

/* Another coordinator then knows whose results to wait for. A sweep has one record for all steps. */
static void record(struct fleet *fleet, char **command)
{
	const struct store_owner waiting = {.user = fleet, .waits = attend};
	bool due = fleet->kept->on && !(fleet->kept->sweep && fleet->kept->begun);
	json_t *members = due ? json_array() : NULL;
	json_t *observers = due && kept_by_members(fleet->kept)
				    ? observers_record(fleet->observers, fleet->kept->run)
				    : NULL;

	for (uint32_t i = 0; members && i < fleet->count; i++) {
		const struct member *member = &fleet->members[i];

		(void)json_array_append_new(
			members,
			json_pack("{s:s, s:s, s:I, s:I}", "agent", muster_agent(fleet->muster, i),
				  "name", member->name, "offset_ns", (json_int_t)member->offset_ns,
				  "round_ns", (json_int_t)member->round_ns));
	}
	if (due)
		kept_record(fleet->kept, command, members, observers, &waiting);
}

/*
 * All members answer before they get their start: one whose connection comes back would get it too
 * late. A long wait has moved their clocks, too.
 */
static int call_roll(struct fleet *fleet, char **ret_error)
{
	int err = check_gathered(fleet, ret_error);

	for (uint32_t i = 0; i < fleet->parts && !err; i++)
		member_compare(&fleet->members[i]);
	return err ? err : await_ready(fleet, ret_error);
}

static int await_time(struct fleet *fleet, uint64_t before_ns, char **ret_error)
{
	const struct patience patience = {.is_over = is_in_vain, .user = fleet};
	uint64_t lead_ns = member_lead_ns(fleet->members, fleet->count), unused;
	int err = start_await_time(&fleet->run->start, lead_ns + before_ns, patience, &unused,
				   ret_error);

	return err && err != -ECANCELED ? err : check_gathered(fleet, ret_error);
}

/*
 * The coordinator handles --wait-for and --start-at. Members get one start time, converted to the
 * clock of each.
 */
static int await_start(struct fleet *fleet, char **command, char **ret_error)
{
	const struct patience patience = {.is_over = is_in_vain, .user = fleet};
	int err = start_await_flag(&fleet->run->start, patience, ret_error);

	if (!err || err == -ECANCELED)
		err = check_gathered(fleet, ret_error) ?: await_time(fleet, ROLL_NS, ret_error);
	if (err)
		return err;
	record(fleet, command);
	err = call_roll(fleet, ret_error);
	return err ? err : await_time(fleet, 0, ret_error);
}

static int carry_out(struct fleet *fleet, char **command, struct run **ret_run, char **ret_error)
{
	int err = await_start(fleet, command, ret_error);

	if (!err && fleet->observers && fleet->load->warmup_ns)
		err = warm_up(fleet, ret_error);
	if (!err && fleet->observers)
		err = observers_begin(fleet->observers, ret_error);
	if (err)
		return err;
	err = check_gathered(fleet, ret_error);
	if (err) {
		observers_drop(fleet->observers);
		return err;
	}
	measure(fleet);
	return take_result(fleet, command, ret_run, ret_error);
}

/* ---- the steps of a sweep ---- */

static int begin_step(struct fleet *fleet, const struct drive_job *job, char **ret_error)
{
	const struct plan_step step = plan_step_of(job->load, job->settings, fleet->count);

	fleet->load = job->load;
	fleet->run = job->settings;
	fleet->threads = step.threads;
	fleet->parts = step.members;
	fleet->running = fleet->warmed = false;
	fleet->begin_ns = 0;
	fleet_sum_clear(&fleet->sum);
	for (uint32_t i = 0; i < fleet->count; i++)
		member_rest(&fleet->members[i]);
	for (uint32_t i = 0; i < fleet->parts && !fleet->lost; i++)
		member_step(&fleet->members[i], plan_step_message(&step, i));
	return await_ready(fleet, ret_error);
}

int fleet_step(void *user, const struct drive_job *job, struct run **ret_run, const char **ret_lost,
	       char **ret_error)
{
	struct fleet *fleet = user;
	int err = begin_step(fleet, job, ret_error);
	const struct member *lost;

	if (!err)
		err = carry_out(fleet, job->command, ret_run, ret_error);
	lost = fleet->lost;
	*job->ret_interrupted = fleet->interrupted || lost;
	if (!lost)
		return err;
	fleet->loss = text_format("%s was lost: %s", lost->name,
				  lost->reason ? lost->reason : "no memory");
	*ret_lost = fleet->loss;
	return err;
}

void fleet_keep_step(void *user, const struct run *run, size_t index,
		     const struct run_outcome *outcome)
{
	struct fleet *fleet = user;
	const struct store_owner waiting = {.user = fleet, .waits = attend};
	autofree char *text = fleet->kept->on ? steps_write(run, index, outcome) : NULL;

	kept_step(fleet->kept, text, &waiting);
}

const char *fleet_lost(const struct fleet *fleet)
{
	return fleet->loss;
}

/* ---- opened and closed ---- */

static int open_handles(struct fleet *fleet)
{
	uv_timer_t *timers[] = {&fleet->watch, &fleet->view.tick, &fleet->leave};
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
		uv_timer_init(&fleet->loop, timers[i]);
		timers[i]->data = fleet;
	}
	err = loop_signal(&fleet->loop, &fleet->signals[0], on_signal, SIGINT, fleet);
	if (!err)
		err = loop_signal(&fleet->loop, &fleet->signals[1], on_signal, SIGTERM, fleet);
	return err ? err : loop_signal(&fleet->loop, &fleet->resized, on_resize, SIGWINCH, fleet);
}

static void on_leave(uv_timer_t *timer)
{
	struct fleet *fleet = timer->data;

	for (uint32_t i = 0; i < fleet->count; i++)
		member_kill(&fleet->members[i]);
}

static bool has_ended(const struct member *member)
{
	return !member->spawned || member->ended;
}

/* Wait for every process, so that none is left and each exit status is read. */
static void leave(struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->count; i++)
		if (fleet->members[i].spawned)
			member_leave(&fleet->members[i]);
	if (fleet->muster)
		muster_leave(fleet->muster);
	uv_timer_start(&fleet->leave, on_leave, LEAVE_MS, LEAVE_MS);
	while (!are_all(fleet, has_ended))
		uv_run(&fleet->loop, UV_RUN_ONCE);
}

void fleet_close(struct fleet *fleet)
{
	if (!fleet)
		return;
	fleet_view_close(&fleet->view);
	observers_free(fleet->observers);
	leave(fleet);
	loop_close_handles(&fleet->loop);
	uv_loop_close(&fleet->loop);
	muster_free(fleet->muster);
	for (uint32_t i = 0; i < fleet->count; i++)
		member_clear(&fleet->members[i]);
	fleet_sum_clear(&fleet->sum);
	free(fleet->members);
	plan_clear(&fleet->plan);
	free(fleet->what);
	free(fleet->loss);
	free(fleet);
}

/* The usual soft limit of 1024 suffices for 320 members. */
static int raise_files(const struct fleet_options *options, char **ret_error)
{
	rlim_t needed = FILES_BASE + (rlim_t)(options->hosts ? FILES_OF_SPAWN : FILES_OF_RELAY) *
					     options->members;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	if (limit.rlim_max < needed)
		return refuse(ret_error,
			      "%u members need %" PRIu64 " open files, but the hard limit is "
			      "%" PRIu64 " (ulimit -Hn); raise it or use fewer members",
			      options->members, (uint64_t)needed, (uint64_t)limit.rlim_max);
	if (limit.rlim_cur >= needed)
		return 0;
	limit.rlim_cur = needed;
	return setrlimit(RLIMIT_NOFILE, &limit) ? -errno : 0;
}

static int open_all(struct fleet *fleet, char **ret_error)
{
	uint32_t count = fleet->fleet->members;
	int err = open_handles(fleet);

	if (!err)
		err = raise_files(fleet->fleet, ret_error);
	if (!err)
		err = plan_make(fleet->options, fleet->scenario, count, &fleet->plan, ret_error);
	if (err)
		return err;
	fleet->plan.patience_ns = fleet->fleet->lost_after_ns;
	fleet->members = calloc(count, sizeof(*fleet->members));
	if (!fleet->members)
		return -ENOMEM;
	fleet->count = count;
	return 0;
}

static bool is_signalled(void *user)
{
	const struct fleet *fleet = user;

	return fleet->interrupted;
}

/* Over NATS the agents name themselves, once they have answered. */
static int name_members(struct fleet *fleet, char **ret_error)
{
	const struct patience patience = {.is_over = is_signalled, .user = fleet};
	const bool sweep = fleet->options->command == COMMAND_SWEEP;
	int err = fleet->fleet->hosts ? 0 : kept_open(fleet->kept, fleet->fleet, sweep);

	if (!err && !fleet->fleet->hosts)
		err = muster_call(&fleet->loop, fleet->fleet, fleet->kept, patience, &fleet->muster,
				  ret_error);
	if (err)
		return err == -ECANCELED ? check_gathered(fleet, ret_error) : err;
	fleet->plan.kept = kept_by_members(fleet->kept);
	if (!fleet->fleet->hosts && !fleet->options->run.quiet)
		kept_tell(fleet->kept);
	for (uint32_t i = 0; i < fleet->count; i++)
		fleet->members[i].name = fleet->fleet->hosts ? fleet->fleet->hosts[i]
							     : muster_name(fleet->muster, i);
	return 0;
}

/* As the view of a single driver names it. */
static const char *name_of(const struct options *options, const struct scenario *scenario)
{
	if (options->url || scenario->of_targets)
		return options->url ? options->url : "several targets";
	return scenario->name ? scenario->name : scenario->path;
}

static int make_fleet(const struct fleet_options *fleet_options, const struct options *options,
		      const struct scenario *scenario, struct kept *kept, struct fleet **ret_fleet,
		      char **ret_error)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));
	int err = fleet ? uv_loop_init(&fleet->loop) : -ENOMEM;

	if (err) {
		free(fleet);
		return err;
	}
	fleet->fleet = fleet_options;
	fleet->kept = kept;
	fleet->options = options;
	fleet->scenario = scenario;
	fleet->load = &options->load;
	fleet->run = &options->run;
	fleet->threads = options->run.threads;
	err = open_all(fleet, ret_error);
	/* That may take longer than members wait for their plan. */
	if (!err)
		err = open_observers(fleet, ret_error);
	if (!err)
		err = name_members(fleet, ret_error);
	if (!err && asprintf(&fleet->what, "%s from %u hosts", name_of(options, scenario),
			     fleet->count) < 0)
		err = -ENOMEM;
	if (err)
		fleet_close(fleet);
	else
		*ret_fleet = fleet;
	return err;
}

int fleet_open(const struct fleet_options *fleet_options, const struct options *options,
	       const struct scenario *scenario, struct kept *kept, struct fleet **ret_fleet,
	       char **ret_error)
{
	CLEANUP(cleanup_fleet_close) struct fleet *fleet = NULL;
	int err = make_fleet(fleet_options, options, scenario, kept, &fleet, ret_error);

	if (!err)
		err = gather(fleet, ret_error);
	if (!err)
		*ret_fleet = TAKE_PTR(fleet);
	return err;
}

int fleet_run(const struct fleet_options *fleet_options, const struct options *options,
	      const struct scenario *scenario, char **command, struct kept *kept,
	      struct run **ret_run, char **ret_error)
{
	CLEANUP(cleanup_fleet_close) struct fleet *fleet = NULL;
	int err = fleet_open(fleet_options, options, scenario, kept, &fleet, ret_error);

	if (err)
		return err;
	fleet->parts = fleet->count;
	return carry_out(fleet, command, ret_run, ret_error);
}
