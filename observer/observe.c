// SPDX-License-Identifier: MIT
/*
 * Puts an observation together: plan, loader, model, sinks, loop. This is the observer's top layer:
 * the only one that logs.
 */
#include "observe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include "lacks.h"
#include "loop.h"
#include "outputs.h"
#include "host/containers/cgroup.h"
#include "host/containers/target.h"
#include "host/listening.h"
#include "host/net/netns.h"
#include "host/process.h"
#include "kernel/heap.h"
#include "kernel/loader.h"
#include "kernel/plan.h"
#include "model/budget.h"
#include "model/model.h"
#include "process/confine.h"
#include "process/notify.h"
#include "process/reserve.h"
#include "sojourn/address.h"
#include "sojourn/cli.h"
#include "sojourn/clock.h"
#include "sojourn/join.h"
#include "sojourn/log.h"
#include "sojourn/report.h"

/* Services that may start while we observe, besides the existing ones. */
#define SPARE_SERVICES 32
/* Likewise with --all-netns, in namespaces that may start while we observe. */
#define SPARE_IN_NAMESPACES 224
/* Slots, and so places in the document, for listeners without a connection so far. */
#define IDLE_SERVICES 32
/* Maximum of services with slots without --memory: of thousands of listeners few are used. */
#define MOST_SERVICES 512
/* Services with slots if the cgroup allows hardly any memory and --memory is not given. */
#define FEW_SERVICES 4

struct observation {
	const struct observe_options *options;
	struct plan plan;
	struct loader *loader;
	struct model *model;
	struct snapshot_source snapshots;
	struct outputs outputs;
	struct loop *loop;
	struct target target; /* where the services are */
	int netns_fd;
	uint32_t netns;
	struct observer_config config;
	struct budget budget;
	int cgroup_fd;		  /* with --transmit; -1: none */
	struct confine_user user; /* the user of this process while it observes */
	char cgroup_reason[256];
};

/* ---- plan ---- */

/* Find the target before anything is loaded. */
static int find_target(struct observation *o)
{
	const struct observe_options *options = o->options;
	const struct {
		const char *option, *word;
		int (*find)(const char *word, char *reason, size_t size, struct target *ret_target);
	} words[] = {
		{"netns", options->netns, target_of_netns},
		{"container", options->container, target_of_container},
		{"pod", options->pod, target_of_pod},
		{"cgroup", options_names_cgroup(options) ? options->cgroup : NULL,
		 target_of_cgroup},
	};
	char reason[1024];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *word = words[i].word;

		if (word && words[i].find(word, reason, sizeof(reason), &o->target) < 0) {
			log_error("--%s: %s", words[i].option, reason);
			return EXIT_USAGE;
		}
	}
	return EXIT_SUCCESS;
}

/*
 * A cgroup that was named must be usable. If one is searched and not found, the plan gets the
 * reason.
 */
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
	cgroup_of_services(o->target.pid_count ? o->target.pids[0] : options->pid, ports, count,
			   o->cgroup_reason, sizeof(o->cgroup_reason), &o->cgroup_fd);
	return EXIT_SUCCESS;
}

static int build_plan(struct observation *o, bool hopeful)
{
	struct plan_wish wish = {
		.accept_source = o->options->accept_source,
		.udp = o->options->udp,
		.transmit = o->options->transmit_below,
		.cpu = o->options->cpu,
		.calls = o->options->calls,
		.http = o->options->http,
		.streams = !o->options->no_http2,
		.tls = o->options->tls,
		.commands = o->options->protocol_count,
		.cgroup_fd = o->cgroup_fd,
		.cgroup_reason = o->cgroup_fd < 0 ? o->cgroup_reason : NULL,
		.prefer = o->options->prefer,
		.prefer_count = o->options->prefer_count,
		.hopeful = hopeful,
		.shared = o->budget.shared,
	};

	return plan_build(&wish, &o->plan);
}

