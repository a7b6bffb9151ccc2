// SPDX-License-Identifier: MIT
/*
 * `sojourn doctor`, the top layer: looks once or repeatedly, prints, and returns the state as an
 * exit code.
 */
#include "doctor.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "process/reserve.h"
#include "resources/events.h"
#include "resources/look.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/log.h"
#include "sojourn/report.h"

#define NAMED "/run/netns"

/* ---- which network namespaces are looked at ---- */

struct targets {
	struct look_target *entries;
	size_t count;
	size_t refused; /* namespaces that we may not open */
};

static void free_targets(struct targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		cleanup_close(&targets->entries[i].fd);
	free(targets->entries);
	*targets = (struct targets){};
}

/* Add the namespace at @path (NULL: our own) unless it is there already. */
static int add(struct targets *targets, const char *path, const char *name)
{
	struct look_target target = {};
	autoclose int fd = -1;
	int r = netns_open(path, &fd, &target.inode);

	for (size_t i = 0; !r && i < targets->count; i++) {
		if (targets->entries[i].inode == target.inode)
			return 0;
	}
	if (!r)
		r = ARRAY_GROW(targets->entries, targets->count);
	if (r)
		return r;
	target.fd = TAKE_FD(fd);
	snprintf(target.name, sizeof(target.name), "%s", name);
	targets->entries[targets->count++] = target;
	return 0;
}

static int add_all_in(struct targets *targets, const char *folder, const char *format,
		      const char *name_format)
{
	autoclosedir DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[320], name[64];
		bool process = isdigit((unsigned char)entry->d_name[0]);
		int r;

		if (entry->d_name[0] == '.' || (!strcmp(folder, "/proc") && !process))
			continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path, sizeof(path), format, entry->d_name);
		snprintf(name, sizeof(name), name_format, entry->d_name);
#pragma GCC diagnostic pop
		r = add(targets, path, name);
		if (r == -ENOMEM)
			return r;
		/* An ended process has none; one that we may not look into counts. */
		targets->refused += r == -EACCES || r == -EPERM;
	}
	return 0;
}

static int add_named(struct targets *targets, const char *name)
{
	char path[320];
	int r;

	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), NAMED "/%s", name);
	r = add(targets, path, name);
	if (r < 0) {
		log_error("--netns: '%s' cannot be opened: %s: give a name of 'ip netns list', or "
			  "a path such as /proc/PID/ns/net",
			  name, strerror(-r));
		return -EINVAL;
	}
	return 0;
}

static int add_of_process(struct targets *targets, uint32_t pid)
{
	char path[64], name[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	snprintf(name, sizeof(name), "of pid %u", pid);
	r = add(targets, path, name);
	if (r == -ENOENT || r == -ESRCH) {
		log_error("--pid: there is no process %u", pid);
		return -EINVAL;
	}
	if (r < 0)
		log_errno(r, "cannot open the network namespace of process %u", pid);
	return r;
}

/* 0; -EINVAL: an error was printed; or -errno. */
static int find_targets(const struct doctor_options *options, struct targets *ret_targets)
{
	struct targets targets = {};
	int r;

	if (options->netns)
		r = add_named(&targets, options->netns);
	else if (options->pid)
		r = add_of_process(&targets, options->pid);
	else
		r = add(&targets, NULL, "");
	if (!r && options->all_netns)
		r = add_all_in(&targets, NAMED, NAMED "/%s", "%s");
	if (!r && options->all_netns)
		r = add_all_in(&targets, "/proc", "/proc/%s/ns/net", "of pid %s");
	if (r < 0) {
		free_targets(&targets);
		return r;
	}
	*ret_targets = targets;
	return 0;
}

/* ---- looks ---- */

/* Print the document itself, or its text for people. */
static int print(const struct doctor_options *options, const struct run *run)
{
	struct report_options page;
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	if (options->json)
		return run_write(run, "-");
	if (options->watch) {
		strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now, &tm));
		printf("---- %s ----\n", when);
	}
	report_options_for(stdout, &page);
	return report_host(run, &page, stdout) || fflush(stdout) ? -EIO : 0;
}

/* Look once and print the result. 0 or -errno; -EINTR: nothing was printed. */
static int look(struct look *look, const struct doctor_options *options, const sigset_t *stop,
		enum severity *ret_worst)
{
	autorun struct run *run = NULL;
	int r = look_once(look, options->watch ? options->interval_ns : options->sample_ns, stop,
			  &run, ret_worst);

	if (r == -EINTR)
		return r;
	if (r == -ENODATA)
		return log_errno(-EPERM, "cannot look into any of the network namespaces");
	if (r < 0)
		return log_errno(r, "cannot look");
	r = print(options, run);
	return r < 0 ? log_errno(r, "cannot print the report") : 0;
}

/* A notice is no reason to wake anybody. */
static const int exits[] = {
	[SEVERITY_NONE] = DOCTOR_HEALTHY,
	[SEVERITY_NOTICE] = DOCTOR_HEALTHY,
	[SEVERITY_WARNING] = DOCTOR_WARNING,
	[SEVERITY_CRITICAL] = DOCTOR_CRITICAL,
};

static int look_on(struct look *seer, const struct doctor_options *options)
{
	enum severity worst = SEVERITY_NONE;
	sigset_t stop;
	int r;

	/* From now on a signal ends a sample, and then the program. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	reserve_fill();
	do {
		r = look(seer, options, &stop, &worst);
		/* With --watch the next look may see more. */
	} while (r != -EINTR && r != -EIO && options->watch);
	if (r < 0 && r != -EINTR)
		return DOCTOR_FAILED;
	return exits[worst];
}

int doctor_main(int argc, char **argv)
{
	CLEANUP(cleanup_events_close) struct resource_events *events = NULL;
	CLEANUP(free_targets) struct targets targets = {};
	CLEANUP(cleanup_look_free) struct look *seer = NULL;
	struct look_options looks = {.resources = true};
	struct doctor_options options;
	int r = doctor_parse(argc, argv, &options);

	if (r < 0)
		return r == -ECANCELED ? EXIT_SUCCESS : DOCTOR_USAGE;
	log_open("sojourn doctor", false);
	r = find_targets(&options, &targets);
	if (r == -EINVAL)
		return DOCTOR_USAGE;
	if (!r && (options.watch || options.syscalls))
		looks.events_error = events_open(options.syscalls, -1, &events);
	looks.targets = targets.entries;
	looks.target_count = targets.count;
	looks.refused = targets.refused;
	looks.pid = options.pid;
	looks.port = options.port;
	looks.procfs = options.procfs;
	looks.every_user = options.all_users || options.netns;
	looks.every_netns = options.all_netns;
	looks.events = events;
	if (!r)
		r = look_new(&looks, &seer);
	if (r < 0) {
		log_errno(r, "cannot begin");
		return DOCTOR_FAILED;
	}
	return look_on(seer, &options);
}
