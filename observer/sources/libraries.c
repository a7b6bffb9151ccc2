// SPDX-License-Identifier: MIT
/*
 * The libraries of TLS that processes of the observed services have mapped, with --tls. Each is probed once, for all
 * processes. A process may map one later, so it is looked at in each reading until it has.
 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>

#include "host/libraries.h"
#include "sojourn/array.h"

/* OpenSSL's, and those of its relatives with the same functions. */
#define LIBRARY "libssl.so"

struct source_libraries {
	struct library *known; /* probed, or refused */
	size_t known_count;
	uint32_t *done; /* processes that have a known one */
	size_t done_count;
	struct loader *loader;
	source_library said;
};

int source_libraries_new(struct loader *loader, source_library said,
			 struct source_libraries **ret_source)
{
	struct source_libraries *source = calloc(1, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->loader = loader;
	source->said = said;
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

/* Without memory the next reading tries again. */
static void look_at(void *context, uint32_t pid)
{
	struct source_libraries *source = context;
	struct library library;
	int r;

	if (is_done(source, pid) || library_of(pid, LIBRARY, &library) < 0 ||
	    ARRAY_GROW(source->done, source->done_count) ||
	    ARRAY_GROW(source->known, source->known_count))
		return;
	source->done[source->done_count++] = pid;
	if (is_known(source, &library))
		return;
	source->known[source->known_count++] = library;
	r = loader_probe_library(source->loader, library.path);
	if (source->said)
		source->said(library.path, r);
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
