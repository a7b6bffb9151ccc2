// SPDX-License-Identifier: MIT
/* The order of a look: first reading, sample, second reading, owners, findings; see look.h. */
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "harm.h"
#include "process/reserve.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"
#include "sojourn/text.h"

#define POINT_NS (100 * NSEC_PER_MSEC)

struct look {
	struct look_options options;
	struct resource_pair *pairs;			 /* one per target */
	struct resource_numbers host_before, host_after; /* read in our own namespace */
	struct process_list processes;
	unsigned int points; /* of the trend of their descriptors */
	uint64_t point_ns;   /* between two of them */
	uint64_t next_ns;    /* when the next one is due */
	struct events_reading events_before, events_after;
	int home_fd;
	enum socket_source source;
	uint32_t user; /* who runs this program */
};

int look_new(const struct look_options *options, struct look **ret_look)
{
	CLEANUP(cleanup_look_free) struct look *look = calloc(1, sizeof(*look));

	if (!look)
		return -ENOMEM;
	look->options = *options;
	look->user = getuid();
	/* Open all descriptors now: the look then works also when the host runs out of files. */
	look->home_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	look->source = options->procfs ? SOCKETS_PROCFS : sockets_source();
	look->pairs = calloc(options->target_count, sizeof(*look->pairs));
	if (!look->pairs)
		return -ENOMEM;
	*ret_look = TAKE_PTR(look);
	return 0;
}

void look_free(struct look *look)
{
	if (!look)
		return;
	for (size_t i = 0; look->pairs && i < look->options.target_count; i++) {
		netns_free(&look->pairs[i].before);
		netns_free(&look->pairs[i].after);
		owners_free(&look->pairs[i].owners);
		close_wait_forget(&look->pairs[i]);
	}
	events_reading_free(&look->events_before);
	events_reading_free(&look->events_after);
	free(look->pairs);
	process_free(&look->processes);
	cleanup_close(&look->home_fd);
	free(look);
}

/* Add a clause about something that could not be seen. Without memory it is left out. */
__attribute__((format(printf, 2, 3))) static void note(struct run *run, const char *format, ...)
{
	autofree char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	text = text_format_args(format, arguments);
	va_end(arguments);
	if (text)
		(void)run_add_text(&run->not_seen, text);
}

/* ---- readings ---- */

static int read_target(struct look *look, size_t index, uint64_t sample_ns,
		       struct resource_netns *ret_netns)
{
	const struct look_target *target = &look->options.targets[index];
	int r = netns_enter(target->fd);

	if (r < 0)
		return r;
	r = netns_read(look->source, (uint32_t)(sample_ns / NSEC_PER_MSEC), ret_netns);
	if (!r)
		memcpy(ret_netns->name, target->name, sizeof(target->name));
	if (target->fd >= 0)
		(void)netns_enter(look->home_fd);
	return r;
}

static void read_before(struct look *look)
{
	numbers_read(&look->host_before);
	for (size_t i = 0; i < look->options.target_count; i++) {
		struct resource_pair *pair = &look->pairs[i];

		netns_free(&pair->before);
		(void)read_target(look, i, 0, &pair->before);
	}
}

static void read_after(struct look *look, uint64_t sample_ns, struct run *run)
{
	numbers_read(&look->host_after);
	for (size_t i = 0; i < look->options.target_count; i++) {
		struct resource_pair *pair = &look->pairs[i];
		int r;

		netns_free(&pair->after);
		r = read_target(look, i, sample_ns, &pair->after);
		/* A target without a name is the only one: conclude() then returns -ENODATA. */
		if (r < 0 && look->options.targets[i].name[0])
			note(run, "network namespace %s: %s%s", look->options.targets[i].name,
			     strerror(-r), r == -EPERM ? " (entering it needs CAP_SYS_ADMIN)" : "");
		pair->seconds = (double)(pair->after.at_ns - pair->before.at_ns) / NSEC_PER_SEC;
	}
}

static void read_events(struct look *look, struct events_reading *reading)
{
	events_reading_free(reading);
	if (look->options.events)
		(void)events_read(look->options.events, reading);
}

/* The second reading of the last sample becomes the first of the next. */
static void advance(struct look *look)
{
	for (size_t i = 0; i < look->options.target_count; i++) {
		struct resource_pair *pair = &look->pairs[i];

		netns_free(&pair->before);
		pair->before = pair->after;
		pair->after = (struct resource_netns){};
		close_wait_remember(pair);
	}
	look->host_before = look->host_after;
	events_reading_free(&look->events_before);
	look->events_before = look->events_after;
	look->events_after = (struct events_reading){};
}

