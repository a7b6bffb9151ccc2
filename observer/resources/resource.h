/* SPDX-License-Identifier: MIT */
/*
 * A resource that can run out: its use, its limit, its speed, its users. It is made from two
 * readings a sample apart; diagnose.h interprets it.
 */
#ifndef OBSERVER_RESOURCES_RESOURCE_H
#define OBSERVER_RESOURCES_RESOURCE_H

#include <math.h>

#include "events.h"
#include "owners.h"
#include "host/net/netns.h"

enum resource_kind {
	RESOURCE_PORTS,
	RESOURCE_DESCRIPTORS,
	RESOURCE_FILES,
	RESOURCE_ACCEPT_QUEUE,
	RESOURCE_SYN_QUEUE,
	RESOURCE_CLOSE_WAIT,
	RESOURCE_TIME_WAIT,
	RESOURCE_ORPHANS,
	RESOURCE_TCP_MEMORY,
	RESOURCE_CONNTRACK,
	RESOURCE_UDP_BUFFER,
	RESOURCE_PORT_FAILURES,
	RESOURCE_ADDRESS_FAILURES,
	RESOURCE_DESCRIPTOR_FAILURES,
	RESOURCE_FILE_FAILURES,
	RESOURCE_UNREAD_DATA,  /* connections whose data nobody reads */
	RESOURCE_CLOSING_DATA, /* closed connections whose peers do not take the rest */
	RESOURCE_DEAD_QUEUED,  /* in an accept queue, their clients have left */
	RESOURCE_REQUESTS,     /* of an observed service: read and not answered, or unread */
	RESOURCE_SERVICES,     /* that the observer has no slot for */
	RESOURCE_KINDS
};

/* As in the document: "ephemeral_ports", "descriptors", … */
extern const char *const resource_names[RESOURCE_KINDS];

#define RESOURCE_FACTS	 24
#define RESOURCE_NO_USER UINT32_MAX
#define RESOURCE_OWNERS	 4
/* Replaces the name of a process that has ended. */
#define RESOURCE_ENDED "(ended)"

struct resource_fact {
	const char *name;
	double value;
	const char *unit;
	const char *source;
	bool zero_counts; /* the finding has it also if it is zero */
};

struct resource_owner {
	uint32_t pid;
	uint32_t sockets; /* of this resource, held by it; 0: not counted */
	char comm[16];
	char unit[64];
	char did[96]; /* from events in the sample: "12 connect() calls, mean 70 µs" */
};

struct resource {
	enum resource_kind kind;
	uint32_t netns; /* 0: the host's */
	char netns_name[64];
	char object[128];
	uint16_t port;	     /* that it is about; 0: none */
	uint16_t other_port; /* a second one: of the connection's other end */
	double used;
	double capacity;     /* 0: none or not known; NAN: of an accept queue, not known */
	double growth;	     /* per second in the sample */
	double seconds_left; /* INFINITY: it does not end */
	double leaking;	     /* per second, if it grew throughout a sample of 3 s or more */
	double events;	     /* failures in the sample */
	double hangs;	     /* seconds for which requests have waited and none was answered */
	double grown;	     /* since the first reading, steadily; 0: not so, or not known */
	bool command_idle;   /* the rule's command would change nothing here */
	uint64_t cookie;     /* of a listener; 0: not known */
	bool has_user;	     /* of a listener, or of ports: of the one that they lead to */
	uint32_t user;	     /* who opened that listener; RESOURCE_NO_USER: it is gone */
	double deepest;	     /* of an accept queue since the watch began; NAN: not known */
	uint64_t connects;   /* in the sample, if events are watched */
	uint64_t connect_ns; /* in them until the SYN left */
	uint64_t made[4];    /* TIME_WAIT by clients, by servers; resets likewise */
	char outlook[256];
	struct resource_fact facts[RESOURCE_FACTS];
	size_t fact_count;
	struct resource_owner owners[RESOURCE_OWNERS];
	size_t owner_count;
};

struct run;

struct resource_list {
	struct resource *entries;
	size_t count;
};

/* Two readings of a namespace and who holds what in the second. */
struct resource_pair {
	struct resource_netns before, after;
	/* CLOSE_WAIT of earlier looks, to find slow growth: the older one first. */
	struct close_wait_past {
		struct socket_list list;
		uint64_t at_ns; /* 0: none */
	} past[2];
	struct owner_table owners;
	double seconds; /* between them */
};

/* Keep the first reading's CLOSE_WAIT for later looks, and drop the oldest. */
void close_wait_remember(struct resource_pair *pair);
void close_wait_forget(struct resource_pair *pair);

/* Append requests of @run's observed services; requests.c. */
void resource_measure_requests(const struct run *run, struct resource_list *list);

/* Append the services that were not observed; services.c. */
void resource_measure_services(const struct run *run, struct resource_list *list);

/* Add a resource at the list's end; NULL without memory. Pointers to others become invalid. */
struct resource *resource_add(struct resource_list *list, enum resource_kind kind,
			      const struct resource_netns *netns);
void resource_fact(struct resource *resource, const char *name, double value, const char *unit,
		   const char *source);
/* Count one more socket of @pid's; the processes with most sockets come first. */
void resource_own(struct resource *resource, uint32_t pid);
/* Return the owner with @pid, added if there is room. NULL: there is none, or @pid is 0. */
struct resource_owner *resource_owner(struct resource *resource, uint32_t pid);
/* Add to what the owner with @pid did, after a comma. */
__attribute__((format(printf, 3, 4))) void resource_did(struct resource *resource, uint32_t pid,
							const char *format, ...);
/* Names and units of the owners. */
void resource_name_owners(struct resource *resource);
void resource_list_free(struct resource_list *list);

/*
 * Append the resources of @pair, one function per kind. @processes: with @points of their descriptors, which
 * distinguish growth from a pool that filled up.
 */
void resource_measure_ports(const struct resource_pair *pair, const struct process_list *processes,
			    unsigned int points, bool period, struct resource_list *list);
void resource_measure_sockets(const struct resource_pair *pair, struct resource_list *list);
void resource_measure_close_wait(const struct resource_pair *pair, struct resource_list *list);
void resource_measure_held(const struct resource_pair *pair, struct resource_list *list);
void resource_measure_limits(const struct resource_pair *pair, struct resource_list *list);
/* @points readings of the descriptors, @seconds from first to last. @past: with what was nearly full only for a time. */
void resource_measure_processes(const struct process_list *processes, unsigned int points,
				double seconds, bool past, struct resource_list *list);
/* Return whether a process in @list may go on to open descriptors: true too where it is not known. */
bool resource_may_grow(const struct process_list *list, uint32_t pid, unsigned int points);
/* Limits of the host, read where they can be seen: in our own namespace. */
void resource_measure_host(const struct resource_numbers *before,
			   const struct resource_numbers *after, struct resource_list *list);

/*
 * Append failures between two readings of events as resources, and their causes to those of @list.
 * @netns_of names the observed namespaces; NULL: none.
 */
void resource_measure_events(const struct events_reading *before,
			     const struct events_reading *after,
			     const struct resource_netns *(*netns_of)(const void *context,
								      uint32_t inode),
			     const void *context, struct resource_list *list);

/* Least squares over equidistant points: per point; *ret_share is R², how straight the line is. */
double resource_slope(const uint32_t *points, unsigned int count, double *ret_share);

#endif
