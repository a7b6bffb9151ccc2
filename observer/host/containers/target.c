// SPDX-License-Identifier: MIT
/* Looks for namespaces, cgroups, containers and pods by what users call them; see target.h. */
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cgroup.h"
#include "container.h"
#include "host/process.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/* Maximum of containers or pods that a message lists. */
#define NAMED_MAX 8

void target_free(struct target *target)
{
	cleanup_close(&target->cgroup_fd);
	free(target->pids);
	*target = (struct target){.cgroup_fd = -1};
}

/* ---- network namespaces ---- */

int target_of_netns(const char *name, char *reason, size_t size, struct target *ret_target)
{
	struct target target = {.cgroup_fd = -1};
	struct statfs fs;
	int n = snprintf(target.netns, sizeof(target.netns), "%s%s",
			 strchr(name, '/') ? "" : "/run/netns/", name);

	if ((size_t)n >= sizeof(target.netns) || statfs(target.netns, &fs)) {
		snprintf(reason, size,
			 "'%s': %s: give a name of 'ip netns list', or a path such as "
			 "/proc/PID/ns/net",
			 name, strerror((size_t)n >= sizeof(target.netns) ? ENAMETOOLONG : errno));
		return -ENOENT;
	}
	if (fs.f_type != NSFS_MAGIC) {
		snprintf(reason, size,
			 "'%s' is no network namespace: give a name of 'ip netns list', or a path "
			 "such as /proc/PID/ns/net",
			 name);
		return -EINVAL;
	}
	*ret_target = target;
	return 0;
}

static uint32_t netns_of(uint32_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	return stat(path, &st) ? 0 : (uint32_t)st.st_ino;
}

/* Find the one network namespace of all processes. Without a process it is our own. */
static int find_netns(struct target *target, char *reason, size_t size)
{
	uint32_t own = netns_of((uint32_t)getpid()), found = 0;

	for (size_t i = 0; i < target->pid_count; i++) {
		uint32_t netns = netns_of(target->pids[i]);

		if (!netns || netns == found)
			continue;
		if (found) {
			snprintf(reason, size,
				 "its processes are in several network namespaces, as %u of "
				 "process %u: name one by --netns /proc/PID/ns/net",
				 netns, target->pids[i]);
			return -EINVAL;
		}
		found = netns;
		if (netns != own)
			snprintf(target->netns, sizeof(target->netns), "/proc/%u/ns/net",
				 target->pids[i]);
	}
	if (target->pid_count && !found) {
		snprintf(reason, size, "the network namespace of process %u may not be looked at",
			 target->pids[0]);
		return -EACCES;
	}
	return 0;
}

/* ---- cgroups ---- */

static int add_pids(int folder, struct target *target)
{
	int fd = openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	autofclose FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned int pid;

	/* The number is 0 for a process that is not visible in our PID namespace. */
	while (file && fscanf(file, "%u", &pid) == 1) {
		if (!pid)
			continue;
		if (ARRAY_GROW(target->pids, target->pid_count) < 0)
			return -ENOMEM;
		target->pids[target->pid_count++] = pid;
	}
	return 0;
}

