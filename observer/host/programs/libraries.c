// SPDX-License-Identifier: MIT
/* Reads /proc/PID/maps; see libraries.h. */
#include "libraries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"
#include "sojourn/text.h"

#define DELETED " (deleted)"

/* A mapping of a file. */
struct mapping {
	uint64_t start, end, inode;
	unsigned int major, minor;
	int path; /* where it begins in the line */
};

static bool is_of_file(const char *line, struct mapping *ret_mapping)
{
	struct mapping m = {};
	unsigned long start, end, inode;

	if (sscanf(line, "%lx-%lx %*s %*x %x:%x %lu %n", &start, &end, &m.major, &m.minor, &inode,
		   &m.path) < 5 ||
	    !m.path || line[m.path] != '/')
		return false;
	m.start = start;
	m.end = end;
	m.inode = inode;
	*ret_mapping = m;
	return true;
}

/* A file that was replaced by an update has no name any more, but it can be opened as a mapping. */
static void name_path(uint32_t pid, const struct mapping *mapping, const char *path,
		      struct library *library)
{
	size_t length = strlen(path);

	if (length > strlen(DELETED) && !strcmp(path + length - strlen(DELETED), DELETED))
		snprintf(library->path, sizeof(library->path), "/proc/%u/map_files/%jx-%jx", pid,
			 (uintmax_t)mapping->start, (uintmax_t)mapping->end);
	else
		snprintf(library->path, sizeof(library->path), "/proc/%u/root%s", pid, path);
}

/* Return whether the name of the mapped file is looked for. */
static bool is_library(uint32_t pid, const struct mapping *mapping, const char *path,
		       const char *const *names, size_t count, struct library *ret_library)
{
	const char *name = strrchr(path, '/') + 1;

	for (size_t i = 0; i < count; i++) {
		if (!names[i] || !text_begins(name, names[i]))
			continue;
		*ret_library = (struct library){.which = i,
						.device = makedev(mapping->major, mapping->minor),
						.inode = mapping->inode};
		name_path(pid, mapping, path, ret_library);
		return true;
	}
	return false;
}

/* Its link opens the file itself, also if that was replaced. */
static bool is_program(uint32_t pid, size_t which, struct library *ret_library)
{
	struct library library = {.which = which};
	struct stat status;

	snprintf(library.path, sizeof(library.path), "/proc/%u/exe", pid);
	if (stat(library.path, &status))
		return false;
	library.device = status.st_dev;
	library.inode = status.st_ino;
	*ret_library = library;
	return true;
}

int libraries_visit(uint32_t pid, const char *const *names, size_t count,
		    void (*visit)(void *context, const struct library *library), void *context)
{
	autofclose FILE *file = procfs_open("/proc/%u/maps", pid);
	struct mapping mapping;
	struct library library;
	char line[1024];

	if (!file)
		return -errno;
	for (size_t i = 0; i < count; i++)
		if (!names[i] && is_program(pid, i, &library))
			visit(context, &library);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (is_of_file(line, &mapping) &&
		    is_library(pid, &mapping, line + mapping.path, names, count, &library))
			visit(context, &library);
	}
	return 0;
}

/* Opening a device may have effects, so it is looked at before. */
int library_open(const struct library *library, bool *ret_rooted)
{
	autoclose int place = open(library->path, O_PATH | O_CLOEXEC);
	struct stat status;
	char path[64];
	int fd;

	if (place < 0 || fstat(place, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ENOEXEC;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	*ret_rooted = !status.st_uid;
	return fd < 0 ? -errno : fd;
}