static void find_owners(struct look *look, struct run *run)
{
	for (size_t i = 0; i < look->options.target_count; i++) {
		struct resource_pair *pair = &look->pairs[i];
		const struct look_target *target = &look->options.targets[i];
		int r;

		owners_free(&pair->owners);
		if (!pair->after.at_ns || netns_enter(target->fd) < 0)
			continue;
		r = owners_find(&pair->before, &pair->after, look->options.pid != 0,
				look->options.port, &pair->owners);
		if (target->fd >= 0)
			(void)netns_enter(look->home_fd);
		if (r < 0)
			note(run, "owners of sockets: %s", strerror(-r));
	}
}

static int read_processes(struct look *look)
{
	RESERVE_SCOPE;

	process_free(&look->processes);
	look->points = 0;
	look->point_ns = POINT_NS;
	return process_list(look->options.pid, &look->processes);
}

int look_begin(struct look *look)
{
	RESERVE_SCOPE;
	int r = read_processes(look);

	if (r < 0)
		return r;
	read_before(look);
	read_events(look, &look->events_before);
	return 0;
}

size_t look_bytes(const struct look *look)
{
	size_t bytes = sizeof(*look) + look->processes.count * sizeof(*look->processes.entries);

	for (size_t i = 0; i < look->options.target_count; i++)
		bytes += sizeof(look->pairs[i]) + netns_bytes(&look->pairs[i].before);
	return bytes;
}

/* Drop every other point, so that the rest are twice as far apart. */
static void thin(struct look *look)
{
	for (size_t i = 0; i < look->processes.count; i++) {
		uint32_t *trend = look->processes.entries[i].trend;

		for (unsigned int j = 0; j < TREND_POINTS / 2; j++)
			trend[j] = trend[2 * j];
	}
	look->points = TREND_POINTS / 2;
	look->point_ns *= 2;
}

void look_point(struct look *look, uint64_t interval_ns)
{
	uint64_t now_ns = clock_now_ns();
	RESERVE_SCOPE;

	if (!look->points)
		look->point_ns = interval_ns;
	/* A late point would bend the line: drop the trend so far, and start a new one with it. */
	if (look->points && now_ns > look->next_ns + look->point_ns / 4)
		look->points = 0, look->point_ns = interval_ns;
	if (look->points && now_ns + look->point_ns / 4 < look->next_ns)
		return;
	process_point(&look->processes, look->points++);
	look->next_ns =
		look->points == 1 ? now_ns + look->point_ns : look->next_ns + look->point_ns;
	if (look->points == TREND_POINTS)
		thin(look);
}

/* The processes that listen on the port: their leaks towards other ports count, too. */
struct listening {
	uint32_t *pids;
	size_t count;
};

static struct listening find_listening(uint16_t port, const struct resource_list *list)
{
	struct listening found = {0};

	for (size_t i = 0; port && i < list->count; i++) {
		const struct resource *listener = &list->entries[i];

		if (listener->kind != RESOURCE_ACCEPT_QUEUE || listener->port != port)
			continue;
		for (size_t k = 0; k < listener->owner_count; k++) {
			uint32_t *pid = ARRAY_APPEND(found.pids, found.count);

			if (pid)
				*pid = listener->owners[k].pid;
		}
	}
	return found;
}

static bool is_owned(const struct resource *resource, const uint32_t *pids, size_t count)
{
	for (size_t i = 0; i < resource->owner_count; i++)
		for (size_t k = 0; k < count; k++)
			if (resource->owners[i].pid == pids[k])
				return true;
	return false;
}

/* The host's and the namespace's limits concern every process and port. */
static bool selected(const struct look_options *options, const struct listening *listening,
		     const struct resource *resource)
{
	static const bool of_socket[RESOURCE_KINDS] = {
		[RESOURCE_PORTS] = true,	 [RESOURCE_ACCEPT_QUEUE] = true,
		[RESOURCE_SYN_QUEUE] = true,	 [RESOURCE_CLOSE_WAIT] = true,
		[RESOURCE_UNREAD_DATA] = true,	 [RESOURCE_CLOSING_DATA] = true,
		[RESOURCE_DEAD_QUEUED] = true,	 [RESOURCE_UDP_BUFFER] = true,
		[RESOURCE_PORT_FAILURES] = true, [RESOURCE_ADDRESS_FAILURES] = true,
	};
	bool any_port = !resource->port && !resource->other_port;

	if (options->pid &&
	    (of_socket[resource->kind] || resource->kind == RESOURCE_DESCRIPTORS ||
	     resource->kind == RESOURCE_DESCRIPTOR_FAILURES) &&
	    !is_owned(resource, &options->pid, 1))
		return false;
	return !options->port || !of_socket[resource->kind] || any_port ||
	       resource->port == options->port || resource->other_port == options->port ||
	       is_owned(resource, listening->pids, listening->count);
}

