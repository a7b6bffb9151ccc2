// SPDX-License-Identifier: MIT
/* Looks for network namespaces; see namespaces.h. */
#include "namespaces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "process.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/*
 * Size of the hash of found namespaces. Most processes are in one of these, and the hash spares a walk over the list.
 */
#define PLACES (4 * NAMESPACES_MAX)

struct search {
	struct namespaces found;
	uint32_t places[PLACES]; /* inodes; 0: free */
};

/* Note the inode. False: it was noted before, or there is no room. */
static bool note(struct search *search, uint32_t inode)
{
	uint32_t at = inode % PLACES;

	while (search->places[at] && search->places[at] != inode)
		at = (at + 1) % PLACES;
	if (search->places[at] == inode)
		return false;
	if (search->found.count >= NAMESPACES_MAX) {
		search->found.left_out++;
		return false;
	}
	search->places[at] = inode;
	return true;
}

static int add(struct search *search, uint32_t inode, const char *path)
{
	struct namespace *added;

	if (!inode || !note(search, inode))
		return 0;
	added = ARRAY_APPEND(search->found.list, search->found.count);
	if (!added)
		return -ENOMEM;
	added->inode = inode;
	snprintf(added->path, sizeof(added->path), "%s", path);
	return 0;
}

/* A name whose namespace is gone is an empty file of another file system. */
static uint32_t inode_of_name(const char *path)
{
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) || fs.f_type != NSFS_MAGIC || stat(path, &st))
		return 0;
	return (uint32_t)st.st_ino;
}

static int add_names(struct search *search, const char *folder)
{
	autoclosedir DIR *dir = opendir(folder);
	struct dirent *entry;
	int r = 0;

	while (!r && dir && (entry = readdir(dir))) {
		char path[sizeof(search->found.list->path)];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		r = add(search, inode_of_name(path), path);
	}
	return r;
}

/* The link reads "net:[4026531840]". */
static int add_link(struct search *search, const char *path)
{
	unsigned int inode;
	char text[64];
	ssize_t n = readlink(path, text, sizeof(text) - 1);

	if (n < 0) {
		/* A process that has just ended has none. */
		search->found.unseen += errno == EACCES || errno == EPERM;
		return 0;
	}
	text[n] = 0;
	return sscanf(text, "net:[%u]", &inode) == 1 ? add(search, inode, path) : 0;
}

static int add_processes(struct search *search)
{
	autoclosedir DIR *dir = opendir("/proc");
	int r = dir ? 0 : -errno;
	uint32_t pid;

	while (!r && (pid = process_next(dir))) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
		r = add_link(search, path);
	}
	return r;
}

int namespaces_find(struct namespaces *ret_namespaces)
{
	autofree struct search *search = calloc(1, sizeof(*search));
	int r = search ? add_link(search, "/proc/self/ns/net") : -ENOMEM;

	/* Names first: a process may end, and others of its namespace stay. */
	if (!r)
		r = add_names(search, "/run/netns");
	if (!r)
		r = add_names(search, "/run/docker/netns");
	if (!r)
		r = add_processes(search);
	if (r < 0) {
		if (search)
			namespaces_free(&search->found);
		return r;
	}
	*ret_namespaces = search->found;
	return 0;
}

void namespaces_free(struct namespaces *namespaces)
{
	free(namespaces->list);
	*namespaces = (struct namespaces){};
}

int namespaces_owner(int fd, uint32_t *ret_user)
{
	autoclose int above = ioctl(fd, NS_GET_USERNS);

	return above < 0 || ioctl(above, NS_GET_OWNER_UID, ret_user) ? -errno : 0;
}

int namespaces_open(uint32_t pid, int *ret_fd)
{
	struct stat own, other;
	autoclose int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &other) || stat("/proc/thread-self/ns/net", &own))
		return -errno;
	if (own.st_ino == other.st_ino)
		return -ENOENT;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
