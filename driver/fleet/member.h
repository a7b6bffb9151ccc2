/* SPDX-License-Identifier: MIT */
/*
 * The coordinator's view of one member: its channel, its messages, and the offset of its clock. The
 * channel is a process or a relay. fleet.c has all members.
 */
#ifndef DRIVER_FLEET_MEMBER_H
#define DRIVER_FLEET_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "fleet/channel/channel.h"
#include "fleet/channel/plan.h"
#include "sojourn/run.h"

enum member_state {
	MEMBER_STARTING, /* its agent has sent no hello */
	MEMBER_PLANNED,	 /* it has been sent the plan */
	MEMBER_TIMING,	 /* its clock is being compared */
	MEMBER_READY,
	MEMBER_RUNNING,
	MEMBER_DONE, /* its result has arrived */
	MEMBER_LOST, /* it will send no result; see @reason */
};

struct member;

/* The part of a member's document that is needed after it was merged. */
struct member_result {
	bool known;
	uint64_t begin_ns; /* of its measured phase, by the coordinator's clock */
	uint64_t requests;
	char **sources;
	char *limited;
};

struct member_owner {
	void *user;
	/* Its state or its counts have changed. */
	void (*changed)(void *user, struct member *member);
	/* A request has failed, and the run is to end (--fail-fast). */
	void (*failed)(void *user, struct member *member);
};

struct member {
	const char *name;
	uint32_t index;
	const struct plan *plan;
	struct member_owner owner;
	enum member_state state;
	char *reason; /* why it is lost; NULL: not lost */

	/* Its wall clock against the coordinator's, by the quickest of several answers. */
	bool clock_known;
	int64_t offset_ns; /* how far its clock is ahead */
	uint64_t round_ns; /* time from that ping to its answer */

	uint64_t max_rate; /* limit of its agent; 0: none */
	struct run *run;   /* see member_read() */
	struct member_result result;
	bool stopped;	     /* it has been sent a stop */
	bool warming;	     /* it was started, and will be ready once more */
	unsigned int silent; /* calls of member_is_silent() since its last message */

	/* The channel: */
	uv_process_t process;
	uv_pipe_t in, out, errors;
	bool spawned;
	bool relayed; /* pipes of a relay, instead of a process */
	bool ended;   /* the process or relay has ended */
	bool out_ended;
	int64_t status;
	int signal;
	struct plan_place place; /* how much of the plan it has been sent */
	struct nats_input lines;
	struct channel_document document; /* of which parts are missing */
	struct channel_document unread;	  /* whole, newer than @run */
	char said[256];			  /* last line of its standard error */
	char printed[256];		  /* last line of its standard output before its hello */
	unsigned int pings;
	uint64_t ping_wall_ns;
	uint64_t ping_ns;
};

/*
 * Start @argv, whose standard input and output are the channel. If it cannot be started the member
 * is lost, with the reason, and the result 0. -errno: no pipe.
 */
int member_start(struct member *member, uv_loop_t *loop, char **argv);

/*
 * Use pipes whose other ends a relay has: @out_fd for what its agent says, @in_fd for messages to
 * it. Takes both. 0 or -errno.
 */
int member_attach(struct member *member, uv_loop_t *loop, int out_fd, int in_fd);
/* Its relay has ended, for this reason, and its output ends next. */
void member_detach(struct member *member, const char *reason);

/*
 * Forget a run of a sweep that is over: the member is ready for a step, or lost if its process has
 * ended since.
 */
void member_rest(struct member *member);
/* Send a step, takes @message. The member becomes ready for its start, after its clock is compared. */
void member_step(struct member *member, json_t *message);
/*
 * Compare the clock of a ready member again, after which it is ready once more. A member whose
 * connection is lost for now does not answer, so it would not get its start in time either.
 */
void member_compare(struct member *member);
/*
 * Send the start: the run begins at @at_ns by the coordinator's wall clock. @warming: of a warm-up,
 * after which the member becomes ready again.
 */
void member_begin(struct member *member, uint64_t at_ns, bool warming);
/* Show that the coordinator is there: an agent that receives nothing ends. */
void member_beat(struct member *member);
/*
 * Return its latest document; NULL: there is none. Documents from during the run are kept as text
 * and read here, as most are replaced before anybody needs them.
 */
struct run *member_read(struct member *member);
/* Return when it began to measure, by the coordinator's clock; 0: it has not said so. */
uint64_t member_begin_ns(struct member *member);
/* Let it send every @count-th request from request @number of the whole run on, as turn @index. */
void member_deal(struct member *member, uint64_t number, uint32_t index, uint32_t count);
/* Send a stop: the load ends and the result follows. */
void member_stop(struct member *member);
/* Give the member up and kill its process. Takes @reason, and frees it in the end. */
void member_lose(struct member *member, char *reason);
/* Close the channel's input, at which the agent ends. */
void member_leave(struct member *member);
/* Kill the process and its group. */
void member_kill(struct member *member);

/*
 * Quote the last line of standard error, e.g. ": Connection refused", and what a shell printed
 * before the agent started. Empty if there is neither.
 */
#define MEMBER_QUOTE 600
void member_quote(const struct member *member, char ret_text[static MEMBER_QUOTE]);

/* Return whether no message came in the last @steps calls; to be called at regular intervals. */
bool member_is_silent(struct member *member, unsigned int steps);

/* Return whether its result has come or never will. */
static inline bool member_is_over(const struct member *member)
{
	return member->state == MEMBER_DONE || member->state == MEMBER_LOST;
}

/*
 * Return how far ahead a time must be so that a message about it reaches all members first, busy
 * hosts too.
 */
uint64_t member_lead_ns(const struct member *members, uint32_t count);

/* Free its memory; only after its loop has ended. */
void member_clear(struct member *member);

#endif
