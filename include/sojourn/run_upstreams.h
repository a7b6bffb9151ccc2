/* SPDX-License-Identifier: MIT */
/* Upstreams that are observed, too, and the wait for them: part of the run document in memory (run.h). */
#ifndef SOJOURN_RUN_UPSTREAMS_H
#define SOJOURN_RUN_UPSTREAMS_H

#include <stdint.h>

#include "sojourn/histogram.h"
#include "sojourn/run_values.h"

/* The wait for an upstream within the service of some requests, from the exchanges that can only be theirs. */
struct run_nested_sum {
	uint64_t from_ns; /* of requests whose service took at least this */
	uint64_t count;
	uint64_t service_ns;
	uint64_t least_ns; /* of it: calls that lie in no other request */
	uint64_t most_ns;  /* of it: all calls that lie in the request, as if all were its own */
};

/*
 * The service of requests whose calls are all paired with exchanges of the upstream's host. The three parts add up to it.
 */
struct run_divided {
	struct histogram own;
	struct histogram
		there; /* the wait of the calls in the upstream's sockets, and its service */
	/* The rest of the calls: on their way in the network, until the front has read. */
	struct histogram between;
	/* Those of them that are of the slowest requests, and the sums of their parts. */
	uint64_t slowest;
	uint64_t slowest_own_ns, slowest_there_ns, slowest_between_ns;
};

/* How the exchanges of an upstream lie within single requests: lib/join/nest.c. */
struct run_nested {
	char *reason; /* why this is not known; NULL: it is */
	uint64_t paired;
	uint64_t ambiguous; /* requests whose part is not known to 1 % of their service */
	uint64_t alone;	    /* requests without a call */
	uint64_t outside;   /* calls that lie in no request */
	/* Of paired requests: the wait, and the rest of their service. */
	struct histogram upstream, rest;
	struct run_nested_sum all, slowest;
	struct run_divided *divided; /* NULL: the calls were not paired */
};

/* Single calls of a front, paired with the exchanges of their upstream on another host: lib/join/calls.c. */
struct run_call_pairs {
	char *reason;	    /* why some or all calls are not paired; NULL: all are */
	uint64_t threshold; /* the lower one of both sides */
	uint64_t calls;	    /* of the front that are below it */
	uint64_t paired;
	uint64_t unknown_flow; /* on connections of which the upstream has no sample */
	uint64_t unmatched;    /* on others, of which it has none */
	uint64_t ambiguous;    /* a source port was used again, and both sides differ */
	uint64_t implausible;  /* their times contradict those of the others */
	uint64_t early;	       /* paired, and longer there than for the front: nothing is between */
	/* Of the paired ones; `between` is whole less there. */
	struct histogram whole; /* the first byte was written → that of the response was read */
	struct histogram there; /* the wait in the upstream's sockets, and its service */
	struct histogram between;
};

/* An observed service to which the service's processes connect. */
struct run_upstream {
	char *host;	/* of the upstream; NULL: in the same network namespace */
	char *reason;	/* why its connections are not known; NULL: they are */
	uint32_t netns; /* of the upstream on another host; 0: the service's own */
	uint16_t port;
	uint64_t connections; /* of the service's processes, in the period */
	uint64_t others;      /* connections that the upstream had besides */
	/* Port of another service with requests that the same processes serve; not known: none. */
	struct run_number serves_too;
	struct run_nested *nested; /* NULL: there were no samples of both */
	struct run_call_pairs
		*pairs; /* NULL: not of another host, or the front's calls are not sampled */
};

#endif
