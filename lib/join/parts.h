/* SPDX-License-Identifier: MIT */
/* The parts of joined exchanges, and why others could not be joined. */
#ifndef LIB_JOIN_PARTS_H
#define LIB_JOIN_PARTS_H

#include "match.h"

/* Compute the parts of one pair; they sum to its round trip, see struct run_parts. */
void join_parts(const struct join_pair *pair, struct run_parts *ret_parts);

/* Return the user's wait: the response time under a rate, otherwise the round trip. */
uint64_t join_pair_total(const struct join_pair *pair);

void join_exchange(const struct join_pair *pair, struct run_exchange *exchange);

/*
 * reason.c: set joined->reason if exchanges could not be joined and the reason is known. -ENOMEM.
 */
int join_explain(const struct run *run, struct run_joined *joined);
/* Write "; the observer lost 12 samples; 3 connections older than the observation", of all services of @run. */
void join_write_causes(FILE *text, const struct run *run);

#endif
