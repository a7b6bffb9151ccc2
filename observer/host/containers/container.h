/* SPDX-License-Identifier: MIT */
/*
 * In which cgroup, container and pod a process runs, as /proc and the files of container runtimes say it. No runtime
 * and no API server is asked.
 */
#ifndef OBSERVER_HOST_CONTAINERS_CONTAINER_H
#define OBSERVER_HOST_CONTAINERS_CONTAINER_H

#include <stdint.h>

#include "sojourn/run.h"

/* Parse the text of /proc/PID/cgroup: path, container and pod by number. Empty: none. */
void container_parse(const char *text, struct run_place *ret_place);

/* Add names by the files below @root, which is "" except in tests. Names that are not found stay empty. */
void container_name(const char *root, struct run_place *place);

/* Read and parse /proc/PID/cgroup of process @pid, without names. Return 0 or -ESRCH. */
int container_read(uint32_t pid, struct run_place *ret_place);

/*
 * Reduce @place to the part that @other shares: the path down to where they part. Container and pod stay if they are
 * the same.
 */
void container_common(struct run_place *place, const struct run_place *other);

#endif
