/* SPDX-License-Identifier: MIT */
/*
 * Services with slots. Gives their numbers (wire/config.h) to the kernel side, and takes slots back
 * from ended services. No count of one service is ever counted for another. A part of loader.c.
 */
#ifndef OBSERVER_KERNEL_RUNNING_SERVICES_H
#define OBSERVER_KERNEL_RUNNING_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/config.h"
#include "wire/counters.h"
#include "wire/status.h"
#include "wire/window.h"

#include "sojourn_bpf.skel.h"

struct services {
	struct sojourn_bpf *skel;
	struct service_slot *slots;
	struct service_split *splits; /* NULL without config.cpu */
	struct service_spans *spans;
	struct service_windows *windows;    /* NULL without config.streams */
	struct service_statuses *statuses;  /* NULL without config.http */
	struct service_transmit *transmits; /* NULL without config.transmit_below */
	struct service_route *routes;	    /* NULL without config.route_rows */
	struct service_route *commands;	    /* NULL without config.command_rows, as the next */
	struct service_unnamed *unnamed;
	struct route_paths *paths; /* by index; NULL without config.propose */
	uint32_t *numbers;	   /* by index: the number of its slots now */
	uint32_t *ring;		   /* the contents of services_free */
	int fence_fd;
	int fence_inner_fd;
};

/* Return whether CPUs share copies of slots (bpf/copies.h), with the config of an opened object. */
static inline bool services_is_shared(const struct observer_config *config)
{
	return config->copies < config->cpus;
}

/* Make all slots free. The caller has mapped their memory. 0 or -errno. */
int services_open(struct services *services, struct sojourn_bpf *skel);
void services_close(struct services *services);

/* Give @key a slot if more than @kept are free. 0, -EEXIST, -ENOSPC or -errno. Before the programs are attached. */
int services_add(struct services *services, const struct service_key *key, uint32_t kept);

/* Before @epoch begins: forget the first messages of the epoch before the current one, where CPUs share copies. */
void services_expect_epoch(struct services *services, uint64_t epoch);
/* Return the earliest arrival of the current epoch in @slot; 0: none. */
uint64_t services_first_message(const struct services *services, struct service_slot *slot);

/* Return the number of the service whose slots at @index are: they get another with each service. */
uint32_t services_number(const struct services *services, uint32_t index);

/* Wait until all programs that run now have ended. 0 or -errno. */
int services_fence(const struct services *services);

/* Return how many slots are free. */
uint32_t services_left(const struct services *services);

/*
 * Take the slots at @indices back from the services of @keys. @last is called for each once no
 * program counts for it any more, for a last reading. Then the slots are emptied and free. 0 or
 * -errno.
 */
int services_reclaim(struct services *services, const struct service_key *keys,
		     const uint32_t *indices, size_t count,
		     void (*last)(void *context, uint32_t index), void *context);

#endif
