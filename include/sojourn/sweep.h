/* SPDX-License-Identifier: MIT */
/* The results of a sweep over loads, in the run document: docs/driver.md, Finding the limit. */
#ifndef SOJOURN_SWEEP_H
#define SOJOURN_SWEEP_H

#include "sojourn/clock.h"
#include "sojourn/run.h"

/* A step's counts for one of several targets. */
struct run_sweep_target {
	char *name;		/* URL as given */
	uint64_t requests;	/* complete responses */
	uint64_t drained;	/* of these, excluded from the rate, see run_driver */
	struct run_number good; /* of @requests, see outcome.h; not known of older drivers */
	uint64_t errors;
	struct histogram latency; /* like the step's */
};

struct run_sweep_step {
	uint64_t load; /* connections, or requests/s due */
	uint64_t warmup_ns;
	uint64_t duration_ns;
	uint64_t requests;	/* complete responses */
	uint64_t drained;	/* of these, excluded from the rate, see run_driver */
	struct run_number good; /* of @requests, see outcome.h; not known of older drivers */
	uint64_t errors;
	uint64_t unsent;   /* under a rate: due, but no connection was free until the end */
	uint32_t attempts; /* until steady, or given up */
	bool steady;
	/* Requests/s of a first measurement that was an outlier; not known: it was none. */
	struct run_number first_throughput;
	struct run_number server_exchanges;   /* seen by the observer at the target's port */
	struct run_number server_duration_ns; /* time over which they were seen */
	char *limited;			      /* how the driver limited it; NULL: not at all */
	struct histogram latency;	      /* response time under a rate, otherwise round trip */
	struct run_sweep_target *targets;     /* in order; NULL: a single one */
	size_t target_count;
	struct run_fleet_member *members; /* of a fleet, those that took part; NULL: one driver */
	size_t member_count;
};

struct run_sweep {
	char *target;		      /* URL; NULL: several, see the steps */
	char *method;		      /* NULL: the protocol has none */
	char *over;		      /* "connections" or "rate" */
	uint32_t connections;	      /* over rates: in every step; otherwise 0 */
	struct run_sweep_step *steps; /* in order of load */
	size_t step_count;
	struct run_number plateau;	    /* requests/s beyond the knee */
	struct run_number knee;		    /* load from which on throughput stops growing */
	struct run_number misfit_per_mille; /* of the steps from the fit, relative to throughput */
	char *unfitted;			    /* why there is no plateau; NULL: there is */
	char *stopped;			    /* why the sweep ended early; NULL: it did not */
	char *resumed; /* "after 2 of 4 steps", as its coordinator had ended; NULL: it was not */
	struct run_sweep_step
		*three_quarters; /* at a rate of 75 % of the plateau; NULL: not measured */
};

/*
 * Return the good responses that count as throughput, or all complete ones if good ones are not
 * known. Drained responses count as good in the same proportion as all.
 */
static inline uint64_t run_sweep_good(const struct run_number *good, uint64_t requests,
				      uint64_t drained)
{
	uint64_t timely = run_timely(requests, drained);

	if (!good->known || good->value >= requests)
		return timely;
	return (uint64_t)((double)good->value * (double)timely / (double)requests + 0.5);
}

/* Return the throughput per second. */
static inline double run_sweep_throughput(const struct run_sweep_step *step)
{
	uint64_t good = run_sweep_good(&step->good, step->requests, step->drained);

	return step->duration_ns ? (double)good * (double)NSEC_PER_SEC / (double)step->duration_ns
				 : 0;
}

/* Free the members of the step. */
void run_sweep_step_clear(struct run_sweep_step *step);

#endif
