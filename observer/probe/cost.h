/* SPDX-License-Identifier: MIT */
/*
 * The cost of observing on this host, measured on the spot. Exchanges of our own are timed with nothing attached,
 * with programs that do nothing, and with ours, by turns within one load. Only our own sockets are observed. Nothing
 * is left in the kernel, however the process ends.
 */
#ifndef OBSERVER_PROBE_COST_H
#define OBSERVER_PROBE_COST_H

#include <stdint.h>

#include "kernel/plan.h"
#include "spread.h"

enum cost_mode {
	COST_EMPTY,    /* programs that do nothing, on the hooks of ours */
	COST_FILTERED, /* ours, but the port is not observed: they return at their filter */
	COST_OBSERVED, /* ours */
	COST_KEPT,     /* ours, and each exchange is kept as a sample: at low rates all are */
	COST_HTTP,     /* ours with --http: they look at the text of a read and a write */
	COST_MODES
};

/* Modes timed by the kernel's run statistics, which add two clock reads to each run. */
#define COST_TIMED_MODES (COST_OBSERVED + 1)

/* A program that runs for every exchange. */
struct cost_program {
	char name[32];
	char hook[48];
	uint64_t runs; /* of ours, for the sockets of both ends */
	struct spread run_ns[COST_TIMED_MODES];
};

struct cost {
	uint64_t exchanges; /* all that were made */
	uint64_t begun_ns, ended_ns;
	struct spread exchange_ns; /* with nothing of ours attached */
	int others_least; /* programs of others on our hooks meanwhile; negative: not known */
	int others_most;
	/*
	 * Time added to exchange_ns: by both ends, and by the server's alone, as if the client were
	 * on another host. COST_HTTP has no rounds if its programs were not measured.
	 */
	struct spread both_ns[COST_MODES];
	struct spread server_ns[COST_MODES];
	struct cost_program programs[PLAN_ROWS]; /* in the order in which they are loaded */
	size_t program_count;
	struct spread sum_ns[COST_TIMED_MODES]; /* of the server's runs for one exchange */
	int timed_error;			/* why there are no run statistics; 0: there are */
};

/*
 * Measure the programs that @plan chose, and those that @http chose for --http, unless it is NULL or they cannot be
 * loaded. That takes @budget_ns; on a host that is very slow, for as long as SPREAD_LEAST rounds take. Return 0, -ENODATA if
 * the programs did not see the exchanges, or -errno.
 */
int cost_measure(const struct plan *plan, const struct plan *http, uint64_t quiet_ns,
		 uint64_t budget_ns, struct cost *ret_cost);

/* Return the percentage of one core that a server's programs take at this rate. */
struct spread cost_share(const struct cost *cost, enum cost_mode mode, uint64_t requests_per_s);

#endif
