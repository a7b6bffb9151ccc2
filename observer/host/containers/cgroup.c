// SPDX-License-Identifier: MIT
/* Finds cgroups by way of /proc; see cgroup.h. */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "host/process.h"
#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"

int cgroup_open(const char *path, char *reason, size_t size, int *ret_fd)
{
	autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0) {
		snprintf(reason, size, "'%s': %s", path, strerror(errno));
		return -errno;
	}
	if (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
		snprintf(reason, size, "'%s' is not a cgroup of version 2", path);
		return -EINVAL;
	}
	/* Exists in every cgroup but the root (Documentation/admin-guide/cgroup-v2.rst). */
	if (faccessat(fd, "cgroup.type", F_OK, 0) < 0) {
		snprintf(reason, size, "'%s' is the root cgroup, which is all of this host", path);
		return -EINVAL;
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- the cgroup of a process ---- */

/* Find where the hierarchy of version 2 is mounted: /sys/fs/cgroup, or below it beside version 1. */
static int find_mount(char *path, size_t size)
{
	autofclose FILE *file = fopen("/proc/self/mountinfo", "re");
	char line[PATH_MAX + 512], at[PATH_MAX], type[32];

	while (file && fgets(line, sizeof(line), file)) {
		const char *rest = strstr(line, " - ");

		if (rest && sscanf(line, "%*s %*s %*s / %4095s", at) == 1 &&
		    sscanf(rest, " - %31s", type) == 1 && !strcmp(type, "cgroup2")) {
			snprintf(path, size, "%s", at);
			return 0;
		}
	}
	return -ENOENT;
}

/* Read the cgroup's path as /proc writes it. It starts at the root that we see, or is "/../…" outside of that. */
static int read_path(uint32_t pid, char *path, size_t size)
{
	autofclose FILE *file = procfs_open("/proc/%u/cgroup", pid);
	char line[PATH_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "0::", 3))
			continue;
		snprintf(path, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
		return 0;
	}
	return -ESRCH;
}

/* Return where @part begins in @path; NULL: nowhere. An underscore in @path matches a dash in @part. */
static char *find_part(char *path, const char *part)
{
	size_t length = strlen(part);

	for (char *at = path; *at; at++) {
		size_t same = 0;

		while (same < length && at[same] &&
		       (at[same] == part[same] || (at[same] == '_' && part[same] == '-')))
			same++;
		if (same == length)
			return at;
	}
	return NULL;
}

int cgroup_of_part(uint32_t pid, const char *part, int *ret_fd)
{
	char mount[PATH_MAX], path[PATH_MAX], whole[2 * PATH_MAX], reason[256];
	char *found;
	int r = find_mount(mount, sizeof(mount));

	if (!r)
		r = read_path(pid, path, sizeof(path));
	if (r < 0)
		return r;
	found = find_part(path, part);
	if (!found || !strncmp(path, "/..", 3))
		return -ENOENT;
	found[strcspn(found, "/")] = 0;
	snprintf(whole, sizeof(whole), "%s%s", mount, path);
	return cgroup_open(whole, reason, sizeof(reason), ret_fd);
}

/* ---- the cgroup of services ---- */

struct search {
	char path[PATH_MAX];  /* empty: none found yet */
	char other[PATH_MAX]; /* another one; empty: none */
	uint32_t pid;	      /* the process in @path */
	bool without;	      /* a process was found whose cgroup cannot be read */
};

static void look(struct search *search, uint32_t pid)
{
	char path[PATH_MAX];

	if (read_path(pid, path, sizeof(path)) < 0) {
		search->without = true;
		return;
	}
	if (!search->path[0]) {
		memcpy(search->path, path, sizeof(path));
		search->pid = pid;
	} else if (strcmp(search->path, path)) {
		memcpy(search->other, path, sizeof(path));
	}
}

static void visit(void *context, uint32_t pid, const struct process_listener *listener)
{
	(void)listener;
	look(context, pid);
}

static bool wanted(const struct process_listener *listener, const uint16_t *ports, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ports[i] == listener->port)
			return true;
	}
	return false;
}

static int look_at_holders(struct search *search, uint32_t pid, const uint16_t *ports, size_t count)
{
	autofree struct process_listener *listeners = NULL;
	size_t found, kept = 0;
	int r = process_listeners(pid, &listeners, &found);

	if (r < 0)
		return r;
	for (size_t i = 0; i < found; i++) {
		if (wanted(&listeners[i], ports, count))
			listeners[kept++] = listeners[i];
	}
	process_held_by_all(listeners, kept, visit, search);
	return 0;
}

static int refuse(char *reason, size_t size, const char *why)
{
	snprintf(reason, size, "%s", why);
	return -ENOENT;
}

static int open_found(const struct search *search, char *reason, size_t size, int *ret_fd)
{
	char mount[PATH_MAX], path[2 * PATH_MAX];

	/* The kernel shows no cgroups before their hierarchy has been mounted for the first time. */
	if (find_mount(mount, sizeof(mount)) < 0)
		return refuse(reason, size, "no cgroup hierarchy of version 2 is mounted");
	if (!search->path[0] && search->without)
		return refuse(reason, size, "the cgroup of the listening process is not known");
	if (!search->path[0])
		return refuse(reason, size, "nothing listens there yet: its cgroup is not known");
	if (search->other[0]) {
		snprintf(reason, size, "the processes are in several cgroups, as %.90s and %.90s",
			 search->path, search->other);
		return -ENOENT;
	}
	if (!strncmp(search->path, "/..", 3))
		return refuse(reason, size, "the process's cgroup is not visible from here");
	snprintf(path, sizeof(path), "%s%s", mount, search->path);
	if (!strcmp(search->path, "/")) {
		snprintf(reason, size,
			 "process %u is in the root cgroup, which is all of this host",
			 search->pid);
		return -EINVAL;
	}
	return cgroup_open(path, reason, size, ret_fd);
}

int cgroup_of_services(uint32_t pid, const uint16_t *ports, size_t port_count, char *reason,
		       size_t size, int *ret_fd)
{
	autofree struct search *search = calloc(1, sizeof(*search));
	int r = 0;

	if (!search)
		return -ENOMEM;
	if (port_count)
		r = look_at_holders(search, pid, ports, port_count);
	else if (pid)
		look(search, pid);
	else
		return refuse(reason, size, "listeners of all cgroups are observed");
	if (r < 0) {
		snprintf(reason, size, "%s", strerror(-r));
		return r;
	}
	return open_found(search, reason, size, ret_fd);
}
