// SPDX-License-Identifier: MIT
/*
 * The libraries of TLS that processes of the observed services have mapped, or have in their
 * programs, with --tls. Each file is probed once, for all processes. A process may map one later, so it is looked at in each
 * reading. Each process is said to be probed, or why not: that may be why nothing is known.
 */
#include "source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "host/programs/libraries.h"
#include "kernel/tls/clear.h"
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
	size_t which;	   /* place in clear_libraries */
	const char *found; /* what is said of its users; NULL: nothing */
};

/* Most programs have no library of TLS in them. So many of these are remembered. */
#define OTHERS_KEPT 128U
/* Any user can bring large ones without end, and searching takes time: so many files that are not root's in a reading. */
#define SEARCHED_MAX 16U

static const char probed[] = RUN_TLS_PROBED;
static const char refused[] = "not looked into, as a warning said";
static const char waits[] = "not looked into yet";

/* A process, and what is said of it; NULL: nothing that is known. */
struct looked_at {
	struct source_libraries *source;
	uint32_t pid;
	const char *found;
};

struct source_libraries {
	struct known *known; /* probed, or refused */
	size_t known_count;
	struct known without[OTHERS_KEPT]; /* programs that have none, the oldest is overwritten */
	size_t without_count;
	unsigned int searched;	     /* in this reading */
	unsigned int descriptors;    /* that all may take */
	unsigned int rooted, others; /* that files of root take, and those of others */
	struct looked_at *processes; /* of the last update */
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

static const struct known *among(const struct known *known, size_t count, const struct known *file)
{
	for (size_t i = 0; i < count; i++)
		if (known[i].device == file->device && known[i].inode == file->inode &&
		    known[i].which == file->which)
			return &known[i];
	return NULL;
}

static const struct known *known_of(const struct source_libraries *source, const struct known *file)
{
	size_t without = source->without_count < OTHERS_KEPT ? source->without_count : OTHERS_KEPT;
	const struct known *known = among(source->known, source->known_count, file);

	return known ? known : among(source->without, without, file);
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

/*
 * @fd: its file, or why it cannot be opened. Return 0, or why it is not looked into; -ENOENT: there is nothing to warn of. Note
 * what is to be said of its users.
 */
static int probe(struct source_libraries *source, struct known *file, int fd, bool is_rooted)
{
	unsigned int descriptors = REFUSED_DESCRIPTORS;
	struct clear_places places;
	int r = fd < 0 ? fd : clear_find(fd, file->which, &places);

	file->found = refused;
	if (is_other(file->which, r)) {
		file->found = fd < 0 ? NULL : clear_nameless(fd, file->which);
		source->without[source->without_count++ % OTHERS_KEPT] = *file;
		return -ENOENT;
	}
	if (!r)
		descriptors = (unsigned int)places.count * CLEAR_DESCRIPTORS;
	if (!is_affordable(source, is_rooted, descriptors))
		return -E2BIG;
	if (ARRAY_GROW(source->known, source->known_count))
		return -ENOMEM;
	if (!r)
		r = loader_probe_library(source->loader, fd, &places);
	if (!r)
		file->found = probed;
	source->known[source->known_count++] = *file;
	return r;
}

/* Say it once: a user can bring files without end. */
static void say(struct source_libraries *source, const char *path, int r)
{
	if (!source->said || (r == -E2BIG && source->full))
		return;
	source->full |= r == -E2BIG;
	source->said(path, r);
}

/* Return what is to be said of its users; NULL: nothing. */
static const char *look_into(struct source_libraries *source, const struct library *library)
{
	struct known file = {
		.device = library->device, .inode = library->inode, .which = library->which};
	const char *lacks = clear_lacks(library->which);
	const struct known *known = lacks ? NULL : known_of(source, &file);
	bool is_rooted = false;
	autoclose int fd = -1;
	int r;

	if (lacks || known)
		return lacks ? lacks : known->found;
	fd = library_open(library, &is_rooted);
	if (!is_rooted && source->searched++ >= SEARCHED_MAX)
		return waits;
	r = probe(source, &file, fd, is_rooted);
	if (clear_libraries[library->which] || r != -ENOENT)
		say(source, library->path, r);
	return file.found;
}

/* A library that is not probed is said rather than one that is. */
static void visit_library(void *context, const struct library *library)
{
	struct looked_at *process = context;
	const char *found = look_into(process->source, library);

	if (found && (!process->found || process->found == probed))
		process->found = found;
}

static const struct looked_at *process_of(const struct source_libraries *source, uint32_t pid)
{
	for (size_t i = 0; i < source->process_count; i++)
		if (source->processes[i].pid == pid)
			return &source->processes[i];
	return NULL;
}

/* Without memory the next reading tries again. */
static void look_at(void *context, uint32_t pid)
{
	struct source_libraries *source = context;
	struct looked_at *process;

	if (process_of(source, pid) || ARRAY_GROW(source->processes, source->process_count))
		return;
	process = &source->processes[source->process_count++];
	*process = (struct looked_at){.source = source, .pid = pid};
	if (libraries_visit(pid, clear_libraries, CLEAR_LIBRARIES, visit_library, process) < 0)
		process->found = "its memory cannot be looked at";
	else if (!process->found)
		process->found = "no library of TLS that is known was found";
}

void source_libraries_update(struct source_libraries *source, const struct source_proc *processes)
{
	source->process_count = 0;
	source->searched = 0;
	source_proc_visit(processes, look_at, source);
}

void source_libraries_read(const struct source_libraries *source, struct run_process *process)
{
	const struct looked_at *seen = process_of(source, process->pid);

	if (seen)
		snprintf(process->tls, sizeof(process->tls), "%s", seen->found);
}
