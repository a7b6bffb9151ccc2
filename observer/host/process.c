// SPDX-License-Identifier: MIT
/* Reads /proc/PID; see process.h. sources/proc.c interprets it for services. */
#include "process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/net/sockets.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"

const char *const process_types[DESCRIPTOR_TYPES] = {"sockets", "files", "pipes",
						     "event descriptors", "others"};

/* ---- one process ---- */

int process_comm(uint32_t pid, char *buffer, size_t size)
{
	autofclose FILE *file = procfs_open("/proc/%u/comm", pid);

	if (!file || !fgets(buffer, (int)size, file))
		return -ESRCH;
	buffer[strcspn(buffer, "\n")] = 0;
	return 0;
}

int process_user(uint32_t pid, uint32_t *ret_user)
{
	autofclose FILE *file = procfs_open("/proc/%u/status", pid);
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Uid: %u", ret_user) == 1)
			return 0;
	}
	return -ESRCH;
}

/* Since 6.2 (f1f1f2569901) the directory's size is the number of open descriptors. */
static int count_fds(const char *path, uint64_t *ret_count)
{
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;

	if (stat(path, &st))
		return -errno;
	*ret_count = (uint64_t)st.st_size;
	if (!st.st_size)
		dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		*ret_count += entry->d_name[0] != '.';
	return 0;
}

static struct run_number open_descriptors(uint32_t pid)
{
	struct run_number number = {};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	/*
	 * stat() is true on every kernel only if this process may list the directory. Its effective
	 * capabilities decide, which access() ignores for all users but root.
	 */
	if (!faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS))
		number.known = !count_fds(path, &number.value);
	return number;
}

/* Read RLIMIT_NOFILE of process @pid: the soft limit and the hard one. */
static bool read_limits(uint32_t pid, unsigned long long *ret_soft, unsigned long long *ret_hard)
{
	autofclose FILE *file = procfs_open("/proc/%u/limits", pid);
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Max open files %llu %llu", ret_soft, ret_hard) == 2)
			return true;
	}
	return false;
}

static struct run_number descriptor_limit(uint32_t pid)
{
	unsigned long long soft, hard;
	struct run_number number = {.known = read_limits(pid, &soft, &hard)};

	if (number.known)
		number.value = soft;
	return number;
}

bool process_is_at_hard_limit(uint32_t pid)
{
	unsigned long long soft, hard;

	return read_limits(pid, &soft, &hard) && soft == hard;
}

