/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The kernel side's configuration, and the keys by which both sides name services and processes.
 */
#ifndef WIRE_CONFIG_H
#define WIRE_CONFIG_H

#include <linux/types.h>

#include "wire/command.h"
#include "wire/flow.h"

/* How the time of a connection's accept() is found. */
enum accept_source {
	ACCEPT_AUTO,	 /* the best source without a cost, chosen by user space */
	ACCEPT_RETURNED, /* the return of the kernel's inet_csk_accept() */
	ACCEPT_SYSCALL,	 /* the return of the system calls accept() and accept4() */
	ACCEPT_INFERRED, /* the first read, if the request arrived before accept() */
};

/* Maximum of threads with clocks, with observer_config.cpu; fewer if their numbers collide. */
#define THREAD_PLACES 4096

/* Maximum of connections with a fast lookup, in an array; fewer if hashes collide. A power of 2. */
#define CONN_PLACES 8192

/* A port whose services are looked into as those of a protocol. */
struct command_port {
	__u16 port;
	__u16 protocol; /* enum command_protocol */
};

/* Passed once, before load, as read-only data. */
struct observer_config {
	__u32 max_services; /* slots in each copy; at most SERVICES_MAX */
	__u32 cpus;	    /* possible CPUs */
	__u32 copies;	    /* of each slot: cpus, or a power of 2 below, shared by CPUs; 0: cpus */
	__u32 copy_shift;   /* so many lower bits of a CPU's number do not choose its copy */
	__u32 pid;	    /* observe listeners that this process opens; 0: none */
	__u32 netns;	    /* only this namespace (inode number), unless all_netns */
	__u32 accept_source; /* enum accept_source */
	__u8 all_listeners;
	__u8 floor;	      /* no port passes the filter, to measure the filter's cost alone */
	__u8 depth_at_accept; /* no program sees a queue grow: read its depth at accept() */
	__u8 transmit_stamps; /* follow responses by TX timestamps, which sockets must request */
	__u32 ring_bytes;     /* of the ring for sampled exchanges; 0: no samples */
	__u8 cpu;	      /* divide service by the state of the serving thread */
	__u8 pad;
	__u8 listener_depths; /* keep queue depths of all listeners, for the doctor */
	__u8 http;	      /* look into HTTP: statuses, pipelines, pushes */
	__u64 quiet_ns;	      /* a pause this long ends a response or an unanswered message */
	__u64 tick_ns;	      /* of the kernel's coarse clock */
	__u64 transmit_below; /* of 2^32 exchanges: how many to follow to the wire; 0: none */
	__u64 pidns_dev;      /* the observer's pid namespace, for pids in reports */
	__u64 pidns_ino;
	__u32 udp_requests;  /* maximum of open requests, and of sockets; 0: no UDP */
	__u32 slots_kept;    /* slots reserved for used services: idle listeners get the others */
	__u32 cgroup;	     /* observe listeners that processes of target_cgroup open */
	__u16 all_netns;     /* the ports, or all listeners, of every network namespace */
	__u16 calls;	     /* time the calls of services' processes to other places */
	__u32 route_rows;    /* routes by which requests are counted, and 1 for others; 0: none */
	__u8 tls;	     /* look into the plain text of OpenSSL's calls */
	__u8 propose;	     /* keep a sample of the paths of requests without a route */
	__u8 streams;	     /* HTTP/2 streams are exchanges */
	__u8 beside;	     /* their programs come beside the plain ones, once there is HTTP/2 */
	__u32 command_count; /* ports whose protocol is given; 0: none */
	__u32 command_rows;  /* COMMAND_ROWS with command_count, otherwise 0 */
	struct command_port command_ports[COMMAND_PORTS];
};

_Static_assert(sizeof(struct observer_config) == 112 + 4 * COMMAND_PORTS, "no hidden padding");

/* A service, by its listener. Host byte order. */
struct service_key {
	__u32 netns;
	__u16 port;
	__u16 protocol; /* IPPROTO_TCP or IPPROTO_UDP */
	__u32 cookie; /* tells namespaces apart that have had the same number; 0 without all_netns */
};

