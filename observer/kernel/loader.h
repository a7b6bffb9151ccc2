/* SPDX-License-Identifier: MIT */
/*
 * Brings the BPF programs into the kernel and takes them out again. Nothing is pinned: programs and
 * maps live as long as this process's descriptors, so they are gone when it ends, however it ends.
 */
#ifndef OBSERVER_KERNEL_LOADER_H
#define OBSERVER_KERNEL_LOADER_H

#include <stddef.h>
#include <stdint.h>

#include "maps.h"
#include "plan.h"
#include "sojourn/cleanup.h"
#include "wire/config.h"
#include "wire/counters.h"
#include "wire/status.h"
#include "wire/window.h"

struct clear_places;
struct loader;

struct loader_options {
	struct observer_config config; /* cpus: raised to the possible ones if lower */
	int netns_fd;		       /* namespace whose sockets are visited; -1: our own */
	int cgroup_fd;		       /* for programs that attach to a cgroup; -1: none */
	int target_fd;		   /* the cgroup whose listeners are observed, with config.cgroup */
	bool run_statistics;	   /* have the kernel time the programs while we run */
	const char *const *routes; /* config.route_rows - 1 texts, which stay */
	/* With config.beside: streams of HTTP/2 are followed from now on, or cannot be. May be NULL. */
	void (*streams)(int error);
};

/* A program to be tried. */
struct loader_trial {
	const char *program;
	/*
	 * Instructions that the verifier processed; 0 before Linux 5.16, which does not report it
	 * (aba64c7da983).
	 */
	uint32_t verified;
};

struct loader_rehearsal {
	int cgroup_fd; /* -1: a program for a cgroup is loaded, but not attached */
	bool shared;   /* try the programs for copies that CPUs share (bpf/copies.h) */
	bool beside; /* try those for streams as they are beside the plain ones (bpf/tcp/http/beside.h) */
};

/*
 * Load all of @trials, attach each, and release them. Return 0, or -errno if one was refused. Then @reason says why,
 * and *ret_refused is its index, unless that is not known.
 */
int loader_rehearse(struct loader_trial *trials, size_t count,
		    const struct loader_rehearsal *rehearsal, size_t *ret_refused, char *reason,
		    size_t size);

/* Memory of the maps. */
struct loader_needs {
	uint64_t fixed_bytes;	/* in all cases */
	uint64_t service_bytes; /* for each service, besides: */
	uint64_t copy_bytes;	/* for each copy of its slot */
	uint32_t cpus;		/* copies if CPUs share none */
	uint32_t copies_least;	/* CPUs may share so few */
};

/* Compute the memory that the maps would take with @config. Nothing is loaded. Return 0 or -errno. */
int loader_map_needs(const struct observer_config *config, struct loader_needs *ret_needs);

/* Open, set up and load the programs that @plan chose; attach nothing yet. 0 or -errno. */
int loader_open(const struct plan *plan, const struct loader_options *options,
		struct loader **ret_loader);
void loader_close(struct loader *loader);
DEFINE_CLEANUP(struct loader *, loader_close)

/*
 * Name a service to be observed, before loader_attach(). -ENOSPC: max_services are there. With config.slots_kept that
 * is no error: the service then gets a slot with its first traffic.
 */
int loader_add_service(struct loader *loader, const struct service_key *key);

/* Attach the programs, then pick up the existing sockets. 0 or -errno. */
int loader_attach(struct loader *loader);

/*
 * When the kernel side has met HTTP/2, attach the programs for its streams. A failure is not final. Each pass over the
 * sockets does it, too.
 */
void loader_follow_streams(struct loader *loader);

/*
 * With config.tls, after loader_attach(): look into the calls of the library of TLS whose file is open as @fd.
 * Its functions are at @places (clear.h). 0, -ECANCELED after loader_end_probing(), or -errno.
 */
int loader_probe_library(struct loader *loader, int fd, const struct clear_places *places);
/* From now on this process lacks the rights: an attempt would only raise an alarm. */
void loader_end_probing(struct loader *loader);

/*
 * After loader_attach(): detach the programs, and attach them again. Each takes milliseconds. The programs keep their
 * state of connections, and miss all events in between. loader_resume() returns 0 or -errno.
 */
void loader_pause(struct loader *loader);
int loader_resume(struct loader *loader);

/* Set whether sockets of the local port pass the programs' filter. Those of an added service pass already. */
void loader_watch(struct loader *loader, uint16_t port, bool watched);

/*
 * Visit the sockets: refill the gauges, and pick up unknown ones. @flush: send each complete sampled exchange now,
 * instead of at its connection's next event. Return 0 or -errno.
 */
int loader_visit_sockets(struct loader *loader, bool flush);

/*
 * Put the services that have slots into @ret_keys, which has room for @size; port 0: the index is free.
 * Return how many indices to look at.
 */
size_t loader_services(const struct loader *loader, struct service_key *ret_keys, size_t size);
/*
 * Return the number of services without a slot for their traffic, and of connections not observed
 * for that.
 */
uint64_t loader_services_dropped(const struct loader *loader);
uint64_t loader_connections_dropped(const struct loader *loader);
/* Call @visit for each service without a slot that the kernel side remembers, with its connections. */
void loader_dropped(const struct loader *loader,
		    void (*visit)(void *context, const struct service_key *key,
				  uint64_t connections),
		    void *context);

/* Return how many services may still get a slot. */
uint32_t loader_services_left(const struct loader *loader);
/*
 * Return the number by which the kernel side knows the service (wire/config.h). It changes when the slot is given to
 * another service.
 */
