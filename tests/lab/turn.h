/* SPDX-License-Identifier: MIT */
/*
 * The turn: only its holder waits for --accept-delay or --read-delay, takes one connection or
 * datagram, and gives the turn back. If all competitors on a socket waited at the same time, later
 * arrivals would be taken too early.
 */
#ifndef LAB_TURN_H
#define LAB_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory shared by all competitors. */
struct turn {
	_Atomic uint64_t until_ns; /* when its holder takes one; 0: without a holder */
};

struct turn_wait {
	uint64_t mine;	  /* for turn_is_mine() and turn_end(); 0: not taken */
	uint64_t wait_ns; /* after this wait take one or, without the turn, ask again */
};

/* Ask for the turn, to take one @delay_ns from now. */
struct turn_wait turn_take(struct turn *turn, uint64_t delay_ns);

/* Return false if the holder is so late that another has the turn: then nothing may be taken. */
bool turn_is_mine(struct turn *turn, uint64_t mine);

/* Give the turn back, if it is still one's own. */
void turn_end(struct turn *turn, uint64_t mine);

#endif
