/* SPDX-License-Identifier: MIT */
/*
 * The network namespaces whose sockets are visited: one, or all that there are, which come and go. A part of loader.c.
 */
#ifndef OBSERVER_KERNEL_VISITS_H
#define OBSERVER_KERNEL_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "skeleton.h"
#include "host/namespaces.h"
#include "host/ports.h"
#include "sojourn/run.h"
#include "wire/config.h"

/* A namespace, and the results of the last pass over its sockets. */
struct visit {
	struct namespace netns;
	uint64_t cookie; /* no namespace ever has the same; 0: not known, before Linux 5.14 */
	bool there;	 /* it was found when they were looked for last */
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
	int fd; /* of the only one; -1: our own, or all */
	uint32_t own;
	bool away; /* we are in another namespace than ours */
	struct visit *list;
	size_t count;
	uint64_t found_ns; /* when they were looked for */
	struct run_namespaces told;
};

/* @fd: the only namespace; -1: our own, @inode; or @all. 0 or -errno. */
int visits_open(struct visits *visits, int fd, uint32_t inode, bool all);
void visits_close(struct visits *visits);

/*
 * Look which namespaces there are, once a second at most, and call @ended for each that is gone. 0 or -errno. Nothing
 * happens where only one is visited.
 */
int visits_find(struct visits *visits, void (*ended)(void *context, uint32_t inode), void *context);

/*
 * Enter the namespace; 0 or -errno. *ret_another: its number belongs to another one since the last time. Then it is as if
 * it had never been met. visits_leave() after 0.
 */
int visits_enter(struct visits *visits, struct visit *visit, bool *ret_another);
int visits_leave(struct visits *visits);

/* Count it among the namespaces of the reading, or note why it cannot be entered. */
void visits_count(struct visits *visits, const struct visit *visit);

/* In the namespace, before the pass: which ports it counts. */
void visits_begin_ports(struct visit *visit, struct sojourn_bpf__bss *bss,
			struct port_rules *ret_rules);
/* After the pass: which ports are held, and where the others are used. */
void visits_end_ports(struct visit *visit, const struct sojourn_bpf__bss *bss,
		      const struct port_place *places, struct port_rules *rules);

/* NULL: it is none of those. */
const struct visit *visits_of(const struct visits *visits, uint32_t inode);

#endif
