/* SPDX-License-Identifier: MIT */
/* The common types of upstreams.c and called.c: a period's first look, and the reading at its end. */
#ifndef OBSERVER_MODEL_UPSTREAMS_PARTS_H
#define OBSERVER_MODEL_UPSTREAMS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/net/outgoing.h"
#include "host/process.h"
#include "kernel/loader.h"
#include "sojourn/run.h"

/* Connections to a service that belong to a process. */
struct front {
	struct owner_key key; /* .service: the service connected to */
	uint64_t connections;
	struct run_service *service; /* see struct reading */
};

struct fronts {
	struct front *list;
	size_t count;
	bool short_of_memory;
};

/* Connections to a port that are older than the period. */
struct older {
	uint16_t port;
	uint32_t pid; /* 0: not known, or not of this host */
	uint64_t connections;
};

/* Connections that a process which serves has opened to a place. */
struct called {
	struct call_key key;
	uint64_t connections;
};

struct called_list {
	struct called *list;
	size_t count;
	bool short_of_memory;
};

/* A process's connection to another host that is older than the period. */
struct far {
	uint32_t pid;
	char towards[sizeof(((struct run_call *)NULL)->towards)];
};

struct far_list {
	struct far *list;
	size_t count;
};

struct upstreams {
	struct fronts before;
	struct called_list called_before;
	struct far_list far_before;
	struct timed_calls *timed_before;
	uint32_t netns; /* the namespace that was looked at */
	struct older *older;
	size_t older_count;
	bool looked;
};

/* A service of the document, by the number that the kernel side has given it. */
struct place {
	uint32_t number;
	struct run_service *service;
};

/* Connections of a process to a service. */
struct call {
	struct run_service *upstream;
	uint32_t pid;
	uint64_t connections;
};

/*
 * One process may have hundreds of services, and connections to all of them. So no list is searched for a pair of
 * services. All services here are TCP services of the namespace that was looked at.
 */
struct reading {
	const struct upstreams *upstreams;
	struct run *run;
	struct place *places; /* sorted by number */
	size_t place_count;
	struct run_service **by_port; /* NULL: no service has the port */
	struct fronts now;
	struct fronts owners; /* of all services, by process; .connections is not used */
	struct call *calls;   /* by upstream */
	size_t call_count;
};

/* Return whether it is a TCP service of the namespace that was looked at. */
bool upstreams_is_looked_at(const struct reading *reading, const struct run_service *service);
/* Order struct front by process, as reading->owners are, for qsort(). */
int upstreams_compare_processes(const void *a, const void *b);
/* Return the first of the services that @pid owns, in reading->owners; NULL: none. The others follow. */
const struct front *upstreams_first_owned(const struct reading *reading, uint32_t pid);
bool upstreams_is_owned(const struct reading *reading, const struct front *owned, uint32_t pid);
/* Find two other services with requests that the front's processes serve, too. NULL: there are no more. */
void upstreams_served_too(const struct reading *reading, const struct run_service *front,
			  const struct run_service *ret_others[2]);

/* Read how many connections each process that serves has opened so far, by place. 0 or -ENOMEM. */
int upstreams_read_called(const struct loader *loader, struct called_list *ret_called);
/* Note the inodes of connections to other hosts, for process_owners(). Return their number. */
size_t upstreams_far_inodes(const struct outgoing_list *open, struct socket_owner *ret_owners);
/* Keep those connections whose process was found. 0 or -ENOMEM. */
int upstreams_keep_far(const struct outgoing_list *open, const struct socket_owner *owners,
		       size_t count, struct far_list *ret_far);
/* Fill in the services' called places, and how many of their own connections are older. 0 or -ENOMEM. */
int upstreams_name_places(const struct reading *reading, const struct loader *loader);

#endif
