/* SPDX-License-Identifier: MIT */
/* Shared by loader.c and rehearse.c: the object of all BPF programs, before it is loaded. */
#ifndef OBSERVER_KERNEL_SKELETON_H
#define OBSERVER_KERNEL_SKELETON_H

#include "wire/config.h"

#include "sojourn_bpf.skel.h"

/*
 * Open the object, with the maps' sizes of @config, and begin to listen to libbpf (message.h). No program is chosen
 * yet. 0 or -errno; the caller destroys @ret_skel, also after an error.
 */
int loader_skeleton_open(const struct observer_config *config, struct sojourn_bpf **ret_skel);

/* Have @program loaded with the object. */
void loader_skeleton_choose(struct sojourn_bpf *skel, const char *program);

#endif
