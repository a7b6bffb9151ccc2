/* SPDX-License-Identifier: MIT */
/*
 * The sources of a reading. Each fills its part of the run document and knows nothing of the others.
 */
#ifndef OBSERVER_SOURCE_H
#define OBSERVER_SOURCE_H

#include <stdint.h>

#include "loader.h"
#include "plan.h"
#include "sojourn/run.h"

/* source_slots.c: counters and histograms that the kernel keeps. */
void source_slots_read(const struct loader *loader, uint32_t index, struct run_service *service);
/*
 * Of a UDP service's reading: datagrams that are without a reply by now become unanswered, and exchanges whose
 * time the kernel keeps back, since the round that they are of goes on, untimed. Both may change later.
 */
void source_slots_conclude(const struct loader *loader, uint32_t index,
			   struct run_service *service);
/* Sampled exchanges of the service that found the ring full, ever. */
uint64_t source_slots_lost(const struct loader *loader, uint32_t index);
/* Marks the stages that @plan cannot measure, and which candidate measured the others. */
void source_slots_mark(const struct loader *loader, const struct plan *plan,
		       const struct service_key *key, struct run_service *service);
/* Earliest arrival in the current epoch; 0 if there was none. */
uint64_t source_slots_first_message(const struct loader *loader, uint32_t index);

/* source_sockets.c: gauges that the last visit to the sockets counted. */
void source_sockets_read(const struct loader *loader, uint32_t index, struct run_service *service);
/* Likewise of the namespace's ephemeral ports. */
void source_sockets_ports(const struct loader *loader, struct run_ports *ret_ports);

/* source_proc.c: the processes of the services. @pid: whose network namespace (0: ours). */
struct source_proc;
int source_proc_new(uint32_t pid, struct source_proc **ret_source);
void source_proc_free(struct source_proc *source);
/*
 * Learns of processes: those seen by the kernel side, and for services that have none yet whoever
 * holds their listener. @keys are the services by index.
 */
void source_proc_update(struct source_proc *source, const struct loader *loader,
			const struct service_key *keys, size_t count);
int source_proc_read(const struct source_proc *source, uint32_t index, struct run_service *service);

/* source_cost.c: what observing costs. */
int source_cost_read(const struct loader *loader, bool run_statistics, struct run_cost *ret_cost);

#endif
