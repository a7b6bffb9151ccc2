/* SPDX-License-Identifier: MIT */
/* What joined exchanges consist of, and why others could not be joined. */
#ifndef LIB_JOIN_PARTS_H
#define LIB_JOIN_PARTS_H

#include "match.h"

/* The parts of one pair: its round trip to the nanosecond, see struct run_parts. */
void join_parts(const struct join_pair *pair, struct run_parts *ret_parts);

/* What the user waited: the response time under a rate, else the round trip. */
uint64_t join_pair_total(const struct join_pair *pair);

void join_exchange(const struct join_pair *pair, struct run_exchange *exchange);

/*
 * reason.c: sets joined->reason if some or all exchanges could not be joined, and it can be told
 * why. -ENOMEM.
 */
int join_explain(const struct run *run, struct run_joined *joined);

#endif
