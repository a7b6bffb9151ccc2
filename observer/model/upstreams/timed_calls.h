/* SPDX-License-Identifier: MIT */
/* Calls of services' processes to their upstreams, with --calls (bpf/tcp/calls.h). Used by upstreams.c. */
#ifndef OBSERVER_MODEL_UPSTREAMS_TIMED_CALLS_H
#define OBSERVER_MODEL_UPSTREAMS_TIMED_CALLS_H

#include "kernel/loader.h"
#include "sojourn/run.h"

struct timed_calls;

/* Note the counts so far, from which a period begins. 0 or -ENOMEM. */
int timed_calls_new(const struct loader *loader, struct timed_calls **ret_calls);
void timed_calls_free(struct timed_calls *calls);

/* Fill in the calls of the services in @run since @before (NULL: all of them); see upstreams_read(). 0 or -ENOMEM. */
int timed_calls_read(const struct timed_calls *before, const struct loader *loader,
		     const struct service_key *keys, size_t key_count, struct run *run);

#endif
