// SPDX-License-Identifier: MIT
/*
 * The libraries of TLS that processes of the observed services have mapped, with --tls. Each is probed once, for all
 * processes. A process may map one later, so it is looked at in each reading until it has.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "host/libraries.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/* OpenSSL's, and those of its relatives with the same functions. */
#define LIBRARY "libssl.so"

/*
 * A file that is looked into takes 24 descriptors, and any user with an observed service can bring files without end. So
 * they may take half of all descriptors. A quarter of that is for files that are not root's, so such a user keeps no
 * package's file out.
 */
#define DESCRIPTORS 24U
#define PLACES_MIN  8U
#define PLACES_MAX  256U

struct source_libraries {
	struct library *known; /* probed, or refused */
	size_t known_count;
	unsigned int places, rooted, others; /* of @known: files of root, and of others */
	uint32_t *done;			     /* processes that have a known one */
	size_t done_count;
	bool full; /* it was said that no place is left */
	struct loader *loader;
	source_library said;
};

static unsigned int count_places(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 2 / DESCRIPTORS < PLACES_MIN)
		return PLACES_MIN;
	limit.rlim_cur = limit.rlim_cur / 2 / DESCRIPTORS;
	return limit.rlim_cur < PLACES_MAX ? (unsigned int)limit.rlim_cur : PLACES_MAX;
}

int source_libraries_new(struct loader *loader, source_library said,
			 struct source_libraries **ret_source)
{
	struct source_libraries *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->loader = loader;
	source->said = said;
	source->places = count_places();
	*ret_source = source;
	return 0;
}

void source_libraries_free(struct source_libraries *source)
{
	if (!source)
		return;
	free(source->known);
	free(source->done);
	free(source);
}

static bool is_known(const struct source_libraries *source, const struct library *library)
{
	for (size_t i = 0; i < source->known_count; i++)
		if (source->known[i].device == library->device &&
		    source->known[i].inode == library->inode)
			return true;
	return false;
}

static bool is_done(const struct source_libraries *source, uint32_t pid)
{
	for (size_t i = 0; i < source->done_count; i++)
		if (source->done[i] == pid)
			return true;
	return false;
}

/* @fd: its file, or why it cannot be opened. Return 0, or why it is not looked into. */
static int probe(struct source_libraries *source, const struct library *library, int fd,
		 bool is_rooted)
{
	unsigned int *taken = is_rooted ? &source->rooted : &source->others;
	unsigned int places_other = source->places / 4;

	if (*taken == (is_rooted ? source->places - places_other : places_other))
		return -E2BIG;
	if (ARRAY_GROW(source->known, source->known_count))
		return -ENOMEM;
	++*taken;
	source->known[source->known_count++] = *library;
	return fd < 0 ? fd : loader_probe_library(source->loader, fd);
}

/* Say it once: a user can bring files without end. */
static void say(struct source_libraries *source, const char *path, int r)
{
	if (!source->said || (r == -E2BIG && source->full))
		return;
	source->full |= r == -E2BIG;
	source->said(path, r);
}

/* Without memory the next reading tries again. */
static void look_at(void *context, uint32_t pid)
{
	struct source_libraries *source = context;
	struct library library;
	bool is_rooted = false;
	autoclose int fd = -1;

	if (is_done(source, pid) || library_of(pid, LIBRARY, &library) < 0 ||
	    ARRAY_GROW(source->done, source->done_count))
		return;
	source->done[source->done_count++] = pid;
	if (is_known(source, &library))
		return;
	fd = library_open(&library, &is_rooted);
	say(source, library.path, probe(source, &library, fd, is_rooted));
}

/* Forget processes that have ended: their numbers may be given again. */
static void forget(struct source_libraries *source, const struct source_proc *processes)
{
	size_t kept = 0;

	for (size_t i = 0; i < source->done_count; i++)
		if (source_proc_has(processes, source->done[i]))
			source->done[kept++] = source->done[i];
	source->done_count = kept;
}

void source_libraries_update(struct source_libraries *source, const struct source_proc *processes)
{
	forget(source, processes);
	source_proc_visit(processes, look_at, source);
}
