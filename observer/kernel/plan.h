/* SPDX-License-Identifier: MIT */
/*
 * The measurements that this kernel allows. Every question of the observer has candidate programs, each rehearsed by
 * loading and attaching it here and now, or by the observation itself. Versions are never compared: distributions
 * backport, and hardened kernels refuse what their version would promise.
 */
#ifndef OBSERVER_KERNEL_PLAN_H
#define OBSERVER_KERNEL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "candidates.h"
#include "wire/config.h"
#include "wire/stage.h"

struct plan_row {
	const struct candidate *candidate;
	bool rehearsed;
	bool chosen;
	bool beside;	   /* not chosen, but attached once a connection speaks HTTP/2 */
	char reason[256];  /* why not; empty if it works */
	uint32_t verified; /* instructions that the verifier went through; 0: it did not say */
};

struct plan {
	struct plan_row rows[PLAN_ROWS];
	bool transmit; /* was asked for */
	bool cpu;      /* likewise */
	bool calls;    /* likewise */
	bool http;     /* likewise */
	bool streams;  /* of HTTP/2: were not declined */
	bool tls;      /* likewise */
	bool commands; /* likewise */
};

struct plan_wish {
	enum accept_source accept_source;
	bool udp;
	bool transmit;
	bool cpu;
	bool calls;
	bool http;
	bool streams; /* of HTTP/2, without http */
	bool tls;
	bool commands;
	bool shared;		   /* CPUs share copies of slots (bpf/copies.h) */
	int cgroup_fd;		   /* the cgroup of the services' sockets; -1: not known */
	const char *cgroup_reason; /* why not */
	const char *const *prefer; /* candidates that exclude all others of their questions */
	size_t prefer_count;
	bool everything; /* rehearse the optional ones too, as `sojourn probe` does */
	/*
	 * Rehearse only candidates that many kernels refuse, and choose others by BTF. The verifier takes most of the
	 * time, so the plan is loaded at once; if that fails, a plan without this finds out why.
	 */
	bool hopeful;
};

/*
 * Rehearse the candidates and choose the first of each question that works. That takes as long as loading them, and
 * longer if some are refused. Return 0, also if nothing works: see plan_missing(). -EMFILE, -ENFILE: there was no
 * descriptor to try with.
 */
int plan_build(const struct plan_wish *wish, struct plan *ret_plan);

/* Return the chosen row of @question; NULL if it has none. */
const struct plan_row *plan_chosen(const struct plan *plan, enum question question);

/* Return how @plan knows when accept() returned; never ACCEPT_AUTO. */
enum accept_source plan_accept_source(const struct plan *plan);

/* Return whether @plan follows responses by TX timestamps. */
bool plan_transmit_stamps(const struct plan *plan);

/* Return the first refusal for @question if none of its candidates was chosen; otherwise NULL. */
const char *plan_refusal(const struct plan *plan, enum question question);

/* Return whether @name is a candidate's hook or program. */
bool plan_knows(const char *name);

/* Return why none of the candidates called @name answers its question; NULL if one does. */
const char *plan_not_used(const struct plan *plan, const char *name);

/* The way to see the depth of accept queues between two visits to the sockets. */
enum plan_depth {
	PLAN_DEPTH_UNSEEN,
	PLAN_DEPTH_QUEUED,   /* when a connection is put into the queue */
	PLAN_DEPTH_ACCEPTED, /* when one is taken out */
};

enum plan_depth plan_depth(const struct plan *plan);

/*
 * Return why @stage cannot be measured under @plan, e.g. "no program for arrival: …"; NULL if it
 * can.
 */
const char *plan_missing(const struct plan *plan, enum stage stage);
/* The same for UDP services, whose exchanges only have socket_queue and service. */
const char *plan_missing_udp(const struct plan *plan, enum stage stage);

/* Return why service cannot be divided into running, runnable and blocked; NULL if it can. */
const char *plan_missing_cpu(const struct plan *plan, bool udp);

/* Return why calls of other places cannot be timed; NULL if they can. */
const char *plan_missing_calls(const struct plan *plan);

/* Return why HTTP cannot be looked into; NULL if it can. */
const char *plan_missing_http(const struct plan *plan);

/* Return why streams of HTTP/2 cannot be observed; NULL if they can. */
const char *plan_missing_streams(const struct plan *plan);

/* Return whether streams are followed by programs beside the plain ones, which are loaded, and attached when needed. */
bool plan_beside(const struct plan *plan);

/* Return why commands cannot be followed; NULL if they can. */
const char *plan_missing_commands(const struct plan *plan);

/* Return why the plain text of TLS cannot be looked into; NULL if it can. */
const char *plan_missing_tls(const struct plan *plan);

/*
 * Return how many chosen candidates are not optional. Those of --http and --protocol count that replace
 * others, which are not optional.
 */
size_t plan_working(const struct plan *plan);

/* Return the row's program @i, from 0 on; NULL: it has no more. */
const char *plan_program(const struct plan_row *row, size_t i);

#endif
