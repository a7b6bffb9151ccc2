/* SPDX-License-Identifier: MIT */
/*
 * The programs for streams of HTTP/2, with config.beside: loaded with all others, and attached beside the plain ones when
 * a connection speaks HTTP/2 (bpf/tcp/http/beside.h). A part of loader.c.
 */
#ifndef OBSERVER_KERNEL_RUNNING_BESIDE_H
#define OBSERVER_KERNEL_RUNNING_BESIDE_H

#include "services.h"

#include "sojourn_bpf.skel.h"

/* Before the object is loaded: keep libbpf from attaching them with the others. */
void beside_hold_back(struct sojourn_bpf *skel);

/* Return whether they are wanted and not attached. */
bool beside_is_wanted(const struct sojourn_bpf *skel);

/* Attach them. 0 or -errno; then it may be tried again. */
int beside_attach(struct sojourn_bpf *skel, const struct services *services);

/* Return whether streams are followed now, beside or not. */
bool beside_follows(const struct sojourn_bpf *skel);

#endif
