/* SPDX-License-Identifier: MIT */
/* The kernel's own counts and limits of the namespace that we are in, from /proc: a table. */
#ifndef OBSERVER_HOST_NET_NUMBERS_H
#define OBSERVER_HOST_NET_NUMBERS_H

#include "ports.h"
#include "sojourn/run.h"

enum resource_number {
	NUMBER_TIME_WAIT,
	NUMBER_ORPHANS,
	NUMBER_TCP_PAGES,
	NUMBER_TCP_HASHED,    /* IPv4 sockets of the namespace that are in a hash */
	NUMBER_TCP_ALLOCATED, /* sockets of the host, also those in no hash */
	NUMBER_TCP6_HASHED,
	NUMBER_LISTEN_OVERFLOWS,
	NUMBER_LISTEN_DROPS,
	NUMBER_DEFERRED,
	NUMBER_TIME_WAIT_OVERFLOW,
	NUMBER_SYN_COOKIES,
	NUMBER_SYN_DROPS,
	NUMBER_ABORT_ON_MEMORY,
	NUMBER_UDP_BUFFER_ERRORS,
	NUMBER_TIME_WAIT_MAX,
	NUMBER_ORPHANS_MAX,
	NUMBER_TCP_PAGES_PRESSURE,
	NUMBER_TCP_PAGES_MAX,
	NUMBER_SYN_BACKLOG_MAX,
	NUMBER_SYNCOOKIES,
	NUMBER_SOMAXCONN,
	NUMBER_CONNTRACK,
	NUMBER_CONNTRACK_MAX,
	NUMBER_FILES,
	NUMBER_FILES_MAX,
	NUMBER_COUNT
};

struct resource_numbers {
	struct run_number of[NUMBER_COUNT];
};

/* Return a number's source for people, such as "TcpExt ListenDrops in /proc/net/netstat". */
const char *numbers_source(enum resource_number number);

/* Read all numbers; those that this kernel lacks, or hides from this user, stay unknown. */
void numbers_read(struct resource_numbers *ret_numbers);

/* Read one of them. */
struct run_number numbers_one(enum resource_number number);

/* Read range, reserved ports and TIME_WAIT reuse of the namespace; .held stays empty. 0 or -errno. */
int numbers_rules(struct port_rules *ret_rules);

#endif
