/* SPDX-License-Identifier: MIT */
/*
 * The sources of a reading. Each fills its part of the run document and knows nothing of the others.
 */
#ifndef OBSERVER_SOURCES_SOURCE_H
#define OBSERVER_SOURCES_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/loader.h"
#include "kernel/plan.h"
#include "sojourn/run.h"

/* slots.c: counters and histograms that the kernel keeps. */
void source_slots_read(const struct loader *loader, uint32_t index, struct run_service *service);
/*
 * Of a UDP service's reading: datagrams that are without a reply by now become unanswered, which may change
 * later. An exchange that is counted at this moment, and not timed yet, is untimed.
 */
void source_slots_conclude(const struct loader *loader, uint32_t index,
			   struct run_service *service);
/*
 * Of a UDP service's period: `service` becomes not measured where so many replies could not be matched to
 * their requests that the others do not stand for all. The reason names the pattern.
 */
void source_slots_doubt(const struct loader *loader, uint32_t index, struct run_service *service);
/* Sampled exchanges of the service that found the ring full, ever. */
uint64_t source_slots_lost(const struct loader *loader, uint32_t index);
/* Marks the stages that @plan cannot measure, and which candidate measured the others. */
void source_slots_mark(const struct loader *loader, const struct plan *plan,
		       const struct service_key *key, struct run_service *service);
/* The counts left of a service when another one gets its slots. False: nothing of it was ever counted. */
bool source_slots_remains(const struct loader *loader, uint32_t index,
			  struct run_reclaimed *ret_remains);
/* The latest write; 0: none yet. */
uint64_t source_slots_last_message(const struct loader *loader, uint32_t index);
/* Earliest arrival in the current epoch; 0 if there was none. */
uint64_t source_slots_first_message(const struct loader *loader, uint32_t index);

/* sockets.c: gauges that the last visit to the sockets of its namespace counted. 0 or -ENOMEM. */
int source_sockets_read(const struct loader *loader, uint32_t index, struct run_service *service);

/* proc.c: the processes of the services, and where they run. */
struct source_proc;
int source_proc_new(struct source_proc **ret_source);
void source_proc_free(struct source_proc *source);
/*
 * Learns of processes: those seen by the kernel side, and for services that have none yet whoever
 * holds a listener that the last visit to the sockets has met.
 */
void source_proc_update(struct source_proc *source, const struct loader *loader);
int source_proc_read(struct source_proc *source, const struct loader *loader, uint32_t index,
		     struct run_service *service);

/* cost.c: what observing costs. */
int source_cost_read(const struct loader *loader, bool run_statistics, struct run_cost *ret_cost);

#endif
