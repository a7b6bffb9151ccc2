// SPDX-License-Identifier: MIT
/*
 * Puts an observation together: plan, loader, model, sinks, loop. This is the observer's top layer:
 * the only one that logs.
 */
#include "observe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "cgroup.h"
#include "confine.h"
#include "loader.h"
#include "loop.h"
#include "model.h"
#include "notify.h"
#include "otlp.h"
#include "plan.h"
#include "procfs.h"
#include "record.h"
#include "reserve.h"
#include "sink_http.h"
#include "sink_live.h"
#include "sink_otlp.h"
#include "sink_term.h"
#include "sojourn/cli.h"
#include "sojourn/log.h"
#include "sojourn/report.h"

/* Services that may come up while we observe, beyond those that are there. */
#define SPARE_SERVICES 16

struct observation {
	const struct observe_options *options;
	struct plan plan;
	struct loader *loader;
	struct model *model;
	struct snapshot_source snapshots;
	struct sink_term *term;
	struct sink_live *live;
	struct sink_record *record;
	struct sink_otlp *otlp;
	struct sink_http *http;
	struct loop *loop;
	int netns_fd;
	uint32_t netns;
	int cgroup_fd; /* with --transmit; -1: none */
	char cgroup_reason[256];
};

static void observation_done(struct observation *o)
{
	loop_close(o->loop);
	sink_http_close(o->http);
	sink_live_close(o->live);
	sink_record_close(o->record);
	sink_otlp_close(o->otlp);
	sink_term_close(o->term);
	model_free(o->model);
	loader_close(o->loader);
	cleanup_close(&o->netns_fd);
	cleanup_close(&o->cgroup_fd);
}

/* ---- plan ---- */

static int say_unsupported(const struct plan *plan)
{
	log_error("cannot observe: %s ('sojourn probe' says more; 'sojourn report' and "
		  "sojourn-drive work without)",
		  plan->rows[0].reason);
	return EXIT_UNSUPPORTED;
}

/* Without a program for QUESTION_ACCEPT nothing is missing: it is inferred, and named so. */
static void warn_missing(const struct plan *plan)
{
	for (size_t i = 0; i < PLAN_ROWS; i++) {
		const struct plan_row *row = &plan->rows[i];
		enum question question = row->candidate->question;

		if (row->rehearsed && row->reason[0] && question != QUESTION_ACCEPT &&
		    !plan_chosen(plan, question))
			log_warn("%s refused, missing: %s: %s", row->candidate->hook,
				 plan_question_use(question), row->reason);
	}
}

/* TX timestamps would work, but for the cgroup: the user may change that. */
static void say_without_stamps(const struct observation *o)
{
	const struct plan_row *used = plan_chosen(&o->plan, QUESTION_TRANSMIT);

	for (size_t i = 0; used && i < PLAN_ROWS; i++) {
		const struct plan_row *row = &o->plan.rows[i];

		if (row->candidate->question == QUESTION_TRANSMIT && row->reason[0] &&
		    !strcmp(row->reason, o->cgroup_reason))
			log_warn("responses are followed by %s, not by TX timestamps: %s",
				 used->candidate->hook, row->reason);
	}
}

/* A source that was asked for by name is not silently another one. */
static int check_accept_source(const struct observation *o)
{
	enum accept_source wish = o->options->accept_source;

	if (wish == ACCEPT_AUTO || wish == plan_accept_source(&o->plan))
		return EXIT_SUCCESS;
	log_error("--accept-source %s: refused here: %s; inferred works without",
		  options_accept_source(wish), plan_refusal(&o->plan, QUESTION_ACCEPT));
	return EXIT_UNSUPPORTED;
}

static int check_preferred(const struct observation *o)
{
	for (size_t i = 0; i < o->options->prefer_count; i++) {
		const char *reason = plan_not_used(&o->plan, o->options->prefer[i]);

		if (reason) {
			log_error("--prefer %s: refused here: %s", o->options->prefer[i], reason);
			return EXIT_UNSUPPORTED;
		}
	}
	return EXIT_SUCCESS;
}

/* A cgroup that was named must do; of one that is looked for, the plan hears why there is none. */
static int find_cgroup(struct observation *o)
{
	const struct observe_options *options = o->options;
	uint16_t ports[OPTIONS_PORTS];
	size_t count = 0;
	int r;

	if (!options->transmit_below)
		return EXIT_SUCCESS;
	if (options->cgroup) {
		r = cgroup_open(options->cgroup, o->cgroup_reason, sizeof(o->cgroup_reason),
				&o->cgroup_fd);
		if (r < 0)
			log_error("--cgroup: %s", o->cgroup_reason);
		return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
	}
	for (size_t i = 0; i < options->port_count; i++) {
		if (options->ports[i].protocol == IPPROTO_TCP)
			ports[count++] = options->ports[i].port;
	}
	cgroup_of_services(options->pid, ports, count, o->cgroup_reason, sizeof(o->cgroup_reason),
			   &o->cgroup_fd);
	return EXIT_SUCCESS;
}