/* With --tls. A process that starts later and uses the same file is looked into as well. */
static void say_library(const char *path, int error)
{
	const char *reason = error == -ECANCELED ? "it was loaded after the start, when the rights "
						   "to attach to it were given up: restart serving"
			     : error == -E2BIG
				     ? "too many such files were found, and not all of them "
				       "are looked into; raise 'ulimit -n' if they are yours"
				     : strerror(-error);

	if (!error)
		log_debug("--tls: %s is looked into", path);
	else
		log_warn("--tls: %s: statuses and routes of its users are not known: %s", path,
			 reason);
}

static void say_streams(int error)
{
	if (error)
		log_warn("streams of HTTP/2 cannot be followed yet: %s", strerror(-error));
	else
		log_debug("a connection speaks HTTP/2: streams are followed from now on");
}

/* ---- what is observed ---- */

/* "8080", "8000-8010" or "53/udp". */
static void format_range(const struct observe_port *port, char *text, size_t size)
{
	const char *protocol = port->protocol == IPPROTO_UDP ? "/udp" : "";

	if (port->first == port->last)
		snprintf(text, size, "%u%s", port->port, protocol);
	else
		snprintf(text, size, "%u-%u%s", port->first, port->last, protocol);
}

static bool is_of_same_range(const struct observe_port *a, const struct observe_port *b)
{
	return a->first == b->first && a->last == b->last && a->protocol == b->protocol;
}

/* Maximum of silent ports, or ranges of them, that the warning names. */
#define SILENT_NAMED 4

/* Write the first ports without a listener. Return how many there are. In a range one listener is enough. */
static size_t silent_ports(const struct observe_options *options, uint16_t protocol, size_t size,
			   char *ret_text)
{
	size_t count = 0, used = 0;
	char range[32];

	for (size_t i = 0; i < options->port_count; i++) {
		const struct observe_port *port = &options->ports[i];

		if (port->protocol != protocol || (i && is_of_same_range(port, port - 1)) ||
		    listening_within(port->first, port->last, protocol))
			continue;
		format_range(port, range, sizeof(range));
		if (count++ < SILENT_NAMED)
			used += (size_t)snprintf(ret_text + used, size - used, "%s%s",
						 used ? ", " : "", range);
	}
	if (count > SILENT_NAMED)
		snprintf(ret_text + used, size - used, " and %zu more", count - SILENT_NAMED);
	return count;
}

/* A service may start later, but a mistyped port will not. */
static void warn_of_silent_ports(const struct observe_options *options)
{
	char others[128], ports[128];

	if (silent_ports(options, IPPROTO_TCP, sizeof(ports), ports)) {
		listening_ports(others, sizeof(others));
		log_warn("--port %s: nothing listens there now: waiting%s%s", ports,
			 *others ? ". Listeners are at " : "", others);
	}
	if (silent_ports(options, IPPROTO_UDP, sizeof(ports), ports))
		log_warn("--port %s: nothing is bound there now: waiting", ports);
}

struct found {
	struct observation *o;
	int error;
};

/* Return whether the options name every service. */
static bool names_services(const struct observe_options *options)
{
	return options->port_count && !options->all_netns;
}

static int add_port(struct observation *o, uint16_t port, uint16_t protocol)
{
	struct service_key key = {.netns = o->netns, .port = port, .protocol = protocol};
	int r = loader_add_service(o->loader, &key);

	return r == -EEXIST ? 0 : r;
}

static void add_held(void *context, uint32_t pid, const struct process_listener *listener)
{
	struct found *found = context;
	int r = add_port(found->o, listener->port, IPPROTO_TCP);

	(void)pid;
	if (r < 0)
		found->error = r;
}

/* Add the ports on which the processes listen now. The kernel side sees later ones. */
static int add_held_ports(struct observation *o, const uint32_t *pids, size_t pid_count)
{
	autofree struct process_listener *listeners = NULL;
	struct found found = {.o = o};
	size_t count;
	int r = listening_in(o->netns_fd, &listeners, &count);

	for (size_t i = 0; !r && i < pid_count; i++) {
		r = process_held(pids[i], listeners, count, add_held, &found);
		/* One of several may end meanwhile. */
		if (r == -ESRCH && !o->options->pid)
			r = 0;
	}
	return r < 0 ? r : found.error;
}