int process_read(uint32_t pid, struct run_process *ret_process)
{
	struct run_process process = {.pid = pid};
	int r = process_comm(pid, process.comm, sizeof(process.comm));

	if (r < 0)
		return r;
	process.open_fds = open_descriptors(pid);
	process.fd_limit = descriptor_limit(pid);
	*ret_process = process;
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

void process_unit(uint32_t pid, char *buffer, size_t size)
{
	autofclose FILE *file = procfs_open("/proc/%u/cgroup", pid);
	char line[512];

	buffer[0] = 0;
	/* "0::PATH" is cgroup v2, "1:name=systemd:PATH" systemd's on v1. */
	while (file && !buffer[0] && fgets(line, sizeof(line), file)) {
		char *name = strchr(line, ':');

		if (name && (!strncmp(line, "0::", 3) || !strncmp(name, ":name=systemd:", 14)))
			copy_unit(strchr(name + 1, ':') + 1, buffer, size);
	}
}

/* ---- all processes ---- */

uint32_t process_next(DIR *proc)
{
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			return (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	return 0;
}

static int add(struct process_list *list, uint32_t pid)
{
	struct run_process read;

	if (process_read(pid, &read) < 0)
		return 0; /* it ended meanwhile */
	if (!read.open_fds.known || !read.fd_limit.known) {
		list->unseen++;
		return 0;
	}
	if (ARRAY_GROW(list->entries, list->count) < 0)
		return -ENOMEM;
	list->entries[list->count] = (struct resource_process){
		.pid = pid,
		.fds = read.open_fds.value,
		.most = read.open_fds.value,
		.limit = read.fd_limit.value,
	};
	memcpy(list->entries[list->count++].comm, read.comm, sizeof(read.comm));
	return 0;
}

int process_list(uint32_t pid, struct process_list *ret_list)
{
	autoclosedir DIR *dir = opendir("/proc");
	struct process_list list = {};
	uint32_t found;
	int r = dir ? 0 : -errno;

	if (!r && pid)
		r = add(&list, pid);
	while (!r && !pid && (found = process_next(dir)))
		r = add(&list, found);
	if (r < 0) {
		process_free(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

/*
 * Most of its descriptors seem to be in use. It may have raised its limit since, or be another program by now. Its former
 * descriptors were of the other limit.
 */
static void look_again(struct resource_process *process)
{
	struct run_number limit = descriptor_limit(process->pid);

	if (limit.known && limit.value != process->limit) {
		process->limit = limit.value;
		process->most = process->fds;
	}
	(void)process_comm(process->pid, process->comm, sizeof(process->comm));
}

/* Skip processes that had no descriptors before, such as kernel threads. */
static void count_all(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct resource_process *process = &list->entries[i];
		char path[64];

		snprintf(path, sizeof(path), "/proc/%u/fd", process->pid);
		if (process->fds && count_fds(path, &process->fds) < 0)
			process->fds = 0;
		if (process->fds > process->most)
			process->most = process->fds;
		if (process->fds > process->limit / 2)
			look_again(process);
	}
}

struct pids {
	uint32_t *entries;
	size_t count;
};

static int pids_add(struct pids *pids, uint32_t pid)
{
	if (ARRAY_GROW(pids->entries, pids->count) < 0)
		return -ENOMEM;
	pids->entries[pids->count++] = pid;
	return 0;
}

static int compare_pids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void pids_sort(struct pids *pids)
{
	if (pids->count)
		qsort(pids->entries, pids->count, sizeof(*pids->entries), compare_pids);
}

static bool pids_have(const struct pids *pids, uint32_t pid)
{
	return pids->count && bsearch(&pid, pids->entries, pids->count, sizeof(pid), compare_pids);
}

/* An observation lasts for months, and programs come and go. */
#define ENDED_KEPT 16U

/* Drop processes that have ended, but for the first few of those that were nearly full. */
static void drop_ended(struct process_list *list, const struct pids *alive)
{
	size_t kept = 0, ended = 0;

	for (size_t i = 0; i < list->count; i++) {
		const struct resource_process *process = &list->entries[i];

		if (!pids_have(alive, process->pid) &&
		    (!process_was_full(process) || ended++ >= ENDED_KEPT))
			continue;
		if (kept != i)
			list->entries[kept] = *process;
		kept++;
	}
	list->count = kept;
}

int process_renew(uint32_t pid, struct process_list *list)
{
	autoclosedir DIR *dir = pid ? NULL : opendir("/proc");
	struct pids known = {}, alive = {};
	uint32_t found;
	size_t before;
	int r = 0;

	count_all(list);
	for (size_t i = 0; !r && i < list->count; i++)
		r = pids_add(&known, list->entries[i].pid);
	while (!r && (found = process_next(dir)))
		r = pids_add(&alive, found);
	pids_sort(&known);
	pids_sort(&alive);
	if (!r && dir)
		drop_ended(list, &alive);
	before = list->count;
	if (dir)
		list->unseen = 0;
	for (size_t i = 0; !r && i < alive.count; i++)
		if (!pids_have(&known, alive.entries[i]))
			r = add(list, alive.entries[i]);
	for (size_t i = before; i < list->count; i++)
		list->entries[i].late = true;
	free(known.entries);
	free(alive.entries);
	return r;
}

void process_point(struct process_list *list, unsigned int point)
{
	count_all(list);
	for (size_t i = 0; i < list->count; i++)
		list->entries[i].trend[point] = (uint32_t)list->entries[i].fds;
}

void process_free(struct process_list *list)
{
	free(list->entries);
	*list = (struct process_list){};
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

/* Call @visit with the target of each descriptor of @pid. */
static int walk(uint32_t pid, void (*visit)(void *context, uint32_t pid, const char *target),
		void *context)
{
	autoclosedir DIR *dir = NULL;
	struct dirent *entry;
	char path[64];
	int folder;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	folder = dir ? dirfd(dir) : -1;
	if (folder < 0)
		return -errno;
	while ((entry = readdir(dir))) {
		char target[64];
		ssize_t n = readlinkat(folder, entry->d_name, target, sizeof(target) - 1);

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

int process_kinds(uint32_t pid, uint32_t ret_counts[DESCRIPTOR_TYPES])
{
	uint32_t counts[DESCRIPTOR_TYPES] = {};
	int r = walk(pid, count_kind, counts);

	if (!r)
		memcpy(ret_counts, counts, sizeof(counts));
	return r;
}

/* Return the inode in "socket:[4026531840]"; 0: it is no socket. */
static uint64_t socket_inode(const char *target)
{
	unsigned long long inode;

	return sscanf(target, "socket:[%llu]", &inode) == 1 ? inode : 0;
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
	struct socket_owner *owner = find(wanted->owners, wanted->count, socket_inode(target));

	if (owner && !owner->pid)
		owner->pid = pid;
}

void process_owners(struct socket_owner *owners, size_t count)
{
	autoclosedir DIR *dir = count ? opendir("/proc") : NULL;
	struct wanted wanted = {owners, count};
	uint32_t pid;

	if (count)
		qsort(owners, count, sizeof(*owners), compare);
	while ((pid = process_next(dir)))
		(void)walk(pid, match, &wanted);
}

void process_owned(uint32_t pid, struct socket_owner *owners, size_t count)
{
	struct wanted wanted = {owners, count};

	(void)walk(pid, match, &wanted);
}

uint32_t process_owner(const struct socket_owner *owners, size_t count, uint64_t inode)
{
	const struct socket_owner *owner = find(owners, count, inode);

	return owner ? owner->pid : 0;
}

/* ---- listeners ---- */

struct listeners {
	struct process_listener *entries;
	size_t count;
	int error;
};

static void add_listener(void *context, const struct resource_socket *s)
{
	struct listeners *list = context;

	if (!list->error)
		list->error = ARRAY_GROW(list->entries, list->count);
	if (!list->error)
		list->entries[list->count++] =
			(struct process_listener){.port = s->source_port, .inode = s->inode};
}

static int read_listeners(uint32_t pid, struct listeners *list)
{
	int r = sockets_table(pid, "tcp", SOCKET_BIT(SOCKET_LISTEN), add_listener, list);

	if (r == -ENOENT)
		r = -ESRCH;
	return r < 0 ? r
		     : sockets_table(pid, "tcp6", SOCKET_BIT(SOCKET_LISTEN), add_listener, list);
}

int process_listeners(uint32_t pid, struct process_listener **ret_listeners, size_t *ret_count)
{
	struct listeners list = {};
	int r = -ESRCH;

	/* Of our own namespace the kernel lists listeners alone, without a walk over all connections. */
	if (!pid)
		r = sockets_tcp(SOCKETS_NETLINK, SOCKET_BIT(SOCKET_LISTEN), SOCKET_PLAIN,
				add_listener, &list);
	if (r < 0) {
		list.count = 0;
		r = read_listeners(pid, &list);
	}
	if (!r)
		r = list.error;
	if (r < 0) {
		free(list.entries);
		return r;
	}
	*ret_listeners = list.entries;
	*ret_count = list.count;
	return 0;
}

struct held {
	const struct process_listener *listeners;
	size_t count;
	process_holder visit;
	void *context;
};

static void match_listener(void *context, uint32_t pid, const char *target)
{
	const struct held *held = context;
	uint64_t inode = socket_inode(target);

	for (size_t i = 0; inode && i < held->count; i++) {
		if (held->listeners[i].inode == inode) {
			held->visit(held->context, pid, &held->listeners[i]);
			return;
		}
	}
}

int process_held(uint32_t pid, const struct process_listener *listeners, size_t count,
		 process_holder visit, void *context)
{
	struct held held = {listeners, count, visit, context};
	int r = walk(pid, match_listener, &held);

	return r == -ENOENT ? -ESRCH : r;
}

void process_held_by_all(const struct process_listener *listeners, size_t count,
			 process_holder visit, void *context)
{
	struct held held = {listeners, count, visit, context};
	autoclosedir DIR *dir = opendir("/proc");
	uint32_t pid;

	while ((pid = process_next(dir)))
		(void)walk(pid, match_listener, &held);
}

/* ---- whether a process listens ---- */

static int add_wanted(struct wanted *wanted, uint64_t inode)
{
	if (ARRAY_GROW(wanted->owners, wanted->count) < 0)
		return -ENOMEM;
	wanted->owners[wanted->count++] = (struct socket_owner){.inode = inode};
	return 0;
}

static int add_tcp(uint32_t pid, struct wanted *wanted)
{
	autofree struct process_listener *listeners = NULL;
	size_t count = 0;
	int r = process_listeners(pid, &listeners, &count);

	for (size_t i = 0; !r && i < count; i++)
		r = add_wanted(wanted, listeners[i].inode);
	return r;
}

/* Add the Unix listeners: of the flags, the kernel shows only that a socket accepts (__SO_ACCEPTCON). */
static int add_unix(uint32_t pid, struct wanted *wanted)
{
	autofclose FILE *file = procfs_open("/proc/%u/net/unix", pid);
	unsigned long long inode;
	unsigned int flags;
	char line[256];
	int r = 0;

	if (!file)
		return -errno;
	while (!r && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*x: %*x %*x %x %*x %*x %llu", &flags, &inode) == 2 && flags)
			r = add_wanted(wanted, inode);
	return r;
}

bool process_listens(uint32_t pid)
{
	struct wanted wanted = {};
	bool listens = false;
	int r = add_tcp(pid, &wanted);

	if (!r)
		r = add_unix(pid, &wanted);
	if (!r && wanted.count) {
		qsort(wanted.owners, wanted.count, sizeof(*wanted.owners), compare);
		r = walk(pid, match, &wanted);
	}
	for (size_t i = 0; i < wanted.count; i++)
		listens |= wanted.owners[i].pid != 0;
	free(wanted.owners);
	return r < 0 ? r != -ENOENT && r != -ESRCH : listens;
}
