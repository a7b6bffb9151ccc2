// SPDX-License-Identifier: MIT
/* Reads /proc/PID; see resource_process.h. */
#include "resource_process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"
#include "sojourn/run.h"
#include "procfs.h"

const char *const resource_process_types[DESCRIPTOR_TYPES] = {"sockets", "files", "pipes",
							      "event descriptors", "others"};

static int append(struct process_list *list, const struct resource_process *process)
{
	if (list->count == list->room) {
		size_t room = list->room ? list->room * 2 : 128;
		struct resource_process *more = reallocarray(list->entries, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->entries = more;
		list->room = room;
	}
	list->entries[list->count++] = *process;
	return 0;
}

static int add(struct process_list *list, uint32_t pid)
{
	struct resource_process process = {.pid = pid};
	struct run_process read;
	int r = procfs_process(pid, &read);

	if (r < 0)
		return 0; /* it ended meanwhile */
	if (!read.open_fds.known || !read.fd_limit.known) {
		list->unseen++;
		return 0;
	}
	memcpy(process.comm, read.comm, sizeof(process.comm));
	process.fds = read.open_fds.value;
	process.limit = read.fd_limit.value;
	return append(list, &process);
}

/* The number of a process's folder in /proc; 0 for anything else. */
static uint32_t pid_of(const struct dirent *entry)
{
	if (!isdigit((unsigned char)entry->d_name[0]))
		return 0;
	return (uint32_t)strtoul(entry->d_name, NULL, 10);
}

int resource_process_list(uint32_t pid, struct process_list *ret_list)
{
	autoclosedir DIR *dir = opendir("/proc");
	struct process_list list = {};
	struct dirent *entry;
	int r = dir ? 0 : -errno;

	while (!r && !pid && (entry = readdir(dir))) {
		uint32_t found = pid_of(entry);

		if (found)
			r = add(&list, found);
	}
	if (!r && pid)
		r = add(&list, pid);
	if (r < 0) {
		resource_process_free(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/* Kernel threads have no descriptors, and reading few is cheap: only those with some are asked. */
static uint32_t count_fds(uint32_t pid)
{
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	uint32_t count = 0;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	if (stat(path, &st))
		return 0;
	if (st.st_size > 0) /* since 6.2 (f1f1f2569901) */
		return (uint32_t)st.st_size;
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	return count;
}

void resource_process_point(struct process_list *list, unsigned int point)
{
	for (size_t i = 0; i < list->count; i++) {
		struct resource_process *process = &list->entries[i];

		if (!process->fds)
			continue;
		process->trend[point] = count_fds(process->pid);
		process->fds = process->trend[point];
	}
}

void resource_process_count(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->entries[i].fds)
			list->entries[i].fds = count_fds(list->entries[i].pid);
	}
}

bool resource_process_may_grow(const struct process_list *list, uint32_t pid, unsigned int points)
{
	for (size_t i = 0; i < list->count && points >= RESOURCE_PROCESS_QUARTERED; i++)
		if (list->entries[i].pid == pid)
			return resource_process_grew(&list->entries[i], points);
	return true;
}

bool resource_process_grew(const struct resource_process *process, unsigned int points)
{
	for (unsigned int i = 0; i < 4; i++) {
		if (process->trend[(points - 1) * (i + 1) / 4] <=
		    process->trend[(points - 1) * i / 4])
			return false;
	}
	return points >= RESOURCE_PROCESS_QUARTERED;
}

void resource_process_free(struct process_list *list)
{
	free(list->entries);
	*list = (struct process_list){};
}

int resource_process_comm(uint32_t pid, char *buffer, size_t size)
{
	autofclose FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(buffer, (int)size, file))
		return -ESRCH;
	buffer[strcspn(buffer, "\n")] = 0;
	return 0;
}

/* "/system.slice/nginx.service", "/docker/3f2…": the last part, unless it is a mere slice. */
static void copy_unit(char *path, char *buffer, size_t size)
{
	char *last;

	path[strcspn(path, "\n")] = 0;
	last = strrchr(path, '/');
	if (last && last[1] && !strstr(last, ".slice"))
		snprintf(buffer, size, "%s", last + 1);
}

void resource_process_unit(uint32_t pid, char *buffer, size_t size)
{
	autofclose FILE *file = NULL;
	char path[64], line[512];

	buffer[0] = 0;
	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	file = fopen(path, "re");
	/* "0::PATH" is cgroup v2, "1:name=systemd:PATH" systemd's on v1. */
	while (file && !buffer[0] && fgets(line, sizeof(line), file)) {
		char *name = strchr(line, ':');

		if (name && (!strncmp(line, "0::", 3) || !strncmp(name, ":name=systemd:", 14)))
			copy_unit(strchr(name + 1, ':') + 1, buffer, size);
	}
}

/* ---- descriptors one by one ---- */

static enum descriptor_type type_of(const char *target)
{
	static const struct {
		const char *prefix;
		enum descriptor_type type;
	} prefixes[] = {
		{"socket:", DESCRIPTOR_SOCKET},
		{"pipe:", DESCRIPTOR_PIPE},
		{"anon_inode:", DESCRIPTOR_EVENT},
		{"/", DESCRIPTOR_FILE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (!strncmp(target, prefixes[i].prefix, strlen(prefixes[i].prefix)))
			return prefixes[i].type;
	}
	return DESCRIPTOR_OTHER;
}

/* Calls @visit with what each descriptor of @pid points to. */
static int walk(uint32_t pid, void (*visit)(void *context, uint32_t pid, const char *target),
		void *context)
{
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		char target[64];
		int folder = dirfd(dir);
		ssize_t n = folder < 0
				    ? -1
				    : readlinkat(folder, entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = 0;
		visit(context, pid, target);
	}
	return 0;
}

static void count_kind(void *context, uint32_t pid, const char *target)
{
	uint32_t *counts = context;

	(void)pid;
	counts[type_of(target)]++;
}

int resource_process_kinds(uint32_t pid, uint32_t ret_counts[DESCRIPTOR_TYPES])
{
	uint32_t counts[DESCRIPTOR_TYPES] = {};
	int r = walk(pid, count_kind, counts);

	if (!r)
		memcpy(ret_counts, counts, sizeof(counts));
	return r;
}

/* ---- owners ---- */

struct wanted {
	struct socket_owner *owners;
	size_t count;
};

static int compare(const void *a, const void *b)
{
	const struct socket_owner *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static struct socket_owner *find(const struct socket_owner *owners, size_t count, uint64_t inode)
{
	struct socket_owner key = {.inode = inode};

	return count ? bsearch(&key, owners, count, sizeof(key), compare) : NULL;
}

static void match(void *context, uint32_t pid, const char *target)
{
	struct wanted *wanted = context;
	struct socket_owner *owner;
	unsigned long long inode;

	if (sscanf(target, "socket:[%llu]", &inode) != 1)
		return;
	owner = find(wanted->owners, wanted->count, inode);
	if (owner && !owner->pid)
		owner->pid = pid;
}

void resource_process_owners(struct socket_owner *owners, size_t count)
{
	autoclosedir DIR *dir = count ? opendir("/proc") : NULL;
	struct wanted wanted = {owners, count};
	struct dirent *entry;

	if (count)
		qsort(owners, count, sizeof(*owners), compare);
	while (dir && (entry = readdir(dir))) {
		uint32_t pid = pid_of(entry);

		if (pid)
			(void)walk(pid, match, &wanted);
	}
}

uint32_t resource_process_owner(const struct socket_owner *owners, size_t count, uint64_t inode)
{
	const struct socket_owner *owner = find(owners, count, inode);

	return owner ? owner->pid : 0;
}