/* Add the ports: in the observed namespace, or with --all-netns in all, later ones included. */
static int add_ports(struct observation *o)
{
	for (size_t i = 0; i < o->options->port_count; i++) {
		const struct observe_port *port = &o->options->ports[i];
		int r = 0;

		if (o->options->all_netns)
			loader_watch(o->loader, port->port, true);
		else
			r = add_port(o, port->port, port->protocol);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_services(struct observation *o)
{
	int r = add_ports(o);

	if (!r && o->options->pid)
		r = add_held_ports(o, &o->options->pid, 1);
	if (!r && o->config.cgroup)
		r = add_held_ports(o, o->target.pids, o->target.pid_count);
	return r;
}

/* Count the existing services and a few more. Each slot takes memory on every CPU. */
static int count_services(struct observation *o, uint32_t *ret_max)
{
	const struct observe_options *options = o->options;
	autofree struct process_listener *listeners = NULL;
	size_t count;
	int r;

	if (names_services(options)) {
		*ret_max = (uint32_t)options->port_count;
		return 0;
	}
	r = options->all_netns ? listening_in_all(&count)
			       : listening_in(o->netns_fd, &listeners, &count);
	if (r < 0)
		return r;
	if (options->all_netns)
		count += SPARE_IN_NAMESPACES;
	*ret_max = (uint32_t)count + SPARE_SERVICES;
	if (!options->memory && *ret_max > MOST_SERVICES)
		*ret_max = MOST_SERVICES;
	return 0;
}

static int open_netns(struct observation *o)
{
	char path[64];
	int r;

	if (o->netns)
		return 0;
	if (!o->options->pid)
		return netns_open(o->target.netns[0] ? o->target.netns : NULL, &o->netns_fd,
				  &o->netns);
	snprintf(path, sizeof(path), "/proc/%u/ns/net", o->options->pid);
	r = netns_open(path, &o->netns_fd, &o->netns);
	return r == -ENOENT ? -ESRCH : r;
}

/* A ring's size is a power of two, and of whole pages. */
static uint32_t ring_bytes(const struct observe_options *options)
{
	uint32_t bytes = (uint32_t)sysconf(_SC_PAGESIZE);

	while (bytes < options->ring_kib * 1024)
		bytes *= 2;
	return bytes;
}

/* Return the length of a tick: the coarse clocks advance once per tick. */
static uint64_t tick_ns(void)
{
	struct timespec tick = {};

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return clock_timespec_ns(&tick);
}

/* Minimum of UDP requests without a reply that are remembered. */
#define UDP_REQUESTS 16384

static void count_datagram_socket(void *context, const struct resource_socket *socket)
{
	uint32_t *count = context;

	(void)socket;
	++*count;
}

/* Return four for each UDP socket of our own namespace, even if another one is observed; at least UDP_REQUESTS. */
static uint32_t udp_requests(const struct observe_options *options)
{
	uint32_t sockets = 0;

	if (!options->udp)
		return 0;
	(void)sockets_udp(count_datagram_socket, &sockets);
	return sockets > UDP_REQUESTS / 4 ? 4 * sockets : UDP_REQUESTS;
}

/*
 * Return how many slots are kept for services with traffic. Unused listeners get the others: IDLE_SERVICES, at most
 * half, or an eighth if slots are scarce.
 */
static uint32_t slots_kept(uint32_t max, bool scarce)
{
	if (scarce)
		return max - max / 8;
	return max > 2 * IDLE_SERVICES ? max - IDLE_SERVICES : max / 2;
}

/* Return whether the namespace is the target's own, as it is for a container without a known cgroup. */
static bool is_all_of_it(const struct observation *o)
{
	const struct observe_options *options = o->options;

	return options_names_cgroup(options) && o->target.cgroup_fd < 0 && !options->port_count;
}

/* Return whether the listening process decides. With ports or --all-listeners any process may listen. */
static bool names_processes(const struct observation *o)
{
	return o->target.cgroup_fd >= 0 && !o->options->port_count && !o->options->all_listeners;
}

static int fill_config(const struct observation *o, struct observer_config *ret_config)
{
	struct stat pidns;

	if (stat("/proc/self/ns/pid", &pidns) < 0)
		return -errno;
	*ret_config = (struct observer_config){
		.cpus = o->options->cpus,
		.pid = o->options->pid,
		.netns = o->netns,
		.accept_source = plan_accept_source(&o->plan),
		.all_listeners = o->options->all_listeners || is_all_of_it(o),
		.all_netns = o->options->all_netns,
		.cgroup = names_processes(o),
		.floor = o->options->floor,
		.quiet_ns = o->options->quiet_ns,
		.tick_ns = tick_ns(),
		.transmit_below =
			plan_chosen(&o->plan, QUESTION_TRANSMIT) ? o->options->transmit_below : 0,
		.transmit_stamps = plan_transmit_stamps(&o->plan),
		.cpu = !!plan_chosen(&o->plan, QUESTION_CPU),
		.calls = !plan_missing_calls(&o->plan),
		.http = !plan_missing_http(&o->plan),
		.streams = !plan_missing_streams(&o->plan),
		.beside = plan_beside(&o->plan),
		.tls = !plan_missing_tls(&o->plan),
		.route_rows = plan_missing_http(&o->plan) ? 0 : o->options->route_rows,
		.propose = !plan_missing_http(&o->plan) && o->options->propose_routes,
		.listener_depths = !o->options->no_doctor,
		.depth_at_accept = plan_depth(&o->plan) == PLAN_DEPTH_ACCEPTED,
		.ring_bytes = o->options->samples ? ring_bytes(o->options) : 0,
		.pidns_dev = pidns.st_dev,
		.pidns_ino = pidns.st_ino,
		.udp_requests = udp_requests(o->options),
	};
	if (!o->options->protocol_count || plan_missing_commands(&o->plan))
		return 0;
	ret_config->command_count = o->options->protocol_count;
	ret_config->command_rows = COMMAND_ROWS;
	memcpy(ret_config->command_ports, o->options->protocols, sizeof(o->options->protocols));
	return 0;
}

/* Limit the services by memory. Without --memory, named ports or else FEW_SERVICES are observed in any case. */
static int divide_memory(struct observation *o)
{
	const struct observe_options *options = o->options;
	uint64_t bytes = options->memory ? options->memory : budget_default();
	bool scarce, named = names_services(options);
	uint32_t wanted, least = named ? (uint32_t)options->port_count : FEW_SERVICES;
	int r = count_services(o, &wanted);

	if (!r)
		r = budget_divide(bytes, &o->config, wanted, &o->budget);
	if (r < 0)
		return r;
	if (options->memory && o->budget.services < (named ? least : 1))
		return -EDQUOT;
	if (!options->memory && o->budget.services < least)
		o->budget.services = least;
	scarce = wanted > o->budget.services;
	o->config.max_services = scarce ? o->budget.services : wanted;
	o->config.copies = o->budget.copies;
	o->config.slots_kept = named ? 0 : slots_kept(o->config.max_services, scarce);
	return 0;
}

/* ---- privileges ---- */

/* A command keeps root if root starts it: then nothing is given up. */
static bool is_confined(const struct observe_options *options)
{
	return options->listen && !options->command;
}

/* Look the user up now: a confined process cannot. */
static int find_user(struct observation *o)
{
	const char *name = o->options->user;
	int r = 0;

	o->user = (struct confine_user){geteuid(), getegid()};
	if (is_confined(o->options))
		r = confine_find_user(name, &o->user);
	o->outputs.user = o->user.uid;
	if (r == -ENOENT) {
		log_error("--user: '%s': this host has no such user", name);
		return EXIT_USAGE;
	}
	if (r == -EPERM)
		log_error("--user: '%s': only root with CAP_SETUID and CAP_SETGID may change to "
			  "another user",
			  name);
	else if (r < 0)
		log_errno(r, "cannot look up users");
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* A process that serves a network for weeks should keep no privileges that it does not use. */
static int give_up(const struct observation *o)
{
	const struct observe_options *options = o->options;
	const struct confine_options confinement = {
		.user = o->user,
		.other_netns = o->netns_fd >= 0 || options->all_netns,
	};
	int r = is_confined(options) ? confine(&confinement) : 0;

	if (is_confined(options))
		loader_end_probing(o->loader);

	if (r < 0)
		log_errno(r, "cannot give up privileges");
	else if (is_confined(options) && !options->user && !geteuid())
		log_warn("the observer stays root, without capabilities to write others' files: it "
			 "lacks CAP_SETUID and CAP_SETGID, which changing to another user needs");
	return r;
}

/* ---- start ---- */

static int load(struct observation *o)
{
	struct loader_options options = {.run_statistics = o->options->run_statistics};
	int r = fill_config(o, &o->config);

	if (!r)
		r = divide_memory(o);
	if (r < 0)
		return r;
	options.config = o->config;
	options.netns_fd = o->netns_fd;
	options.cgroup_fd = o->cgroup_fd;
	options.target_fd = o->target.cgroup_fd;
	options.routes = o->options->routes;
	options.streams = say_streams;
	r = loader_open(&o->plan, &options, &o->loader);
	r = r ? r : add_services(o);
	return r ? r : loader_attach(o->loader);
}

/*
 * Load the first choice. If that fails, make the plan by rehearsals, which find out what the kernel refuses. They take
 * a second, and are left out if no plan can help. start() loads the plan, and reports any other error.
 */
static int make_plan(struct observation *o)
{
	int r = build_plan(o, true), error = r ? 0 : open_netns(o);
	bool gone = error == -ESRCH; /* the process whose namespace it is */

	if (!r && !error)
		error = load(o);
	if (error) {
		loader_close(o->loader);
		o->loader = NULL;
	}
	if (error && !gone && !(error == -EDQUOT && budget_lacks(&o->config, o->options->memory)))
		r = build_plan(o, false);
	if (r < 0) {
		log_errno(r, "cannot try the kernel's programs");
		return EXIT_FAILURE;
	}
	return lacks_check(&o->plan, o->options, o->cgroup_reason);
}

static int load_if_needed(struct observation *o)
{
	return o->loader ? 0 : load(o);
}

static void say_expired(uint64_t phase, uint32_t lease_s)
{
	log_warn("phase %ju has ended: nobody renewed it for %u s", (uintmax_t)phase, lease_s);
}

static int start_model(struct observation *o)
{
	struct model_options options = {
		.netns_fd = o->netns_fd,
		.netns = o->netns,
		.command = o->options->command,
		.run_statistics = o->options->run_statistics,
		.samples = o->options->samples,
		.budget = &o->budget,
		.findings = !o->options->no_doctor,
		.every_user = options_count_users(o->options),
		.every_netns = o->options->all_netns,
		.past = o->options->listen,
		.expired = say_expired,
		.library = say_library,
	};
	int r = model_new(o->loader, &o->plan, &options, &o->model);

	if (r < 0)
		return r;
	o->snapshots = model_snapshots(o->model);
	return 0;
}

static void point(void *context)
{
	model_point(context);
}

static int open_outputs(struct observation *o)
{
	struct loop_options loop = {
		.interval_ns = outputs_interval_ns(&o->outputs),
		.for_ns = o->options->for_ns,
		.sinks = o->outputs.list,
		.model = o->model,
		.command = o->options->command,
		.point_ns = MODEL_POINT_NS,
		.point = point,
		.point_context = o->model,
	};
	int r = outputs_begin(&o->outputs, &o->snapshots);

	loop.sink_count = o->outputs.count;
	return r < 0 ? r : loop_open(&loop, &o->loop);
}

static const struct {
	int (*step)(struct observation *o);
	const char *failure;
} steps[] = {
	{open_netns, "cannot find the network namespace"},
	{load_if_needed, "cannot load the programs"},
	{start_model, "cannot start observing"},
	{open_outputs, "cannot open the outputs"},
};

/* Explain that the endpoint's address is in use, or none of this host's. */
static void explain_address(const struct observe_options *options, int error)
{
	const struct sockaddr *address = (const struct sockaddr *)&options->address;
	/* sin_port and sin6_port lie at the same offset. */
	uint16_t port = ntohs(((const struct sockaddr_in *)address)->sin_port);
	char text[64], owner[64];
	size_t size;

	address_format(address->sa_family, address_bytes(address, &size), port, text, sizeof(text));
	listening_owner(port, owner, sizeof(owner));
	if (error == -EADDRINUSE)
		log_error("--listen: %s is in use by %s: give another port, or 0 for a free one",
			  text, owner);
	else
		log_error("--listen: %s: this host has no such address", text);
}

static void explain_memory(const struct observation *o)
{
	size_t services = o->options->port_count ? o->options->port_count : 1;
	uint64_t bytes = 0;

	(void)budget_least(&o->config, (uint32_t)services, &bytes);
	log_error("--memory: %.4g MiB is too little: %zu service%s may take %.4g MiB on this host",
		  (double)o->options->memory / (1 << 20), services, services == 1 ? "" : "s",
		  (double)bytes / (1 << 20));
}

static int start(struct observation *o)
{
	autoclose int manager_fd = -1;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		r = steps[i].step(o);
		if (r == -ESRCH) {
			log_error("--pid: there is no process %u", o->options->pid);
			return EXIT_FAILURE;
		}
		if (r == -EDQUOT) {
			explain_memory(o);
			return EXIT_USAGE;
		}
		if (r == -EADDRINUSE || r == -EADDRNOTAVAIL) {
			explain_address(o->options, r);
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
	manager_fd = notify_open();
	if (give_up(o) < 0)
		return EXIT_FAILURE;
	reserve_fill();
	notify_ready(manager_fd, outputs_url(&o->outputs));
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
	r = join_run(run, 0);
	if (r < 0)
		log_errno(r, "cannot lay calls into requests");
	r = outputs_document(&o->outputs, run);
	if (r < 0)
		log_errno(r, "cannot write '%s'", options->json);
	if (!options->quiet && !options->record &&
	    !(options->json && !strcmp(options->json, "-"))) {
		report_options_for(stdout, &report);
		report.verbose = options->verbose;
		report_text(run, &report, stdout);
	}
	if (outputs_end(&o->outputs, run) < 0)
		r = -EIO;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run_observation(struct observation *o)
{
	int status = 0, exit_code, r;

	exit_code = outputs_prepare(&o->outputs, o->options, is_confined(o->options));
	if (!exit_code)
		exit_code = find_user(o);
	if (!exit_code)
		exit_code = find_target(o);
	if (!exit_code)
		exit_code = find_cgroup(o);
	heap_loading();
	if (!exit_code)
		exit_code = make_plan(o);
	if (exit_code)
		return exit_code;
	/* The check for silent ports sees only listeners of our own namespace. */
	if (!o->target.netns[0] && !o->options->all_netns)
		warn_of_silent_ports(o->options);
	exit_code = start(o);
	if (exit_code)
		return exit_code;
	r = loop_run(o->loop, &status);
	/* Give the terminal back before the summary is printed. */
	outputs_leave(&o->outputs);
	if (r < 0)
		log_errno(r, "observing ended early");
	return finish(o) || r < 0 ? EXIT_FAILURE : status;
}

int observe(const struct observe_options *options)
{
	struct observation o = {
		.options = options, .target.cgroup_fd = -1, .netns_fd = -1, .cgroup_fd = -1};
	int exit_code = run_observation(&o);

	loop_close(o.loop);
	outputs_close(&o.outputs);
	model_free(o.model);
	loader_close(o.loader);
	cleanup_close(&o.netns_fd);
	cleanup_close(&o.cgroup_fd);
	target_free(&o.target);
	return exit_code;
}
