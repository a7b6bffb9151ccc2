// SPDX-License-Identifier: MIT
/* Reads /proc; see procfs.h. What it means for a service is source_proc.c's affair. */
#include "procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sojourn/cleanup.h"

#define STATE_LISTEN 0x0a

struct listeners {
	struct procfs_listener *entries;
	size_t count;
};

static int add_listener(struct listeners *list, const struct procfs_listener *listener)
{
	struct procfs_listener *entries =
		reallocarray(list->entries, list->count + 1, sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	entries[list->count++] = *listener;
	list->entries = entries;
	return 0;
}

/* "  0: 0100007F:1F90 00000000:0000 0A …": see proc(5), /proc/net/tcp. */
static int parse_line(const char *line, struct listeners *list)
{
	struct procfs_listener listener = {};
	unsigned int port, state;
	unsigned long long inode;

	if (sscanf(line, " %*d: %*[0-9A-F]:%X %*[0-9A-F]:%*X %X %*X:%*X %*X:%*X %*X %*u %*u %llu",
		   &port, &state, &inode) != 3 ||
	    state != STATE_LISTEN)
		return 0;
	listener.port = (uint16_t)port;
	listener.inode = inode;
	return add_listener(list, &listener);
}

static int read_table(uint32_t pid, const char *name, struct listeners *list)
{
	autofclose FILE *file = NULL;
	char path[64], line[512];
	int r = 0;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/net/%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/self/net/%s", name);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT && !strcmp(name, "tcp") ? -ESRCH : -errno;
	while (!r && fgets(line, sizeof(line), file))
		r = parse_line(line, list);
	return r;
}

int procfs_listeners(uint32_t pid, struct procfs_listener **ret_listeners, size_t *ret_count)
{
	struct listeners list = {};
	int r = read_table(pid, "tcp", &list);

	if (!r) {
		r = read_table(pid, "tcp6", &list);
		r = r == -ENOENT ? 0 : r; /* no IPv6 in this kernel */
	}
	if (r < 0) {
		free(list.entries);
		return r;
	}
	*ret_listeners = list.entries;
	*ret_count = list.count;
	return 0;
}

static const struct procfs_listener *match_inode(const struct procfs_listener *listeners,
						 size_t count, uint64_t inode)
{
	for (size_t i = 0; i < count; i++) {
		if (listeners[i].inode == inode)
			return &listeners[i];
	}
	return NULL;
}

int procfs_held(uint32_t pid, const struct procfs_listener *listeners, size_t count,
		void (*visit)(void *context, uint32_t pid, const struct procfs_listener *listener),
		void *context)
{
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	fd = dirfd(dir);
	if (fd < 0)
		return -errno;
	while ((entry = readdir(dir))) {
		const struct procfs_listener *listener;
		unsigned long long inode;
		char target[64];
		ssize_t n = readlinkat(fd, entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = 0;
		if (sscanf(target, "socket:[%llu]", &inode) != 1)
			continue;
		listener = match_inode(listeners, count, inode);
		if (listener)
			visit(context, pid, listener);
	}
	return 0;
}

void procfs_held_by_all(const struct procfs_listener *listeners, size_t count,
			void (*visit)(void *context, uint32_t pid,
				      const struct procfs_listener *listener),
			void *context)
{
	autoclosedir DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			(void)procfs_held((uint32_t)strtoul(entry->d_name, NULL, 10), listeners,
					  count, visit, context);
	}
}

static int read_comm(uint32_t pid, char *comm, size_t size)
{
	autofclose FILE *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, (int)size, file))
		return -ESRCH;
	comm[strcspn(comm, "\n")] = 0;
	return 0;
}

static uint64_t count_entries(const char *path)
{
	autoclosedir DIR *dir = opendir(path);
	struct dirent *entry;
	uint64_t n = 0;

	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	return n;
}

/* Since 6.2 (f1f1f2569901) the directory's size is the number of open descriptors. */
static struct run_number open_descriptors(uint32_t pid)
{
	struct run_number number = {};
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	/* Only whoever may list the directory is told the truth by stat() on every kernel; by its effective
	 * capabilities, of which access() would ignore those of all users but root. */
	if (faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) || stat(path, &st))
		return number;
	number.known = true;
	number.value = st.st_size > 0 ? (uint64_t)st.st_size : count_entries(path);
	return number;
}

static struct run_number descriptor_limit(uint32_t pid)
{
	struct run_number number = {};
	autofclose FILE *file = NULL;
	unsigned long long soft;
	char path[64], line[128];

	snprintf(path, sizeof(path), "/proc/%u/limits", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Max open files %llu", &soft) != 1)
			continue;
		number.known = true;
		number.value = soft;
	}
	return number;
}

int procfs_process(uint32_t pid, struct run_process *ret_process)
{
	struct run_process process = {.pid = pid};
	int r = read_comm(pid, process.comm, sizeof(process.comm));

	if (r < 0)
		return r;
	process.open_fds = open_descriptors(pid);
	process.fd_limit = descriptor_limit(pid);
	*ret_process = process;
	return 0;
}
