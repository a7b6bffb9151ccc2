// SPDX-License-Identifier: MIT
/* Opens network namespaces by name, path, process, or all that there are; see doctor_targets.h. */
#include "doctor_targets.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"
#include "sojourn/log.h"

#define NAMED "/run/netns"

static int append(struct doctor_targets *targets, const struct doctor_target *target)
{
	struct doctor_target *more =
		reallocarray(targets->entries, targets->count + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	more[targets->count++] = *target;
	targets->entries = more;
	return 0;
}

static bool known(const struct doctor_targets *targets, uint32_t inode)
{
	for (size_t i = 0; i < targets->count; i++) {
		if (targets->entries[i].inode == inode)
			return true;
	}
	return false;
}

/* Adds the namespace at @path unless it is there already. */
static int add(struct doctor_targets *targets, const char *path, const char *name)
{
	struct doctor_target target = {};
	autoclose int fd = -1;
	struct stat st;
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (known(targets, (uint32_t)st.st_ino))
		return 0;
	target.fd = fd;
	target.inode = (uint32_t)st.st_ino;
	snprintf(target.name, sizeof(target.name), "%s", name);
	r = append(targets, &target);
	if (!r)
		(void)TAKE_FD(fd);
	return r;
}

static int add_all_in(struct doctor_targets *targets, const char *folder, const char *format,
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
		/* A process that ended has none; one that we may not look into counts. */
		targets->refused += r == -EACCES || r == -EPERM;
	}
	return 0;
}

static int add_named(struct doctor_targets *targets, const char *name)
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

static int add_of_process(struct doctor_targets *targets, uint32_t pid)
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

static int add_own(struct doctor_targets *targets)
{
	struct doctor_target own = {.fd = -1};
	struct stat st;

	if (!stat("/proc/self/ns/net", &st))
		own.inode = (uint32_t)st.st_ino;
	return append(targets, &own);
}

static bool is_own(const struct doctor_target *target)
{
	struct stat st;

	return !stat("/proc/self/ns/net", &st) && target->inode == (uint32_t)st.st_ino;
}

/* Our own needs no entering, and so no privilege. */
static void settle(struct doctor_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++) {
		if (targets->entries[i].fd >= 0 && is_own(&targets->entries[i])) {
			close(targets->entries[i].fd);
			targets->entries[i].fd = -1;
		}
	}
}

int doctor_targets_find(const struct doctor_options *options, struct doctor_targets *ret_targets)
{
	struct doctor_targets targets = {};
	int r;

	if (options->netns)
		r = add_named(&targets, options->netns);
	else if (options->pid)
		r = add_of_process(&targets, options->pid);
	else
		r = add_own(&targets);
	if (!r && options->all_netns)
		r = add_all_in(&targets, NAMED, NAMED "/%s", "%s");
	if (!r && options->all_netns)
		r = add_all_in(&targets, "/proc", "/proc/%s/ns/net", "of pid %s");
	if (r < 0) {
		doctor_targets_free(&targets);
		return r;
	}
	settle(&targets);
	*ret_targets = targets;
	return 0;
}

void doctor_targets_free(struct doctor_targets *targets)
{
	for (size_t i = 0; i < targets->count; i++)
		cleanup_close(&targets->entries[i].fd);
	free(targets->entries);
	*targets = (struct doctor_targets){};
}
