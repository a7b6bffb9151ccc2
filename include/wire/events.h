/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Events that the doctor counts, per process and address: bpf/doctor. */
#ifndef WIRE_EVENTS_H
#define WIRE_EVENTS_H

#include <linux/types.h>

/* Maximum of different keys; further ones count as lost. */
#define EVENT_FAILURES_MAX 1024
#define EVENT_ACTIONS_MAX  8192
#define EVENT_LISTENERS	   4096
#define EVENT_NAMES	   4096

enum event_kind {
	/* Failures; the address is the destination, or the one for bind(). */
	EVENT_NO_PORT,	      /* connect(): EADDRNOTAVAIL, no source port was left */
	EVENT_ADDRESS_IN_USE, /* bind(): EADDRINUSE */
	EVENT_NO_DESCRIPTOR,  /* EMFILE: the process's limit */
	EVENT_NO_FILE,	      /* ENFILE: the host's limit */
	EVENT_FAILURES,	      /* number of failures above */
	/* Actions. */
	EVENT_CONNECTED = EVENT_FAILURES, /* time: in connect() until the SYN left */
	EVENT_TIME_WAIT_CLIENT,		  /* left by the connecting side: the destination */
	EVENT_TIME_WAIT_SERVER,		  /* left by the accepting side: its port, no address */
	EVENT_RESET_CLIENT,		  /* an RST instead of a FIN, sides as above */
	EVENT_RESET_SERVER,
	EVENT_KINDS
};

struct event_key {
	__u32 netns; /* inode number, as in /proc/PID/ns/net */
	__u32 pid;   /* thread group, in the initial pid namespace; 0: closed before start */
	__u8 address[16]
		__attribute__((aligned(8))); /* network order; IPv4: the first four bytes */
	__u16 family;			     /* 0: no address */
	__u16 port;			     /* host order */
	__u32 kind;			     /* enum event_kind */
};

struct event_count {
	__u64 count;
	__u64 time_ns; /* of EVENT_CONNECTED and EVENT_NO_PORT */
};

/* A process's name when last counted, by pid: it may have ended since. */
struct event_name {
	char comm[16];
};

_Static_assert(sizeof(struct event_key) == 32, "one layout for kernel and user space");
_Static_assert(sizeof(struct event_count) == 16, "likewise");

#endif
