/* SPDX-License-Identifier: MIT */
/*
 * The knobs: a request sets them for itself, an option for every request. Both are read from one
 * table (knobs.c).
 */
#ifndef LAB_KNOBS_H
#define LAB_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KNOB_MAX_DURATION_NS  60000000000ULL
#define KNOB_MAX_SIZE	      (64ULL << 20)
#define KNOB_MAX_PIECES	      1000
#define KNOB_MAX_DATAGRAM     65507 /* UDP payload over IPv4 */
#define KNOB_SIZE_OF_PROTOCOL UINT64_MAX

/* One line on the fault of an option or a request. */
struct complaint {
	char text[160];
};

/* Every member is a uint64_t so that the table can set it; flags are 0 or 1. */
struct knobs {
	uint64_t service_ns;
	uint64_t spin;	/* keep the CPU busy for service_ns */
	uint64_t block; /* event model: sleep in the loop itself */
	uint64_t pieces;
	uint64_t pause_ns;
	uint64_t size; /* bytes of the body; KNOB_SIZE_OF_PROTOCOL: the protocol's own answer */
	uint64_t chunked;
	uint64_t early_close;
	uint64_t leak;
	uint64_t ignore_fin;
	uint64_t reset;
	uint64_t close;
};

enum knob_kind {
	KNOB_DURATION,
	KNOB_NUMBER,
	KNOB_FLAG,
	KNOB_MODE,
};

struct knob {
	const char *name;
	enum knob_kind kind;
	size_t offset; /* in struct knobs */
	uint64_t min;
	uint64_t max;
	const char *argument; /* in --help; NULL: a flag */
	const char *help;     /* in --help; lines of 48 columns at most */
};

extern const struct knob knob_table[];
extern const size_t knob_count;

enum knob_scope {
	KNOB_SCOPE_HTTP,
	KNOB_SCOPE_STREAM,
	KNOB_SCOPE_DATAGRAM,
};

void knobs_init(struct knobs *knobs);

/* Set one knob. -EINVAL with a complaint if the value is not allowed. */
int knobs_set(struct knobs *knobs, const struct knob *knob, const char *value, size_t length,
	      struct complaint *ret_complaint);

/* Set the knobs of "name=value&name=value" and check them together. -EINVAL with a complaint. */
int knobs_parse(struct knobs *knobs, const char *text, size_t length, enum knob_scope scope,
		struct complaint *ret_complaint);

/* Check rules across knobs or for the protocol. -EINVAL with a complaint. */
int knobs_check(const struct knobs *knobs, enum knob_scope scope, struct complaint *ret_complaint);

#endif
