/* SPDX-License-Identifier: MIT */
/*
 * In which cgroup, container and pod a process runs, as /proc and the files of container runtimes say it. No runtime
 * and no API server is asked.
 */
#ifndef OBSERVER_HOST_CONTAINER_H
#define OBSERVER_HOST_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "sojourn/run.h"

/* What the text of /proc/PID/cgroup says: path, container and pod by number. Nothing is empty text. */
void container_parse(const char *text, struct run_place *ret_place);

/* Names by the files below @root, which is "" but in tests. Those that are not found stay empty. */
void container_name(const char *root, struct run_place *place);

/* What is said of process @pid, without names. 0 or -ESRCH. */
int container_read(uint32_t pid, struct run_place *ret_place);

/*
 * What two processes of a service have in common: the path down to where theirs part, and the container and the pod if
 * both are in the same.
 */
void container_common(struct run_place *place, const struct run_place *other);

#endif