static int make_plan(struct observation *o)
{
	struct plan_wish wish = {
		.accept_source = o->options->accept_source,
		.udp = o->options->udp,
		.transmit = o->options->transmit_below,
		.cpu = o->options->cpu,
		.cgroup_fd = o->cgroup_fd,
		.cgroup_reason = o->cgroup_fd < 0 ? o->cgroup_reason : NULL,
		.prefer = o->options->prefer,
		.prefer_count = o->options->prefer_count,
	};
	int r = plan_build(&wish, &o->plan);

	if (r < 0) {
		log_errno(r, "cannot try the kernel's programs");
		return EXIT_FAILURE;
	}
	if (!plan_working(&o->plan))
		return say_unsupported(&o->plan);
	if (check_preferred(o))
		return EXIT_UNSUPPORTED;
	warn_missing(&o->plan);
	say_without_stamps(o);
	return check_accept_source(o);
}

/* ---- what is observed ---- */

struct found {
	struct observation *o;
	int error;
};

static int add_port(struct observation *o, uint16_t port, uint16_t protocol)
{
	struct service_key key = {.netns = o->netns, .port = port, .protocol = protocol};
	int r = loader_add_service(o->loader, &key);

	return r == -EEXIST ? 0 : r;
}

static void add_held(void *context, uint32_t pid, const struct procfs_listener *listener)
{
	struct found *found = context;
	int r = add_port(found->o, listener->port, IPPROTO_TCP);

	(void)pid;
	if (r < 0)
		found->error = r;
}

/* What the process listens on now; what it will listen on later, the kernel side sees. */
static int add_held_ports(struct observation *o)
{
	autofree struct procfs_listener *listeners = NULL;
	struct found found = {.o = o};
	size_t count;
	int r = procfs_listeners(o->options->pid, &listeners, &count);

	if (!r)
		r = procfs_held(o->options->pid, listeners, count, add_held, &found);
	return r < 0 ? r : found.error;
}

static int add_services(struct observation *o)
{
	for (size_t i = 0; i < o->options->port_count; i++) {
		int r = add_port(o, o->options->ports[i].port, o->options->ports[i].protocol);

		if (r < 0)
			return r;
	}
	return o->options->pid ? add_held_ports(o) : 0;
}

/* Every service takes 126 KiB per CPU: room for those that exist, and some more. */
static int count_services(const struct observe_options *options, uint32_t *ret_max)
{
	autofree struct procfs_listener *listeners = NULL;
	size_t count;
	int r;

	if (options->port_count) {
		*ret_max = (uint32_t)options->port_count;
		return 0;
	}
	r = procfs_listeners(options->pid, &listeners, &count);
	if (r < 0)
		return r;
	*ret_max = (uint32_t)count + SPARE_SERVICES;
	return 0;
}

