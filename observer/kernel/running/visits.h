/* SPDX-License-Identifier: MIT */
/*
 * The network namespaces whose sockets are visited: one, or all that there are, which come and go. A part of loader.c.
 */
#ifndef OBSERVER_KERNEL_RUNNING_VISITS_H
#define OBSERVER_KERNEL_RUNNING_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/namespaces.h"
#include "host/net/ports.h"
#include "sojourn/run.h"
#include "wire/config.h"

#include "sojourn_bpf.skel.h"

/* A namespace, and the results of the last pass over its sockets. */
struct visit {
	struct namespace netns;
	uint64_t cookie; /* no namespace ever has the same; 0: not known */
	bool there;	 /* the last search found it */
	bool met;	 /* a pass has seen its sockets */
	int error;	 /* why the last try to enter it failed; 0: it did not */
	bool ports_known;
	uint32_t ports_capacity;
	struct port_place fullest;	    /* destination that most ports are used towards */
	struct run_number overflows_before; /* ListenOverflows at the first pass */
	struct run_number overflows;	    /* and at the last */
	uint32_t idle;			    /* listeners that have no slot */
};

struct visits {
	bool all;
	int own_fd;
	int fd; /* of the only namespace; -1: our own, or all */
	uint32_t own;
	bool away; /* we are in another namespace than ours */
	struct visit *list;
	size_t count;
	uint64_t found_ns; /* when the namespaces were last searched for */
	struct run_namespaces told;
};

/* @fd: the only namespace, whose number is @inode; -1: our own. @all: all of the host, instead. 0 or -errno. */
int visits_open(struct visits *visits, int fd, uint32_t inode, bool all);
void visits_close(struct visits *visits);

/* Look which namespaces there are, once a second at most. 0 or -errno. Nothing happens where only one is visited. */
int visits_find(struct visits *visits);

/* The programs that pass over the sockets of a namespace, and what the loader says of it. */
struct visits_pass {
	struct sojourn_bpf *skel;
	struct port_place *places; /* where the programs count the ports */
	size_t places_bytes;
	/* Return whether to visit the namespace. */
	bool (*is_due)(void *context, const struct visit *visit);
	void *context;
};

/*
 * Pass over the sockets of each namespace that is due. Return 0 or -errno; where all are visited, only -ENOTRECOVERABLE:
 * the way back into our own is lost.
 */
int visits_run(struct visits *visits, const struct visits_pass *pass);

/* Return the visit of namespace @inode; NULL: it is not visited. */
struct visit *visits_of(const struct visits *visits, uint32_t inode);

#endif
