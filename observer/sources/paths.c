// SPDX-License-Identifier: MIT
/* Reads the kernel side's sample of a service's paths, and has routes proposed for it; see wire/route.h. */
#include <stdbool.h>
#include <string.h>

#include "propose.h"
#include "source.h"
#include "kernel/loader.h"
#include "kernel/tables/route.h"

/* Copy a path unless it is being written, or was while it was copied. */
static bool read_path(const struct route_path *path, struct route_path *ret_path)
{
	uint32_t turn = __atomic_load_n(&path->turn, __ATOMIC_ACQUIRE);

	memcpy(ret_path, path, sizeof(*path));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!turn || turn & 1 || __atomic_load_n(&path->turn, __ATOMIC_RELAXED) != turn ||
	    ret_path->length > ROUTE_PATH_BYTES)
		return false;
	route_path_plain(ret_path);
	return ret_path->length;
}

int source_paths_read(const struct loader *loader, uint32_t index,
		      struct run_proposed *ret_proposed)
{
	const struct route_paths *kept = loader_paths(loader, index);
	struct route_path paths[ROUTE_PATHS];
	size_t count = 0;

	if (!kept)
		return 0;
	ret_proposed->most = ROUTE_PATHS;
	ret_proposed->requests = __atomic_load_n(&kept->requests, __ATOMIC_RELAXED);
	ret_proposed->not_known = __atomic_load_n(&kept->unknown, __ATOMIC_RELAXED);
	for (size_t i = 0; i < ROUTE_PATHS; i++)
		count += read_path(&kept->list[i], &paths[count]);
	ret_proposed->paths = count;
	return propose_routes(paths, count, ret_proposed);
}
