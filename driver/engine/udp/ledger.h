/* SPDX-License-Identifier: MIT */
/*
 * The requests of one socket that datagrams may answer: those under way, and the last ones that are
 * over, so that a reply that is late or comes twice is known as such. Knows no sockets, no clock.
 */
#ifndef DRIVER_ENGINE_UDP_LEDGER_H
#define DRIVER_ENGINE_UDP_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_state {
	LEDGER_FREE,
	LEDGER_PENDING,
	LEDGER_ANSWERED,
	LEDGER_LOST, /* given up */
};

struct ledger_entry {
	uint64_t key;
	uint32_t slot;
	uint32_t left; /* replies that are still to come */
	enum ledger_state state;
};

struct ledger {
	struct ledger_entry *entries;
	uint32_t mask;
	uint32_t next; /* by place: where the next request goes */
	uint32_t seen; /* by place: where the last one was found; replies mostly come in order */
	bool numbered; /* keys are consecutive numbers (or one), which say where an entry stands */
};

enum ledger_verdict {
	LEDGER_ANSWERS,	  /* a request that is under way */
	LEDGER_DUPLICATE, /* all of its replies were there already */
	LEDGER_LATE,	  /* it was given up */
	LEDGER_UNKNOWN,
};

/*
 * Room for @pending requests at once and at least three times as many that are over; @ids: how many
 * different keys there are if they are consecutive numbers (0: 2^64), which are at least @pending.
 * -ENOMEM. ledger_close() takes a zeroed one.
 */
int ledger_open(struct ledger *ledger, uint32_t pending, bool numbered, uint64_t ids);
void ledger_close(struct ledger *ledger);

/* Whether a request of this key can be added: numbered ones may find their place taken. */
bool ledger_has_room(const struct ledger *ledger, uint64_t key);

/* A request leaves that @replies answer: its entry, which stays where it is while it is pending. */
struct ledger_entry *ledger_add(struct ledger *ledger, uint64_t key, uint32_t slot,
				uint32_t replies);

/* The request of this key, in whatever state; NULL: none is known. */
struct ledger_entry *ledger_get(struct ledger *ledger, uint64_t key);

/* What a reply to @entry (NULL: to nothing that is known) is. The caller settles what it answers. */
enum ledger_verdict ledger_judge(struct ledger_entry *entry);

#endif