static int open_netns(struct observation *o)
{
	char path[64] = "/proc/self/ns/net";
	struct stat st;

	if (o->options->pid)
		snprintf(path, sizeof(path), "/proc/%u/ns/net", o->options->pid);
	o->netns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (o->netns_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	if (fstat(o->netns_fd, &st) < 0)
		return -errno;
	o->netns = (uint32_t)st.st_ino;
	if (!o->options->pid)
		cleanup_close(&o->netns_fd), o->netns_fd = -1;
	return 0;
}

/* A ring's size is a power of two, and of whole pages. */
static uint32_t ring_bytes(const struct observe_options *options)
{
	uint32_t bytes = (uint32_t)sysconf(_SC_PAGESIZE);

	while (bytes < options->ring_kib * 1024)
		bytes *= 2;
	return bytes;
}

static int fill_config(const struct observation *o, struct observer_config *ret_config)
{
	struct stat pidns;
	uint32_t max;
	int r = count_services(o->options, &max);

	if (r < 0)
		return r;
	if (stat("/proc/self/ns/pid", &pidns) < 0)
		return -errno;
	*ret_config = (struct observer_config){
		.max_services = max,
		.pid = o->options->pid,
		.netns = o->netns,
		.accept_source = plan_accept_source(&o->plan),
		.all_listeners = o->options->all_listeners,
		.floor = o->options->floor,
		.transmit_below =
			plan_chosen(&o->plan, QUESTION_TRANSMIT) ? o->options->transmit_below : 0,
		.transmit_stamps = plan_transmit_stamps(&o->plan),
		.cpu = !!plan_chosen(&o->plan, QUESTION_CPU),
		.listener_depths = !o->options->no_doctor,
		.depth_at_accept = plan_depth(&o->plan) == PLAN_DEPTH_ACCEPTED,
		.ring_bytes = o->options->samples ? ring_bytes(o->options) : 0,
		.pidns_dev = pidns.st_dev,
		.pidns_ino = pidns.st_ino,
	};
	return 0;
}

/* ---- start ---- */

static int load(struct observation *o)
{
	struct loader_options options = {.run_statistics = o->options->run_statistics};
	int r = fill_config(o, &options.config);

	if (r < 0)
		return r;
	options.netns_fd = o->netns_fd;
	options.cgroup_fd = o->cgroup_fd;
	r = loader_open(&o->plan, &options, &o->loader);
	if (!r)
		r = add_services(o);
	return r;
}

static int start_model(struct observation *o)
{
	struct model_options options = {
		.pid = o->options->pid,
		.command = o->options->command,
		.run_statistics = o->options->run_statistics,
		.samples = o->options->samples,
		.findings = !o->options->no_doctor,
	};
	int r = loader_attach(o->loader);

	if (!r)
		r = model_new(o->loader, &o->plan, &options, &o->model);
	if (r < 0)
		return r;
	o->snapshots = model_snapshots(o->model);
	return 0;
}

/* Lines go where the summary goes, unless the document takes standard output. */
static FILE *text_file(const struct observe_options *options)
{
	return options->json && !strcmp(options->json, "-") ? stderr : stdout;
}

static void point(void *context)
{
	model_point(context);
}

static int open_sinks(struct observation *o)
{
	struct loop_options loop = {
		.interval_ns = o->otlp ? o->options->otlp.interval_ns : o->options->interval_ns,
		.for_ns = o->options->for_ns,
		.command = o->options->command,
		.point_ns = model_point_interval_ns(o->model),
		.point = point,
		.point_context = o->model,
	};
	int r = 0;

	if (o->options->live)
		r = sink_live_open(&o->snapshots, o->options->interval_ns, &o->live);
	else if (o->options->record)
		r = sink_record_begin(o->record, &o->snapshots);
	else if (o->otlp)
		sink_otlp_begin(o->otlp, &o->snapshots);
	else if (o->options->interval_ns)
		r = sink_term_open(&o->snapshots, text_file(o->options), &o->term);
	if (!r && o->options->listen)
		r = sink_http_open(&o->options->address, &o->snapshots, &o->options->access,
				   &o->http);
	loop.model = o->model;
	loop.term = o->term;
	loop.live = o->live;
	loop.record = o->record;
	loop.otlp = o->otlp;
	loop.http = o->http;
	return r < 0 ? r : loop_open(&loop, &o->loop);
}

static const struct {
	int (*step)(struct observation *o);
	const char *failure;
} steps[] = {
	{open_netns, "cannot find the network namespace"},
	{load, "cannot load the programs"},
	{start_model, "cannot start observing"},
	{open_sinks, "cannot open the outputs"},
};

/* Who answers over a network for weeks holds nothing that it does not use. */
static int give_up_privileges(const struct observation *o)
{
	int r = o->options->serve ? confine(o->netns_fd >= 0) : 0;

	return r < 0 ? log_errno(r, "cannot give up privileges") : 0;
}

static int start(struct observation *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		int r = steps[i].step(o);

		if (r == -ESRCH) {
			log_error("--pid: there is no process %u", o->options->pid);
			return EXIT_FAILURE;
		}
		if (r == -EOPNOTSUPP && o->options->live) {
			log_error("the terminal (TERM=%s) cannot be drawn on: 'sojourn observe "
				  "--interval 1s' prints lines",
				  getenv("TERM") ? getenv("TERM") : "");
			return EXIT_FAILURE;
		}
		if (r < 0) {
			log_errno(r, "%s", steps[i].failure);
			return EXIT_FAILURE;
		}
	}
	if (give_up_privileges(o))
		return EXIT_FAILURE;
	reserve_fill();
	notify_ready(o->http ? sink_http_url(o->http) : NULL);
	return EXIT_SUCCESS;
}

/* ---- end ---- */

static int finish(struct observation *o)
{
	const struct observe_options *options = o->options;
	struct report_options report;
	autorun struct run *run = NULL;
	RESERVE_SCOPE;
	int r = model_read(o->model, &run);

	if (r < 0) {
		log_errno(r, "cannot read the result");
		return EXIT_FAILURE;
	}
	if (options->json) {
		r = run_write(run, options->json);
		if (r < 0)
			log_errno(r, "cannot write '%s'", options->json);
	}
	if (!options->quiet && !options->record &&
	    !(options->json && !strcmp(options->json, "-"))) {
		report_options_for(stdout, &report);
		report_text(run, &report, stdout);
	}
	if (o->record && record_end(options, o->record, run) < 0)
		r = -EIO;
	if (o->otlp)
		sink_otlp_end(o->otlp, run);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_observation(struct observation *o)
{
	int status = 0, exit_code, r;

	/* First, so that its process inherits no descriptor, map or program. */
	exit_code = otlp_open(&o->options->otlp, &o->otlp);
	if (!exit_code)
		exit_code = record_open(o->options, &o->record);
	if (!exit_code)
		exit_code = find_cgroup(o);
	if (!exit_code)
		exit_code = make_plan(o);
	if (!exit_code)
		exit_code = start(o);
	if (exit_code)
		return exit_code;
	r = loop_run(o->loop, &status);
	/* From here on there is something to be read: the terminal is the user's again. */
	sink_live_close(TAKE_PTR(o->live));
	if (r < 0)
		log_errno(r, "observing ended early");
	return finish(o) || r < 0 ? EXIT_FAILURE : status;
}

int observe(const struct observe_options *options)
{
	struct observation o = {.options = options, .netns_fd = -1, .cgroup_fd = -1};
	int exit_code = run_observation(&o);

	observation_done(&o);
	return exit_code;
}