/* Add the processes of the cgroup at @folder and of all below it. Close @folder. */
static int add_below(int folder, struct target *target)
{
	autoclosedir DIR *dir = fdopendir(folder);
	struct dirent *entry;
	int r = dir ? add_pids(folder, target) : -errno;

	while (!r && (entry = readdir(dir))) {
		int below;

		if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
			continue;
		below = openat(folder, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* It may have gone meanwhile. */
		if (below >= 0)
			r = add_below(below, target);
	}
	return r;
}

static int take_cgroup(int cgroup_fd, char *reason, size_t size, struct target *ret_target)
{
	CLEANUP(target_free) struct target target = {.cgroup_fd = cgroup_fd};
	int fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : add_below(fd, &target);

	if (r < 0) {
		snprintf(reason, size, "%s", strerror(-r));
		return r;
	}
	r = find_netns(&target, reason, size);
	if (r < 0)
		return r;
	*ret_target = target;
	target = (struct target){.cgroup_fd = -1};
	return 0;
}

int target_of_cgroup(const char *path, char *reason, size_t size, struct target *ret_target)
{
	int fd, r = cgroup_open(path, reason, size, &fd);

	return r < 0 ? r : take_cgroup(fd, reason, size, ret_target);
}

/* ---- containers and pods ---- */

struct candidate {
	struct run_place place;
	uint32_t pid;
};

struct search {
	bool pods;
	const char *word;
	struct candidate *found; /* each container or pod once */
	size_t count;
};

static const char *key_of(const struct search *search, const struct run_place *place)
{
	return search->pods ? place->pod_uid : place->container_id;
}

static int look_at(struct search *search, uint32_t pid)
{
	struct run_place place;
	struct candidate *added;

	if (container_read(pid, &place) < 0 || !*key_of(search, &place))
		return 0;
	for (size_t i = 0; i < search->count; i++)
		if (!strcmp(key_of(search, &search->found[i].place), key_of(search, &place)))
			return 0;
	added = ARRAY_APPEND(search->found, search->count);
	if (!added)
		return -ENOMEM;
	container_name("", &place);
	*added = (struct candidate){place, pid};
	return 0;
}

static int look_at_all(struct search *search)
{
	autoclosedir DIR *dir = opendir("/proc");
	int r = dir ? 0 : -errno;
	uint32_t pid;

	while (!r && (pid = process_next(dir)))
		r = look_at(search, pid);
	return r;
}

static void name(const struct search *search, const struct run_place *place, char *text,
		 size_t size)
{
	if (search->pods && place->pod[0])
		snprintf(text, size, "%s/%s", place->pod_namespace, place->pod);
	else if (search->pods)
		snprintf(text, size, "uid %s", place->pod_uid);
	else
		snprintf(text, size, "%s%s%.12s", place->container, place->container[0] ? " " : "",
			 place->container_id);
}

static bool is_meant(const struct search *search, const struct run_place *place)
{
	char text[sizeof(place->pod_namespace) + sizeof(place->pod)];

	if (search->pods) {
		name(search, place, text, sizeof(text));
		return place->pod[0] && !strcmp(text, search->word);
	}
	return !strcmp(place->container, search->word) ||
	       !strncmp(place->container_id, search->word, strlen(search->word));
}

/* List "web 3f2a…, db 77c1…": all, or with @meant those that match the word. */
static void list(const struct search *search, bool meant, char *text, size_t size)
{
	size_t named = 0, used = 0;

	*text = 0;
	for (size_t i = 0; i < search->count; i++) {
		const struct run_place *place = &search->found[i].place;
		char one[sizeof(place->pod_namespace) + sizeof(place->pod)];

		if ((meant && !is_meant(search, place)) || used >= size)
			continue;
		if (named++ == NAMED_MAX) {
			snprintf(text + used, size - used, ", …");
			return;
		}
		name(search, place, one, sizeof(one));
		used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", one);
	}
}

static const struct candidate *choose(const struct search *search, char *reason, size_t size)
{
	const struct candidate *chosen = NULL;
	const char *kind = search->pods ? "pod" : "container";
	char names[512];
	size_t meant = 0;

	for (size_t i = 0; i < search->count; i++) {
		if (!is_meant(search, &search->found[i].place))
			continue;
		chosen = &search->found[i];
		meant++;
	}
	list(search, meant > 1, names, sizeof(names));
	if (meant > 1)
		snprintf(reason, size, "'%s' matches several %ss: %s; %s", search->word, kind,
			 names,
			 search->pods ? "--cgroup takes one of them"
				      : "more digits of the id distinguish them");
	else if (!meant && *names)
		snprintf(reason, size,
			 "'%s' matches no %s with a process on this host; those with one: %s",
			 search->word, kind, names);
	else if (!meant)
		snprintf(reason, size, "'%s' matches nothing: no process on this host is in a %s",
			 search->word, kind);
	return meant == 1 ? chosen : NULL;
}

/*
 * Take the candidate's cgroup of version 2, with all below it. If there is none, take the network namespace of its
 * process, which must be its own.
 */
static int take_candidate(const struct search *search, const struct candidate *candidate,
			  char *reason, size_t size, struct target *ret_target)
{
	struct target target = {.cgroup_fd = -1};
	const struct run_place *place = &candidate->place;
	int fd, r = cgroup_of_part(candidate->pid, key_of(search, place), &fd);

	if (!r)
		return take_cgroup(fd, reason, size, ret_target);
	target.pids = malloc(sizeof(*target.pids));
	if (!target.pids)
		return -ENOMEM;
	target.pids[0] = candidate->pid;
	target.pid_count = 1;
	r = find_netns(&target, reason, size);
	if (!r && !target.netns[0]) {
		snprintf(reason, size,
			 "'%s' is in the observer's own network namespace, and its cgroup of "
			 "version 2 is not visible: which listeners are its own is not known",
			 search->word);
		r = -EOPNOTSUPP;
	}
	if (r < 0) {
		target_free(&target);
		return r;
	}
	*ret_target = target;
	return 0;
}

static int find(struct search *search, char *reason, size_t size, struct target *ret_target)
{
	const struct candidate *chosen;
	int r = look_at_all(search);

	if (r < 0) {
		snprintf(reason, size, "%s", strerror(-r));
		return r;
	}
	chosen = choose(search, reason, size);
	return chosen ? take_candidate(search, chosen, reason, size, ret_target) : -ENOENT;
}

int target_of_container(const char *word, char *reason, size_t size, struct target *ret_target)
{
	struct search search = {.word = word};
	int r = find(&search, reason, size, ret_target);

	free(search.found);
	return r;
}

int target_of_pod(const char *word, char *reason, size_t size, struct target *ret_target)
{
	struct search search = {.word = word, .pods = true};
	int r = find(&search, reason, size, ret_target);

	free(search.found);
	return r;
}
