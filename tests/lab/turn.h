/* SPDX-License-Identifier: MIT */
/*
 * Who may wait for the next connection (or datagram) to get old enough: with several processes or
 * threads on one socket, a delay that each of them counted for itself would end for whatever came
 * last. The holder of the turn waits, takes one and gives the turn back.
 */
#ifndef LAB_TURN_H
#define LAB_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* In memory shared by all who compete. */
struct turn {
	_Atomic uint64_t until_ns; /* when its holder will take; 0: nobody holds it */
};

/* What came of asking for the turn. */
struct turn_wait {
	uint64_t mine;	  /* not 0: taken; hand it to turn_is_mine() and turn_end() */
	uint64_t wait_ns; /* then take one, or (not taken) ask again */
};

/* Asks for the turn, to hold it for @delay_ns from now. */
struct turn_wait turn_take(struct turn *turn, uint64_t delay_ns);

/* False if its holder is so late that it was given to another: then nothing may be taken. */
bool turn_is_mine(struct turn *turn, uint64_t mine);

/* Gives it back, if it still is one's own. */
void turn_end(struct turn *turn, uint64_t mine);

#endif
