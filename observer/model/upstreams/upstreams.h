/* SPDX-License-Identifier: MIT */
/*
 * Which observed service is the upstream of which: the processes of the front have opened its connections
 * (docs/measurement.md, "Upstreams").
 */
#ifndef OBSERVER_MODEL_UPSTREAMS_UPSTREAMS_H
#define OBSERVER_MODEL_UPSTREAMS_UPSTREAMS_H

#include "kernel/loader.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

struct upstreams;

/* Note how many connections each process has opened so far, before the period's first reading. 0 or -ENOMEM. */
int upstreams_new(const struct loader *loader, struct upstreams **ret_upstreams);
void upstreams_free(struct upstreams *upstreams);
DEFINE_CLEANUP(struct upstreams *, upstreams_free)

/* Find the processes of connections that are open at @base, the period's first reading. 0 or -errno. */
int upstreams_begin(struct upstreams *upstreams, const struct run *base);

/*
 * Name the upstreams of the services in @run, which are the period's differences. They are those of the used @keys, in
 * their order. 0 or -ENOMEM.
 */
int upstreams_read(const struct upstreams *upstreams, const struct loader *loader,
		   const struct service_key *keys, size_t key_count, struct run *run);

#endif