uint32_t loader_service_number(const struct loader *loader, uint32_t service);
/*
 * Return how many listeners have no slot because they are unused, at the last visit to the sockets.
 */
uint32_t loader_idle_listeners(const struct loader *loader);
/*
 * Take back the slots of @services, whose keys are @keys. The caller has seen that they are unused. @last is called
 * for each when its counts are final; they are lost when it returns. 0 or -errno.
 */
int loader_reclaim(struct loader *loader, const struct service_key *keys, const uint32_t *services,
		   size_t count, void (*last)(void *context, uint32_t service), void *context);

/* Return a copy of the slot of @service. The kernel side writes to it, and to all below, while we read. */
const struct service_slot *loader_slot(const struct loader *loader, uint32_t copy,
				       uint32_t service);
/* NULL without config.transmit_below. */
const struct service_transmit *loader_transmit(const struct loader *loader, uint32_t copy,
					       uint32_t service);
/* NULL without config.cpu. */
const struct service_split *loader_split(const struct loader *loader, uint32_t copy,
					 uint32_t service);
/* NULL without config.http. */
const struct service_statuses *loader_statuses(const struct loader *loader, uint32_t copy,
					       uint32_t service);
/* Return the counts of @row, whose name is loader_route(); NULL without config.route_rows. */
const struct service_route *loader_route_row(const struct loader *loader, uint32_t copy,
					     uint32_t service, uint32_t row);
/* Return the row of each command by its id, for commands_rows(). NULL without config.command_rows. */
const uint64_t *loader_command_places(const struct loader *loader);
/* Return the counts of @row. Not without config.command_rows. */
const struct service_route *loader_command_row(const struct loader *loader, uint32_t copy,
					       uint32_t service, uint32_t row);
/* NULL without config.command_rows. */
const struct service_unnamed *loader_unnamed(const struct loader *loader, uint32_t copy,
					     uint32_t service);
/* NULL without config.propose. */
const struct route_paths *loader_paths(const struct loader *loader, uint32_t service);
/* Return the text of the route that has @row; NULL: it is that of others. */
const char *loader_route(const struct loader *loader, uint32_t row);
const struct service_gauges *loader_gauges(const struct loader *loader, uint32_t service);
/* Return how many connections found an accept queue of the namespace full since the first pass. */
struct run_number loader_overflows(const struct loader *loader, uint32_t netns);
/* Return the listeners of all services, as the last pass found them; NULL: not known, or some were left out. */
const struct listener_gauge *loader_listeners(const struct loader *loader, uint32_t *ret_count);
const struct service_open *loader_open_requests(const struct loader *loader, uint32_t service);
const struct service_spans *loader_spans(const struct loader *loader, uint32_t service);
/* NULL without config.streams. */
const struct service_windows *loader_windows(const struct loader *loader, uint32_t service);
/*
 * Find the destination towards which the namespace uses the most ephemeral ports, by the last visit (.used 0: none).
 * *ret_capacity is the number of ports that a destination can use. False: not known.
 */
bool loader_ports(const struct loader *loader, uint32_t netns, uint32_t *ret_capacity,
		  struct port_place *ret_fullest);
/* Return whether the namespace's sockets have been visited. If not, its gauges are not known. */
bool loader_visited(const struct loader *loader, uint32_t netns);
/* Return whether the namespace has ended; always false without all_netns. */
bool loader_gone(const struct loader *loader, uint32_t netns);
/* Return counts of the namespaces that are visited, with all_netns. */
const struct run_namespaces *loader_namespaces(const struct loader *loader);
/* Return the number of copies of each slot. */
uint32_t loader_copies(const struct loader *loader);
const struct observer_config *loader_config(const struct loader *loader);

/*
 * Return the map with the depths of all listeners' accept queues (bpf/doctor/backlog.bpf.c); -1:
 * none.
 */
int loader_depths_fd(const struct loader *loader);

/* Call @visit for every (service, process) that was seen to listen, read or write. */
void loader_owners(const struct loader *loader,
		   void (*visit)(void *context, const struct owner_key *owner), void *context);

/*
 * Call @visit for every process that has opened connections to a service, with their number. The key is a struct
 * owner_key; its .service is the service connected to.
 */
void loader_fronts(const struct loader *loader, kernel_count_visit *visit, void *context);
/*
 * Call @visit for every place to which processes that serve have opened connections, with their number. The key is a
 * struct call_key.
 */
void loader_calls(const struct loader *loader, kernel_count_visit *visit, void *context);

/* Call @visit for each place that services' processes call, until it returns not 0, with config.calls. Return that. */
int loader_timed_calls(const struct loader *loader, kernel_call_visit *visit, void *context);

/* The ring of sampled exchanges (wire/event.h), and the threshold below which they are sampled. */
int loader_ring_fd(const struct loader *loader);
void loader_set_sample_threshold(struct loader *loader, uint64_t threshold);

/* Begin a new epoch (wire/counters.h); return its number. */
uint64_t loader_next_epoch(struct loader *loader);
/* Return the earliest arrival of the current epoch in a copy of the slot of @service; 0: none. */
uint64_t loader_first_message(const struct loader *loader, uint32_t copy, uint32_t service);

struct loader_program {
	char name[32];
	char hook[48]; /* "tp_btf/sk_data_ready" */
	uint64_t runs;
	uint64_t run_ns;
	uint64_t recursion_misses;
};

/* Cost of the loaded programs, and runs they missed; runs and run_ns are 0 without run statistics. */
size_t loader_programs(const struct loader *loader, struct loader_program *ret_programs,
		       size_t size);
/* Memory of all its maps, bytes. */
uint64_t loader_map_bytes(const struct loader *loader);

#endif