_Static_assert(sizeof(struct service_key) == 12, "hash keys have no padding");

/*
 * A service's number, valid while the service has its slots. The lower half is the index of the
 * slots. The upper half is the generation, which counts their owners. So references to a former
 * owner never count for the current one.
 */
#define SERVICES_MAX 1024
#define SERVICE_NONE 0xffffffffU
/* Generations run from 1 to below this: neither zero nor SERVICE_NONE is a service. */
#define SERVICE_GENERATIONS 0xffffU

static inline __attribute__((always_inline)) __u32 service_index(__u32 service)
{
	return service & 0xffff;
}

static inline __attribute__((always_inline)) __u32 service_generation(__u32 service)
{
	return service >> 16;
}

/* Maximum of services without a slot that are remembered by name. */
#define SERVICES_DROPPED_TOLD 1024

/* A process that serves a service. */
struct owner_key {
	__u32 service; /* the service's number, with the generation */
	__u32 pid;
};

/* A place to which a process has opened connections. */
struct call_key {
	__u32 server[4]; /* its address, as in struct flow */
	__u32 pid;
	__u16 port;
	__u16 pad;
};

/* Counted again by every pass over the sockets of a network namespace. */
struct service_gauges {
	__u64 connections; /* ESTABLISHED or CLOSE_WAIT */
	__u64 rtt_known;   /* connections with a measured round-trip time */
	__u64 srtt_sum_us; /* sum over these */
	__u64 rtt_min_us;  /* minimum of these; 0: none */
	__u64 time_wait;
	__u64 listeners;
	__u64 depth;	  /* sum over the accept queues of all listeners */
	__u64 limit;	  /* sum of their maximum depths */
	__u8 address[16]; /* of the first listener; IPv4: the first four bytes */
	__u32 family;
	__u32 addresses; /* different ones: 1, or 2 for several */
};

_Static_assert(sizeof(struct service_gauges) == 88, "no hidden padding");

/* Maximum of listeners reported one by one. */
#define LISTENERS_TOLD 1024

/* A listener in the last pass over the sockets; several share a port by SO_REUSEPORT. */
struct listener_gauge {
	__u64 inode;	  /* of its descriptor; 0: none */
	__u8 address[16]; /* see struct service_gauges */
	__u32 family;
	__u32 service;
	__u32 depth;
	__u32 depth_max; /* since first seen */
	__u32 limit;
	__u32 drops; /* since first seen, for any reason */
};

_Static_assert(sizeof(struct listener_gauge) == 48, "no hidden padding");

/* Age classes of open requests, in powers of ten: below 1 ms, 10 ms … 100 s, and above. */
#define OPEN_AGES 7

/*
 * Requests in flight, counted again by every pass over the sockets. Those of unknown age are in no
 * age class.
 */
struct service_open {
	__u64 read;	  /* read by the server, not answered */
	__u64 unread;	  /* still in the socket */
	__u64 unaccepted; /* of these: in the accept queue */
	__u64 oldest_ns;
	__u64 waiting_ns; /* the longest since a request's last read, or its arrival if it is unread */
	__u64 ages[OPEN_AGES];
	__u64 closing;	     /* connections that the server has closed and TCP has not */
	__u64 closing_bytes; /* still to be sent on them */
	__u64 unread_bytes;  /* of all connections */
};

_Static_assert(sizeof(struct service_open) == 8 * (8 + OPEN_AGES), "no hidden padding");

/*
 * One destination, counted again by every pass over the sockets. Sockets from one address to one
 * destination cannot share a port.
 */
struct port_place {
	struct flow towards; /* client: this side's address, port 0; server port 0: a free place */
	__u32 used;	     /* sockets with a port that connect() can choose */
};

_Static_assert(sizeof(struct port_place) == 40, "no hidden padding");

/* Maximum of destinations, and of tries to find a place; sockets without one are only counted. */
#define PORT_PLACES 4096
#define PORT_TRIES  8

#endif
