/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What user space tells the kernel side, and the keys by which the two name services and processes.
 */
#ifndef WIRE_CONFIG_H
#define WIRE_CONFIG_H

#include <linux/types.h>

#include "wire/flow.h"

/* How the moment is known at which accept() returned a connection. */
enum accept_source {
	ACCEPT_AUTO,	 /* the best that works without a price; user space decides which */
	ACCEPT_RETURNED, /* from the return of the kernel's inet_csk_accept() */
	ACCEPT_SYSCALL,	 /* from the return of the system calls accept() and accept4() */
	ACCEPT_INFERRED, /* from the first read, when the request had arrived before accept() */
};

/* With observer_config.cpu: room for as many threads, fewer where their numbers collide. */
#define THREAD_PLACES 4096

/* Connections that are found fast, with 256 bytes for each: fewer where their hashes collide. A power of 2. */
#define CONN_PLACES 8192

/* Connections that are followed at once where they are kept by address. */
#define CONNS_BY_ADDRESS 65536

/* Crosses once, before load, as read-only data. */
struct observer_config {
	__u32 max_services;  /* slots per CPU; below SERVICES_MAX */
	__u32 cpus;	     /* possible CPUs */
	__u32 pid;	     /* services that this process begins to listen on; 0: none */
	__u32 netns;	     /* with all_listeners: those of this namespace (inode number) */
	__u32 accept_source; /* enum accept_source */
	__u8 all_listeners;
	__u8 floor;	      /* no port passes the filter: measures what that alone costs */
	__u8 depth_at_accept; /* nothing sees connections being queued: look when one is taken out */
	__u8 transmit_stamps; /* followed by TX timestamps, which sockets have to be told to make */
	__u32 ring_bytes;     /* of the ring that tells of sampled exchanges; 0: none are sampled */
	__u8 cpu;	      /* service is divided by the state of the serving thread */
	__u8 plain; /* before Linux 5.12: no storage in sockets for us, no atomics that return */
	__u8 listener_depths; /* those of all listeners are kept, for the doctor's findings */
	__u8 http;	      /* streams of HTTP/2 are exchanges */
	__u64 quiet_ns;	      /* a pause as long ends a response, and a message that none came to */
	__u64 tick_ns;	      /* of the kernel's coarse clock */
	__u64 transmit_below; /* how many of 2^32 exchanges are followed to the wire; 0: none */
	__u64 pidns_dev;      /* the observer's pid namespace: pids are told as it sees them */
	__u64 pidns_ino;
	__u32 udp_requests; /* room for so many without a reply, and for so many sockets; 0: no UDP */
	__u32 slots_kept; /* for services with traffic: listeners that nobody uses get the others */
};

_Static_assert(sizeof(struct observer_config) == 80, "no hidden padding");

/* A service: who listens. Host byte order. */
struct service_key {
	__u32 netns;
	__u16 port;
	__u16 protocol; /* IPPROTO_TCP */
};

_Static_assert(sizeof(struct service_key) == 8, "hash keys have no padding");

/*
 * By which a service goes while it has its slots: the lower half says where they are, the upper half how
 * often they were given to others before. So nothing that still has the number of a service that is gone
 * counts for the one that has its slots now.
 */
#define SERVICES_MAX 1024
#define SERVICE_NONE 0xffffffffU
/* Those of slots are from 1 up to, not with, this: neither zeros nor SERVICE_NONE are the number of one. */
#define SERVICE_GENERATIONS 0xffffU

static inline __attribute__((always_inline)) __u32 service_index(__u32 service)
{
	return service & 0xffff;
}

static inline __attribute__((always_inline)) __u32 service_generation(__u32 service)
{
	return service >> 16;
}

/* Services without a slot that are remembered by name. */
#define SERVICES_DROPPED_TOLD 1024

/* A process that serves one. */
struct owner_key {
	__u32 service; /* its number, with the generation */
	__u32 pid;
};

/* Counted anew by every pass over the sockets of a network namespace. */
struct service_gauges {
	__u64 connections; /* ESTABLISHED or CLOSE_WAIT */
	__u64 rtt_known;   /* those whose round-trip time was measured */
	__u64 srtt_sum_us; /* over them */
	__u64 rtt_min_us;  /* the lowest of them; 0: none */
	__u64 time_wait;
	__u64 listeners;
	__u64 depth;	  /* accept queue, all listeners together */
	__u64 limit;	  /* likewise */
	__u8 address[16]; /* of the first listener; IPv4 in the first four bytes */
	__u32 family;
	__u32 addresses; /* how many different ones were seen: 1, or 2 for several */
};

_Static_assert(sizeof(struct service_gauges) == 88, "no hidden padding");

/* So many listeners are told one by one. */
#define LISTENERS_TOLD 1024

/* A listener, as the last pass over the sockets found it: several of a port share it by SO_REUSEPORT. */
struct listener_gauge {
	__u64 inode;	  /* of its descriptor; 0: it has none */
	__u8 address[16]; /* as in struct service_gauges */
	__u32 family;
	__u32 service;
	__u32 depth;
	__u32 depth_max; /* since it was seen first */
	__u32 limit;
	__u32 drops; /* likewise, for whatever reason */
};

_Static_assert(sizeof(struct listener_gauge) == 48, "no hidden padding");

/* Ages of open requests, in powers of ten: below 1 ms, 10 ms … 100 s, and above. */
#define OPEN_AGES 7

/*
 * Requests that are under way, counted anew by every pass over the sockets. Those of which no age is known
 * are in none of the ages.
 */
struct service_open {
	__u64 read;	  /* by the server, and not answered */
	__u64 unread;	  /* in the socket */
	__u64 unaccepted; /* of these: in the accept queue */
	__u64 oldest_ns;
	__u64 oldest_unread_ns;
	__u64 ages[OPEN_AGES];
	__u64 closing;	     /* connections that the server has closed, and that are not over */
	__u64 closing_bytes; /* which they still have to send */
	__u64 unread_bytes;  /* of all connections */
};

_Static_assert(sizeof(struct service_open) == 8 * (8 + OPEN_AGES), "no hidden padding");

/*
 * One destination, counted anew by every pass over the sockets: each socket from the same address to the
 * same address and port has a port of its own.
 */
struct port_place {
	struct flow towards; /* client: this side, port 0; no server port: a free place */
	__u32 used;	     /* sockets whose own port is one that connect() chooses from */
};

_Static_assert(sizeof(struct port_place) == 40, "no hidden padding");

/* Destinations at a time; the sockets of one that finds no place in so many tries are only counted. */
#define PORT_PLACES 4096
#define PORT_TRIES  8

#endif
