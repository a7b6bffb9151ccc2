/* SPDX-License-Identifier: MIT */
/*
 * Source addresses and ports of TCP connections, chosen so that the kernel's port search never gets
 * slow. connect() by itself prefers ports of one parity (Linux 4.2, 07f4c90062f8) and, once these are
 * used, walks through all of them for every connection: 40 times the time.
 */
#ifndef DRIVER_TRANSPORT_SOURCE_H
#define DRIVER_TRANSPORT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/flow.h"

enum source_choice {
	SOURCE_RANGE, /* IP_LOCAL_PORT_RANGE, where that makes the search even: Linux 6.8 */
	SOURCE_OWN,   /* bind() to ports in turn */
};

#define SOURCE_ADDRESSES_MAX 65536

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51 /* Linux 6.3 */
#endif

struct source_set {
	enum source_choice choice;
	struct sockaddr_storage *addresses; /* NULL: as the kernel routes */
	size_t count;			    /* of addresses */
};

/* What one worker knows; random: the place where it begins. */
struct source_cursor {
	uint64_t next;
	uint32_t port_range; /* low | high << 16; 0: not known, leave it to the kernel */
	uint32_t own_ports;  /* of these, those to bind() to */
};

/*
 * Adds "ADDR[,ADDR|ADDR-ADDR]…" to @set. -EINVAL with a sentence in @ret_error; -ENOMEM. A range
 * counts up the last 32 bits. No address may be there twice.
 */
int source_parse(const char *text, struct source_set *set, char **ret_error);
void source_clear(struct source_set *set);

/*
 * Whether they can reach a target of @family, and are this host's. -EINVAL with a sentence in
 * @ret_error, -errno.
 */
int source_check(const struct source_set *set, int family, char **ret_error);

/* Chosen evenly from the range, all of them are of one parity once in 65,536. */
#define SOURCE_PROBE_PORTS 17U

/*
 * Lets connect() choose up to SOURCE_PROBE_PORTS of @range (see limits_port_range()) and stops at the first
 * two that differ in parity. Nothing is sent. How many were chosen is in *ret_count. -errno where that cannot be
 * had: no loopback, no TCP Fast Open, or a kernel before 6.3.
 */
int source_probe(uint32_t range, uint16_t ports[static SOURCE_PROBE_PORTS], size_t *ret_count);

/* What follows from that, with @err as the probe's answer: a doubt is for ports of our own choice. */
enum source_choice source_probe_judge(int err, const uint16_t *ports, size_t count);

/* Turns RANGE into OWN where this kernel's search would have the cliff. Before any connection, once. */
void source_settle(struct source_set *set, uint32_t port_range);

/* Of an address of AF_INET, AF_INET6 or AF_UNIX. */
socklen_t source_address_length(const struct sockaddr_storage *address);

/* Addresses that connections come from, one where the kernel chooses it. */
static inline size_t source_addresses(const struct source_set *set)
{
	return set->count ? set->count : 1;
}

void source_begin(struct source_cursor *cursor, uint32_t port_range, uint64_t random);

/*
 * Those ports of @range for slots @first … @first + @count - 1 of @all: what one worker may bind to so that
 * it never tries another's. The whole range if there are fewer ports than slots.
 */
uint32_t source_divide(uint32_t range, uint32_t first, uint32_t count, uint32_t all);

/* Prepares an unbound @fd for connect(). -errno: EADDRNOTAVAIL if every port is taken. */
int source_bind(const struct source_set *set, struct source_cursor *cursor, int fd);

/* Whether it helps to try another port after connect() said EADDRNOTAVAIL. */
bool source_chooses_ports(const struct source_set *set, const struct source_cursor *cursor);

/*
 * Puts a fresh socket in the place of @fd, which connect() refused, and binds that; other options are
 * lost. -errno. */
int source_replace(const struct source_set *set, struct source_cursor *cursor, int fd);

/*
 * The flow of a connected TCP socket whose peer is @server; if that is unspecified (0.0.0.0 means
 * this host) the kernel is asked. -errno.
 */
int source_flow(int fd, const struct sockaddr_storage *server, struct flow *ret_flow);

#endif
