/* SPDX-License-Identifier: MIT */
/*
 * One member as the coordinator has it: the process that is the channel to its agent, what came through it, and
 * how its clock stands. Neighbour: fleet.c, which has all of them.
 */
#ifndef DRIVER_FLEET_MEMBER_H
#define DRIVER_FLEET_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "channel.h"
#include "plan.h"
#include "sojourn/run.h"

enum member_state {
	MEMBER_STARTING, /* its agent has not said hello */
	MEMBER_PLANNED,	 /* it has the plan */
	MEMBER_TIMING,	 /* its clock is compared */
	MEMBER_READY,
	MEMBER_RUNNING,
	MEMBER_DONE, /* its result is there */
	MEMBER_LOST, /* there will be none; why is in @reason */
};

struct member;

struct member_owner {
	void *user;
	/* Its state has changed, or how far it is. */
	void (*changed)(void *user, struct member *member);
	/* A request has failed, which the run is to end with. */
	void (*failed)(void *user, struct member *member);
};

struct member {
	const char *name;
	uint32_t index;
	const struct plan *plan;
	struct member_owner owner;
	enum member_state state;
	char *reason; /* why it is lost; NULL: it is not */

	/* Compared with the coordinator's wall clock, by the quickest of several answers. */
	bool clock_known;
	int64_t offset_ns; /* its clock is ahead by so much */
	uint64_t round_ns; /* that answer took so long */

	uint64_t max_rate;   /* what its agent allows; 0: any */
	struct run *run;     /* what it told last, NULL: nothing */
	bool stopped;	     /* it was told to end */
	unsigned int silent; /* how often member_is_silent() was asked since it was heard */

	/* The channel: */
	uv_process_t process;
	uv_pipe_t in, out, errors;
	bool spawned;
	bool ended; /* the process has */
	bool out_ended;
	int64_t status;
	int signal;
	struct plan_place place; /* how far it has the plan */
	struct channel_lines lines;
	struct channel_document document;
	char said[256];	   /* the last line of its standard error */
	char printed[256]; /* likewise of its standard output, before the agent's hello */
	unsigned int pings;
	uint64_t ping_wall_ns;
	uint64_t ping_ns;
};

/* Starts @argv, whose standard input and output are the channel. -EINVAL with a sentence: it cannot be started. */
int member_start(struct member *member, uv_loop_t *loop, char **argv);

/* Begins the run at this time, by the coordinator's wall clock. */
void member_begin(struct member *member, uint64_t at_ns);
/* Shows that the coordinator is there: an agent that does not hear of it ends. */
void member_beat(struct member *member);
/* From this request of all on, it sends every @count-th, beginning with number @index. */
void member_deal(struct member *member, uint64_t number, uint32_t index, uint32_t count);
/* Ends its load; its result follows. */
void member_stop(struct member *member);
/* Gives it up, and ends its process. @reason is used up. */
void member_lose(struct member *member, char *reason);
/* Ends the channel: the agent ends by that. */
void member_leave(struct member *member);
/* Ends the process, and what it started in its group. */
void member_kill(struct member *member);

/*
 * The last lines from where there should be an agent: ": Connection refused", and a shell's output before it.
 * Empty: there are none.
 */
#define MEMBER_QUOTE 600
void member_quote(const struct member *member, char ret_text[static MEMBER_QUOTE]);

/* Asked in regular steps: whether nothing was heard of it in the last @steps of them. */
bool member_is_silent(struct member *member, unsigned int steps);

/* Whether it has to be waited for. */
static inline bool member_is_over(const struct member *member)
{
	return member->state == MEMBER_DONE || member->state == MEMBER_LOST;
}

/* After its loop has run out. */
void member_clear(struct member *member);

#endif
