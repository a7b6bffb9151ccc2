/* SPDX-License-Identifier: MIT */
/*
 * Serving by blocking calls, in threads that can all be stopped. Sleeping ones see `stop_fd` become
 * readable; those blocked in a call on a socket are woken by shutdown().
 */
#ifndef LAB_BLOCKING_H
#define LAB_BLOCKING_H

#include <pthread.h>

#include "conn.h"
#include "sojourn/cleanup.h"

struct session;

struct blocking {
	struct server *server;
	bool thread_per_connection;
	int stop_fd;
	atomic_bool stopping;
	pthread_mutex_t lock;	  /* for the two lists and for setting `stopping` */
	struct session *active;	  /* being served: their descriptors are valid */
	struct session *finished; /* their threads are to be joined */
	size_t sessions; /* started, not joined; only the accepting thread uses it, then the joiner */
	pthread_cond_t ended; /* something was added to `finished` */
};

/* Sleep (or spin); return early on a stop. */
void blocking_sleep(struct blocking *blocking, uint64_t ns, bool spin);

/* Wait until @fd is readable; return false on a stop. */
bool blocking_wait_readable(struct blocking *blocking, int fd);

/*
 * Wait until the server's socket is readable and then for @delay_ns, both with the turn to take
 * from it. The caller ends @ret_turn by turn_end(). @ret_readable_ns: when the socket was seen
 * readable. False: nothing may be taken now.
 */
bool blocking_wait_turn(struct blocking *blocking, uint64_t delay_ns, uint64_t *ret_turn,
			uint64_t *ret_readable_ns);

bool blocking_is_stopping(struct blocking *blocking);

/* A thread's work until a stop: accept connections, or answer datagrams. */
void *blocking_tcp(void *blocking);
void *blocking_udp(void *blocking);

/* Wake the active sessions of blocking_tcp(), and join the finished ones. */
void blocking_tcp_stop(struct blocking *blocking);
void blocking_tcp_join(struct blocking *blocking);

#endif
