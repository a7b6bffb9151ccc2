/* SPDX-License-Identifier: MIT */
/*
 * Ephemeral ports: how many of the range are used towards each destination. Memory is bounded: the
 * destinations with the most sockets are counted exactly, the rest are summed.
 */
#ifndef OBSERVER_HOST_NET_PORTS_H
#define OBSERVER_HOST_NET_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sockets.h"

#define PORT_COUNT 65536

/* A destination: a connection's tuple without the source port. Ports are counted for each destination. */
struct port_key {
	struct socket_address source;
	struct socket_address destination;
	uint16_t port;
	uint8_t family;
	uint8_t unused[5];
};

struct port_use {
	struct port_key key;
	uint32_t live;	    /* of a connection that exists or is being made or closed */
	uint32_t fin_wait2; /* twins that wait for the peer's FIN: never reusable */
	uint32_t time_wait; /* twins that connect() must not take */
	uint32_t reusable;  /* twins that it may take: tcp_tw_reuse and its delay */
	uint32_t fresh;	    /* twins that began within the sample */
	uint32_t error;	    /* sockets that may be missing; 0 after the second pass */
};

/* The rules of a namespace, and the ports that connect() skips. */
struct port_rules {
	uint16_t low, high; /* ip_local_port_range, both included */
	unsigned int reuse; /* tcp_tw_reuse: 0, 1, or 2: loopback only */
	uint32_t reuse_delay_ms;
	bool timestamps;
	uint64_t reserved[PORT_COUNT / 64]; /* ip_local_reserved_ports */
	uint64_t held[PORT_COUNT / 64];	    /* ports of sockets that were bound to them */
};

struct port_table {
	struct port_use *slots; /* open addressing; empty: no family */
	size_t size, count;
	uint32_t floor;	 /* > 0: destinations with at most this many sockets were dropped */
	bool frozen;	 /* the second pass: no new destinations */
	uint64_t others; /* sockets towards destinations that are not in the table */
};

/* Maximum of destinations: three quarters of 32,768 slots of 64 bytes, which take 2 MiB. */
#define PORT_DESTINATIONS 24576
/* Destinations that the second pass counts exactly. */
#define PORT_EXACT 256

static inline bool port_bit(const uint64_t *bits, uint16_t port)
{
	return bits[port / 64] >> (port % 64) & 1;
}

static inline void port_set(uint64_t *bits, uint16_t port)
{
	bits[port / 64] |= 1ULL << (port % 64);
}

/* Set the bits of ports like "8080,9000-9010"; -EINVAL if it is no such list. */
int ports_parse(const char *text, uint64_t *bits);

/* Return how many ports of the range connect() can use at all. Before Linux 6.18 an odd range loses one. */
uint32_t ports_capacity(const struct port_rules *rules);
/* Return how many ports of the range are reserved, or held and not reserved. */
uint32_t ports_reserved(const struct port_rules *rules);
uint32_t ports_held(const struct port_rules *rules);

/* Return whether connect() may take the tuple of this twin (tcp_twsk_unique()). */
bool ports_reusable(const struct port_rules *rules, const struct resource_socket *s);
/*
 * Return whether connect() may reuse TIME_WAIT towards this destination at all. A port is then taken for the delay,
 * not for 60 s.
 */
bool ports_reuses(const struct port_rules *rules, const struct port_key *key);

/* Count @s, unless its port is outside the range or held. @sample_ms: see `fresh`. */
void ports_count(struct port_table *table, const struct port_rules *rules,
		 const struct resource_socket *s, uint32_t sample_ms);

/*
 * If destinations were dropped, keep only the heaviest with zero counts, and return true: a second pass must count
 * them.
 */
bool ports_freeze(struct port_table *table);

/* Move the destinations to the table's begin, heaviest first. Afterwards only ports_match() finds one. */
void ports_sort(struct port_table *table);
/* Return the destination in a sorted table; NULL: none. A linear search. */
const struct port_use *ports_match(const struct port_table *table, const struct port_key *key);
void ports_free(struct port_table *table);

/* Return how many ports connect() finds taken. */
static inline uint32_t ports_used(const struct port_use *use)
{
	return use->live + use->fin_wait2 + use->time_wait;
}

#endif