static void select_resources(const struct look_options *options, struct resource_list *list)
{
	struct listening listening = find_listening(options->port, list);
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (!selected(options, &listening, &list->entries[i]))
			continue;
		if (kept != i)
			list->entries[kept] = list->entries[i];
		kept++;
	}
	list->count = kept;
	free(listening.pids);
}

static const struct resource_netns *netns_of(const void *context, uint32_t inode)
{
	const struct look *look = context;

	for (size_t i = 0; i < look->options.target_count; i++) {
		const struct resource_netns *netns = &look->pairs[i].after;

		if (netns->at_ns && netns->inode == inode)
			return netns;
	}
	return NULL;
}

static void note_events(const struct look *look, struct run *run)
{
	if (look->options.events_error)
		note(run,
		     "connect() calls that fail, and who closes first, as it happens: %s "
		     "(needs CAP_BPF and CAP_PERFMON)",
		     strerror(-look->options.events_error));
	if (!look->options.events)
		return;
	if (!events_sees_files(look->options.events))
		note(run, "EMFILE, ENFILE and EADDRINUSE as they happen: this kernel "
			  "refuses fexit programs ('sojourn doctor --syscalls' counts "
			  "them, at a price)");
	if (!events_sees_depths(look->options.events))
		note(run, "how deep accept queues get between two readings: "
			  "tp_btf/sk_data_ready is refused (before Linux 6.3)");
	if (look->events_after.failures_lost)
		note(run, "processes and addresses of %llu failed calls",
		     (unsigned long long)look->events_after.failures_lost);
	if (look->events_after.actions_lost)
		note(run, "processes and addresses of %llu connections",
		     (unsigned long long)look->events_after.actions_lost);
}

static void note_limits(const struct look *look, bool sampled, struct run *run)
{
	for (size_t i = 0; i < look->options.target_count; i++) {
		const struct resource_netns *netns = &look->pairs[i].after;

		if (!netns->at_ns)
			continue;
		if (netns->error)
			note(run, "TCP sockets: %s", strerror(-netns->error));
		if (netns->source == SOCKETS_PROCFS)
			note(run,
			     "limits and drops of listeners, the age and growth of CLOSE_WAIT, "
			     "data that nobody reads or takes, and ports that are only bound: "
			     "/proc/net/tcp does not show them");
		if (netns->ports.others)
			note(run,
			     "ports of %llu sockets towards lighter destinations: only the "
			     "heaviest are counted one by one",
			     (unsigned long long)netns->ports.others);
		if (netns->listeners.left_out + netns->close_wait.left_out + netns->held.left_out)
			note(run, "%zu sockets more than are kept",
			     (size_t)(netns->listeners.left_out + netns->close_wait.left_out +
				      netns->held.left_out));
	}
	if (!look->host_after.of[NUMBER_TCP_PAGES_MAX].known)
		note(run, "the host's limits of orphans and TCP memory: only the first "
			  "network namespace shows them");
	if (look->processes.unseen)
		note(run,

		     "descriptors and sockets of %llu processes: needs root or CAP_SYS_PTRACE",
		     (unsigned long long)look->processes.unseen);
	if (look->options.refused)
		note(run, "network namespaces of %zu processes: needs root or CAP_SYS_PTRACE",
		     look->options.refused);
	note_events(look, run);
	if (!sampled)
		note(run, "rates, growth, predictions and new drops: --sample 0 takes one reading");
}

/* Make resources and findings of both readings. 0, -ENODATA without any, or -ENOMEM. */
static int conclude(struct look *look, bool past, const struct run *run, struct resource_list *list,
		    struct finding_list *findings)
{
	bool entered = false;
	int r;

	for (size_t i = 0; i < look->options.target_count; i++) {
		const struct resource_pair *pair = &look->pairs[i];

		if (!pair->after.at_ns)
			continue;
		entered = true;
		/* The doctor's sample is chosen, and the observer's period may be a burst alone. */
		resource_measure_ports(pair, &look->processes, look->points,
				       !look->options.resources, list);
		resource_measure_sockets(pair, list);
		resource_measure_close_wait(pair, list);
		resource_measure_held(pair, list);
		resource_measure_limits(pair, list);
	}
	if (!entered)
		return -ENODATA;
	resource_measure_requests(run, list);
	resource_measure_services(run, list);
	resource_measure_host(&look->host_before, &look->host_after, list);
	resource_measure_processes(
		&look->processes, look->points,
		look->points ? (double)look->point_ns * (look->points - 1) / NSEC_PER_SEC : 0, past,
		list);
	resource_measure_events(&look->events_before, &look->events_after, netns_of, look, list);
	select_resources(&look->options, list);
	r = diagnose(list, findings);
	if (!r)
		diagnose_soften(findings, harm_excuse,
				&(struct harm){.run = run,
					       .pid = look->options.pid,
					       .port = look->options.port,
					       .every_user = look->options.every_user,
					       .every_netns = look->options.every_netns,
					       .targets = look->options.targets,
					       .target_count = look->options.target_count,
					       .user = look->user});
	return r;
}

