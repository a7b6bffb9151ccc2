/* SPDX-License-Identifier: MIT */
/*
 * The turn to wait until the next connection (or datagram) is old enough. If several processes or
 * threads on one socket each measured the delay, it would end early for later arrivals. The holder
 * of the turn waits, takes one and gives the turn back.
 */
#ifndef LAB_TURN_H
#define LAB_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory shared by all competitors. */
struct turn {
	_Atomic uint64_t until_ns; /* when its holder will take; 0: without a holder */
};

struct turn_wait {
	uint64_t mine;	  /* not 0: taken; for turn_is_mine() and turn_end() */
	uint64_t wait_ns; /* then take one, or (not taken) ask again */
};

/* Ask for the turn, to hold it for @delay_ns from now. */
struct turn_wait turn_take(struct turn *turn, uint64_t delay_ns);

/* Return false if the holder is so late that another has the turn: then nothing may be taken. */
bool turn_is_mine(struct turn *turn, uint64_t mine);

/* Give the turn back, if it is still one's own. */
void turn_end(struct turn *turn, uint64_t mine);

#endif
