/* SPDX-License-Identifier: MIT */
/*
 * The requests of one socket that datagrams may answer: those in flight, and the last finished
 * ones, to recognise late and duplicate replies. Knows no sockets and no clock.
 */
#ifndef DRIVER_ENGINE_UDP_LEDGER_H
#define DRIVER_ENGINE_UDP_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
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
	uint32_t left; /* replies still to come */
	enum ledger_state state;
};

struct ledger {
	struct ledger_entry *entries;
	uint32_t mask;
	uint32_t next; /* place of the next request */
	uint32_t seen; /* place of the last one found; replies mostly come in order */
	bool numbered; /* keys are consecutive numbers, or all equal; they give an entry's place */
};

enum ledger_verdict {
	LEDGER_ANSWERS,	  /* a request in flight */
	LEDGER_DUPLICATE, /* all its replies have come */
	LEDGER_LATE,	  /* the request was given up */
	LEDGER_UNKNOWN,
};

/*
 * Make room for @pending requests at once and at least three times as many finished ones. @ids:
 * number of different keys, at least @pending, if keys are consecutive numbers (0: 2^64). -ENOMEM.
 * ledger_close() takes a zeroed one.
 */
int ledger_open(struct ledger *ledger, uint32_t pending, bool numbered, uint64_t ids);
void ledger_close(struct ledger *ledger);

/* Return whether a request of this key can be added; a numbered one's place may be taken. */
bool ledger_has_room(const struct ledger *ledger, uint64_t key);

/* Add a request with @replies replies. Its entry does not move while it is pending. */
struct ledger_entry *ledger_add(struct ledger *ledger, uint64_t key, uint32_t slot,
				uint32_t replies);

/* As ledger_get(), where keys are not numbered. */
struct ledger_entry *ledger_find(struct ledger *ledger, uint64_t key);

/* Return the request of this key in any state; NULL: none is known. */
static inline struct ledger_entry *ledger_get(struct ledger *ledger, uint64_t key)
{
	struct ledger_entry *entry = &ledger->entries[key & ledger->mask];

	if (!ledger->numbered)
		return ledger_find(ledger, key);
	return entry->key == key && entry->state != LEDGER_FREE ? entry : NULL;
}

/* Classify a reply to @entry (NULL: no known request). The caller settles an answered entry. */
static inline enum ledger_verdict ledger_judge(struct ledger_entry *entry)
{
	if (!entry)
		return LEDGER_UNKNOWN;
	if (entry->state == LEDGER_PENDING)
		return LEDGER_ANSWERS;
	if (entry->state == LEDGER_ANSWERED || !entry->left)
		return LEDGER_DUPLICATE;
	entry->left--;
	return LEDGER_LATE;
}

#endif