/* The cost of the look, except its CPU time. */
static int say_looked(const struct look *look, struct run *run)
{
	run->looked_at = calloc(1, sizeof(*run->looked_at));
	if (!run->looked_at)
		return -ENOMEM;
	for (size_t i = 0; i < look->options.target_count; i++) {
		const struct resource_pair *pair = &look->pairs[i];

		run->looked_at->namespaces += !!pair->after.at_ns;
		run->looked_at->sockets += pair->before.sockets + pair->after.sockets;
		run->looked_at->descriptor_walks += pair->owners.walks;
	}
	return 0;
}

int look_end(struct look *look, bool past, struct run *run, enum severity *ret_worst)
{
	uint64_t from_ns = look->pairs[0].before.at_ns;
	uint64_t sample_ns = from_ns ? clock_now_ns() - from_ns : 0;
	struct resource_list resources = {};
	struct finding_list findings = {};
	RESERVE_SCOPE;
	int r;

	if (!run->not_seen)
		run->not_seen =
			calloc(1, sizeof(*run->not_seen)); /* looked, and nothing is unseen */
	if (!run->not_seen)
		return -ENOMEM;
	read_after(look, sample_ns, run);
	read_events(look, &look->events_after);
	find_owners(look, run);
	r = process_renew(look->options.pid, &look->processes);
	if (!r)
		r = conclude(look, past, run, &resources, &findings);
	if (!r)
		note_limits(look, sample_ns, run);
	if (!r)
		r = document_findings(&findings, run);
	if (!r && look->options.resources)
		r = document_resources(&resources, run);
	if (!r && look->options.resources)
		r = say_looked(look, run);
	if (!r && ret_worst)
		*ret_worst = diagnose_worst(&findings);
	diagnose_free(&findings);
	resource_list_free(&resources);
	return r;
}

static void take_point(struct look *look, unsigned int point)
{
	RESERVE_SCOPE;

	process_point(&look->processes, point);
}

/* Sleep for @sample_ns, with points of the trend in between. -EINTR: asked to stop. */
static int wait_sample(struct look *look, uint64_t sample_ns, const sigset_t *stop)
{
	unsigned int points = (unsigned int)(sample_ns / POINT_NS) + 1;
	uint64_t from_ns = clock_now_ns();

	points = points < 5 ? 5 : points > TREND_POINTS ? TREND_POINTS : points;
	take_point(look, 0);
	for (unsigned int i = 1; i < points; i++) {
		uint64_t at = from_ns + sample_ns * i / (points - 1), now = clock_now_ns();
		struct timespec rest = {};

		if (at > now) {
			rest.tv_sec = (time_t)((at - now) / NSEC_PER_SEC);
			rest.tv_nsec = (long)((at - now) % NSEC_PER_SEC);
		}
		if (sigtimedwait(stop, NULL, &rest) > 0)
			return -EINTR;
		take_point(look, i);
	}
	look->points = points;
	look->point_ns = sample_ns / (points - 1);
	return 0;
}

static int take_look(struct look *look, uint64_t sample_ns, const sigset_t *stop, struct run *run,
		     enum severity *ret_worst)
{
	int r;

	advance(look);
	if (sample_ns && !look->pairs[0].before.at_ns)
		r = look_begin(look);
	else
		r = read_processes(look);
	/* Also after a failure, so that a repeated look does not try again at once. */
	if (sample_ns && wait_sample(look, sample_ns, stop) < 0)
		r = -EINTR;
	return r ? r : look_end(look, true, run, ret_worst);
}

int look_once(struct look *look, uint64_t sample_ns, const sigset_t *stop, struct run **ret_run,
	      enum severity *ret_worst)
{
	autorun struct run *run = run_new("sojourn", NULL);
	uint64_t cpu_ns = clock_process_cpu_ns();
	int r = run ? take_look(look, sample_ns, stop, run, ret_worst) : -ENOMEM;

	if (r < 0)
		return r;
	if (sample_ns)
		run->duration_ns = look->pairs[0].after.at_ns - look->pairs[0].before.at_ns;
	free(run->started_at);
	run->started_at = run_format_time(clock_wall_ns() - run->duration_ns);
	if (run->looked_at)
		run->looked_at->cpu_ns = clock_process_cpu_ns() - cpu_ns;
	*ret_run = TAKE_PTR(run);
	return 0;
}
