/* SPDX-License-Identifier: MIT */
/*
 * Source addresses and ports of TCP connections, chosen so that the kernel's port search stays
 * fast. connect() prefers ports of one parity (Linux 4.2, 07f4c90062f8). Once these are used, it
 * searches all of them for every connection: 40 times slower.
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
	SOURCE_RANGE, /* IP_LOCAL_PORT_RANGE, if connect() then prefers no parity (Linux 6.8) */
	SOURCE_OWN,   /* bind() to ports in turn */
};

#define SOURCE_ADDRESSES_MAX 65536

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51 /* Linux 6.3 */
#endif

struct source_set {
	enum source_choice choice;
	struct sockaddr_storage *addresses; /* NULL: the kernel's choice */
	size_t count;			    /* of addresses */
};

/* One worker's position, random at first. */
struct source_cursor {
	uint64_t next;
	uint32_t port_range; /* low | high << 16; 0: not known, the kernel chooses */
	uint32_t own_ports;  /* the part of @port_range that this worker binds to */
};

/*
 * Add "ADDR[,ADDR|ADDR-ADDR]…" to @set. -EINVAL with @ret_error; -ENOMEM. A range counts up the
 * last 32 bits. Repeated addresses are refused.
 */
int source_parse(const char *text, struct source_set *set, char **ret_error);
void source_clear(struct source_set *set);

/*
 * Keep the share of sharer @index of @sharers: neighbours in the list, in its order. Shares differ by
 * one address at most, and no address is in two. At least @sharers addresses, or none.
 */
void source_keep_share(struct source_set *set, uint32_t index, uint32_t sharers);

/*
 * Check that the addresses are this host's and can reach a target of @family. -EINVAL with
 * @ret_error, -errno.
 */
int source_check(const struct source_set *set, int family, char **ret_error);

/* This many ports, evenly chosen, have one parity once in 65,536 times. */
#define SOURCE_PROBE_PORTS 17U

/*
 * Let connect() choose up to SOURCE_PROBE_PORTS of @range (see limits_port_range()), and stop once
 * two differ in parity. *ret_count ports were chosen. Nothing is sent, except a SYN to loopback
 * while the kernel suspends Fast Open. -errno if this is not possible. That is so without loopback
 * or TCP Fast Open, or before Linux 6.3.
 */
int source_probe(uint32_t range, uint16_t ports[static SOURCE_PROBE_PORTS], size_t *ret_count);

/* Choose by the probe's result and @err; in doubt, ports of our own. */
enum source_choice source_probe_judge(int err, const uint16_t *ports, size_t count);

/* Replace RANGE by OWN if connect() prefers one parity here. Once, before any connection. */
void source_settle(struct source_set *set, uint32_t port_range);

/* Return the number of source addresses: 1 if the kernel chooses. */
static inline size_t source_addresses(const struct source_set *set)
{
	return set->count ? set->count : 1;
}

void source_begin(struct source_cursor *cursor, uint32_t port_range, uint64_t random);

/*
 * Return the ports of @range for slots @first … @first + @count - 1 of @all, so that workers never
 * try the same port. With fewer ports than slots, return the whole range.
 */
uint32_t source_divide(uint32_t range, uint32_t first, uint32_t count, uint32_t all);

/* Bind an unbound @fd before connect(). -errno; -EADDRNOTAVAIL: every port is taken. */
int source_bind(const struct source_set *set, struct source_cursor *cursor, int fd);

/* Return whether another port may help after connect() failed with EADDRNOTAVAIL. */
bool source_chooses_ports(const struct source_set *set, const struct source_cursor *cursor);

/* Replace @fd, which connect() refused, by a new bound socket; other options are lost. -errno. */
int source_replace(const struct source_set *set, struct source_cursor *cursor, int fd);

/* A name of a source, for people: an address, or a range of them as --source takes it. */
#define SOURCE_TEXT (2 * INET6_ADDRSTRLEN)

/*
 * Name the source at @index of @set, or the range that begins there. Return the index after it. @index
 * is less than the count.
 */
size_t source_print(const struct source_set *set, size_t index, char ret_text[static SOURCE_TEXT]);

/* Return the address that this host's routes choose towards @server, of an IP family. Nothing is sent. -errno. */
int source_route(const struct sockaddr_storage *server, struct sockaddr_storage *ret_own);

/* Likewise, its name. */
int source_of_route(const struct sockaddr_storage *server, char ret_text[static SOURCE_TEXT]);

/*
 * Read the flow of a connected TCP socket with the peer @server; ask the kernel if that is
 * unspecified (0.0.0.0 means this host). -errno.
 */
int source_flow(int fd, const struct sockaddr_storage *server, struct flow *ret_flow);

#endif
