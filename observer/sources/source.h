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

/* slots.c: read counters and histograms that the kernel keeps, and statuses and routes of TCP. 0 or -ENOMEM. */
int source_slots_read(const struct loader *loader, uint32_t index, const struct service_key *key,
		      struct run_service *service);
/* Propose routes for requests that have none, if that was requested. 0 or -ENOMEM. */
int source_paths_read(const struct loader *loader, uint32_t index,
		      struct run_proposed *ret_proposed);
/*
 * Conclude a UDP service's reading: datagrams still without a reply become unanswered, which may
 * change later. An exchange that is counted at this moment, but not timed yet, is untimed.
 */
void source_slots_conclude(const struct loader *loader, uint32_t index,
			   struct run_service *service);
/*
 * Check a UDP service's period. The stage "service" becomes not measured if so many replies could not be matched to
 * requests that the others are not representative. The reason names the pattern.
 */
void source_slots_doubt(const struct loader *loader, uint32_t index, struct run_service *service);
/* Return how many sampled exchanges of the service ever found the ring full. */
uint64_t source_slots_lost(const struct loader *loader, uint32_t index);
/* Return how many requests of all TCP services among @keys ever lost their connections without an answer. */
uint64_t source_slots_unanswered(const struct loader *loader, const struct service_key *keys,
				 size_t count);
/* Get how many connections each of @keys ever accepted. */
void source_slots_accepted(const struct loader *loader, const struct service_key *keys,
			   size_t count, uint64_t *ret_accepted);
/* Get the counts that go into the sum when another service gets the slots. False: all are zero. */
bool source_slots_remains(const struct loader *loader, uint32_t index,
			  struct run_reclaimed *ret_remains);
/* Return the time of the latest write; 0: none yet. */
uint64_t source_slots_last_message(const struct loader *loader, uint32_t index);
/* Return the service's earliest arrival in the current epoch; 0: none. */
uint64_t source_slots_first_message(const struct loader *loader, uint32_t index);

/* Make @ret_histogram, a zeroed one or an earlier reading, from one that all CPUs share. */
void source_histogram_read(const struct stage_histogram *all, struct histogram *ret_histogram);

/* stages.c: mark the stages that @plan cannot measure, with the reason. Name the hooks that measure the others. */
void source_stages_mark(const struct loader *loader, const struct plan *plan,
			const struct service_key *key, struct run_service *service);

/* sockets.c: read gauges of the last visit to the sockets of its namespace. 0 or -ENOMEM. */
int source_sockets_read(const struct loader *loader, uint32_t index, struct run_service *service);

/* proc.c: the processes of the services, and where they run. */
struct source_proc;
int source_proc_new(struct source_proc **ret_source);
void source_proc_free(struct source_proc *source);
/*
 * Update the processes that the kernel side has seen. For services that have none yet, look for
 * the holders of listeners that the last visit has met.
 */
void source_proc_update(struct source_proc *source, const struct loader *loader);
int source_proc_read(struct source_proc *source, const struct loader *loader, uint32_t index,
		     struct run_service *service);

/* Call @visit for each process of a service, as of the last update: once for each of its services. */
void source_proc_visit(const struct source_proc *source, void (*visit)(void *context, uint32_t pid),
		       void *context);

/* libraries.c: the libraries whose plain text is looked into. */
struct source_libraries;
/* Called for each library that was found. @error: 0, or why it is not looked into. */
typedef void (*source_library)(const char *path, int error);
int source_libraries_new(struct loader *loader, source_library said,
			 struct source_libraries **ret_source);
void source_libraries_free(struct source_libraries *source);
/* Look for libraries of the processes. */
void source_libraries_update(struct source_libraries *source, const struct source_proc *processes);
/* Say what the last update has found in the process. */
void source_libraries_read(const struct source_libraries *source, struct run_process *process);

/* cost.c: the cost of observing. */
int source_cost_read(const struct loader *loader, bool run_statistics, struct run_cost *ret_cost);

#endif
