/* SPDX-License-Identifier: MIT */
/* What a sweep over loads found, as the run document has it: docs/driver.md, Finding the limit. */
#ifndef SOJOURN_SWEEP_H
#define SOJOURN_SWEEP_H

#include "sojourn/clock.h"
#include "sojourn/run.h"

/* What of a step was for one of several targets. */
struct run_sweep_target {
	char *name;		/* its URL as it was given */
	uint64_t requests;	/* complete responses */
	uint64_t drained;	/* of these, as in run_driver: not in the rate */
	struct run_number good; /* of requests, see outcome.h; of an older driver not known */
	uint64_t errors;
	struct histogram latency; /* as the step's */
};

struct run_sweep_step {
	uint64_t load; /* connections, or requests/s that were due */
	uint64_t warmup_ns;
	uint64_t duration_ns;
	uint64_t requests;	/* complete responses */
	uint64_t drained;	/* of these, as in run_driver: not in the rate */
	struct run_number good; /* of requests, see outcome.h; of an older driver not known */
	uint64_t errors;
	uint64_t unsent;   /* under a rate: due, but all connections were busy until the end */
	uint32_t attempts; /* until it was steady, or was given up */
	bool steady;
	/* Requests/s of a first measurement that was off the other steps; not known: it was not. */
	struct run_number first_throughput;
	struct run_number server_exchanges;   /* what the observer saw at the target's port, */
	struct run_number server_duration_ns; /* over so long */
	char *limited;			      /* by what of the driver itself; NULL: by nothing */
	struct histogram latency;	      /* response time under a rate, else round trip */
	struct run_sweep_target *targets;     /* in their order; NULL: there is one alone */
	size_t target_count;
};

struct run_sweep {
	char *target;		      /* URL; NULL: several, see the steps */
	char *method;		      /* NULL: the protocol has none */
	char *over;		      /* "connections" or "rate" */
	uint32_t connections;	      /* over rates: of every step; else 0 */
	struct run_sweep_step *steps; /* in order of load */
	size_t step_count;
	struct run_number plateau; /* requests/s beyond the knee */
	struct run_number knee;	   /* load from which on throughput does not grow any more */
	struct run_number
		misfit_per_mille; /* of the throughput: how far the steps are off the fit */
	char *unfitted;		  /* why there is no plateau; NULL: there is */
	char *stopped;		  /* why the ladder was not gone through to its end; NULL: it was */
	struct run_sweep_step
		*three_quarters; /* at a rate of 75 % of the plateau; NULL: not measured */
};

/* A zeroed step appended to the sweep; valid until the next one. NULL without memory. */
struct run_sweep_step *run_add_sweep_step(struct run_sweep *sweep);

/*
 * What counts as throughput: good responses; all complete ones where the others are not told apart. Of what was
 * drained as much is taken to be good as of all.
 */
static inline uint64_t run_sweep_good(const struct run_number *good, uint64_t requests,
				      uint64_t drained)
{
	uint64_t timely = run_timely(requests, drained);

	if (!good->known || good->value >= requests)
		return timely;
	return (uint64_t)((double)good->value * (double)timely / (double)requests + 0.5);
}

/* Per second. */
static inline double run_sweep_throughput(const struct run_sweep_step *step)
{
	uint64_t good = run_sweep_good(&step->good, step->requests, step->drained);

	return step->duration_ns ? (double)good * (double)NSEC_PER_SEC / (double)step->duration_ns
				 : 0;
}

/* Frees what the step points to. */
void run_sweep_step_clear(struct run_sweep_step *step);

#endif
