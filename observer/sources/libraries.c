// SPDX-License-Identifier: MIT
/*
 * The libraries of TLS that processes of the observed services have mapped, or have in their
 * programs, with --tls. Each file is probed once, for all processes. A process may map one later, so it is looked at in each
 * reading until it has.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "host/libraries.h"
#include "kernel/clear.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/*
 * A library takes up to 24 descriptors, and any user with an observed service can bring files without end. So they may
 * take half of all descriptors. A quarter of that is for files that are not root's, so such a user keeps no package's
 * file out.
 */
#define REFUSED_DESCRIPTORS \
	24U /* one that is refused counts as many, so there are only so many warnings */
#define DESCRIPTORS_MIN (8 * REFUSED_DESCRIPTORS)
#define DESCRIPTORS_MAX (256 * REFUSED_DESCRIPTORS)

struct known {
	uint64_t device;
	uint64_t inode;
	size_t which; /* place in clear_libraries */
};

/* Most programs have no library of TLS in them. So many of these are remembered. */
#define OTHERS_KEPT 128U
/* Any user can bring large ones without end, and searching takes time: so many files that are not root's in a reading. */
#define SEARCHED_MAX 16U

/* A process, and which of clear_libraries it has mapped, as bits. */
struct looked_at {
	uint32_t pid;
	uint32_t found;
};

#define FOUND_ALL ((1U << CLEAR_LIBRARIES) - 1)

struct source_libraries {
	struct known *known; /* probed, or refused */
	size_t known_count;
	struct known without[OTHERS_KEPT]; /* programs that have none, the oldest is overwritten */
	size_t without_count;
	unsigned int searched;	     /* in this reading */
	unsigned int descriptors;    /* that all may take */
	unsigned int rooted, others; /* that files of root take, and those of others */
	struct looked_at *processes;
	size_t process_count;
	bool full; /* it was said that no descriptor is left */
	struct loader *loader;
	source_library said;
};

static unsigned int count_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 2 < DESCRIPTORS_MIN)
		return DESCRIPTORS_MIN;
	return limit.rlim_cur / 2 < DESCRIPTORS_MAX ? (unsigned int)limit.rlim_cur / 2
						    : DESCRIPTORS_MAX;
}

int source_libraries_new(struct loader *loader, source_library said,
			 struct source_libraries **ret_source)
{
	struct source_libraries *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->loader = loader;
	source->said = said;
	source->descriptors = count_descriptors();
	*ret_source = source;
	return 0;
}

void source_libraries_free(struct source_libraries *source)
{
	if (!source)
		return;
	free(source->known);
	free(source->processes);
	free(source);
}

static bool is_among(const struct known *known, size_t count, const struct known *file)
{
	for (size_t i = 0; i < count; i++)
		if (known[i].device == file->device && known[i].inode == file->inode &&
		    known[i].which == file->which)
			return true;
	return false;
}

static bool is_known(const struct source_libraries *source, const struct known *file)
{
	size_t without = source->without_count < OTHERS_KEPT ? source->without_count : OTHERS_KEPT;

	return is_among(source->known, source->known_count, file) ||
	       is_among(source->without, without, file);
}

/* Return the process; NULL: no memory. */
static struct looked_at *process_of(struct source_libraries *source, uint32_t pid)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i].pid == pid)
			return &source->processes[i];
	if (ARRAY_GROW(source->processes, source->process_count))
		return NULL;
	source->processes[source->process_count] = (struct looked_at){.pid = pid};
	return &source->processes[source->process_count++];
}

/* Take descriptors for the file. False: no more are left for files of this kind. */
static bool is_affordable(struct source_libraries *source, bool is_rooted, unsigned int descriptors)
{
	unsigned int *taken = is_rooted ? &source->rooted : &source->others;
	unsigned int limit = source->descriptors / 4;

	if (is_rooted)
		limit = source->descriptors - limit;
	if (*taken + descriptors > limit)
		return false;
	*taken += descriptors;
	return true;
}

/* Return whether it is no library of TLS, and not one that we fail to look into. */
static bool is_other(size_t which, int r)
{
	return !clear_libraries[which] && r && r != -EFBIG && r != -ENOMEM;
}

/* @fd: its file, or why it cannot be opened. Return 0, or why it is not looked into; -ENOENT: there is nothing to say. */
static int probe(struct source_libraries *source, const struct known *file, int fd, bool is_rooted)
{
	unsigned int descriptors = REFUSED_DESCRIPTORS;
	struct clear_places places;
	int r = fd < 0 ? fd : clear_find(fd, file->which, &places);

	if (is_other(file->which, r)) {
		source->without[source->without_count++ % OTHERS_KEPT] = *file;
		return -ENOENT;
	}
	if (!r)
		descriptors = (unsigned int)places.count * CLEAR_DESCRIPTORS;
	if (!is_affordable(source, is_rooted, descriptors))
		return -E2BIG;
	if (ARRAY_GROW(source->known, source->known_count))
		return -ENOMEM;
	source->known[source->known_count++] = *file;
	return r ? r : loader_probe_library(source->loader, fd, &places);
}

/* Say it once: a user can bring files without end. */
static void say(struct source_libraries *source, const char *path, int r)
{
	if (!source->said || (r == -E2BIG && source->full))
		return;
	source->full |= r == -E2BIG;
	source->said(path, r);
}

/* Return whether it is done with. */
static bool look_into(struct source_libraries *source, const struct library *library, size_t which)
{
	struct known file = {.device = library->device, .inode = library->inode, .which = which};
	bool is_rooted = false;
	autoclose int fd = -1;
	int r;

	if (is_known(source, &file))
		return true;
	fd = library_open(library, &is_rooted);
	if (!is_rooted && source->searched++ >= SEARCHED_MAX)
		return false;
	r = probe(source, &file, fd, is_rooted);
	if (clear_libraries[which] || r != -ENOENT)
		say(source, library->path, r);
	return true;
}

/* Without memory the next reading tries again. */
static void look_at(void *context, uint32_t pid)
{
	struct source_libraries *source = context;
	struct looked_at *process = process_of(source, pid);
	struct library libraries[CLEAR_LIBRARIES];

	if (!process || process->found == FOUND_ALL ||
	    libraries_of(pid, clear_libraries, CLEAR_LIBRARIES, libraries) < 0)
		return;
	for (size_t i = 0; i < CLEAR_LIBRARIES; i++) {
		if (!libraries[i].path[0] || process->found & 1U << i)
			continue;
		if (look_into(source, &libraries[i], i))
			process->found |= 1U << i;
	}
}

/* Forget processes that have ended: their numbers may be given again. */
static void forget(struct source_libraries *source, const struct source_proc *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->process_count; i++)
		if (source_proc_has(processes, source->processes[i].pid))
			source->processes[kept++] = source->processes[i];
	source->process_count = kept;
}

void source_libraries_update(struct source_libraries *source, const struct source_proc *processes)
{
	forget(source, processes);
	source->searched = 0;
	source_proc_visit(processes, look_at, source);
}
