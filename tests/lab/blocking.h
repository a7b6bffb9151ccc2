/* SPDX-License-Identifier: MIT */
/*
 * Serving by blocking calls, in threads that all can be told to stop: sleeping ones see `stop_fd`
 * become readable, those blocked in a call on a socket are woken by shutdown().
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
	pthread_mutex_t lock;	  /* of the two lists and of setting `stopping` */
	struct session *active;	  /* being served: their descriptors are valid */
	struct session *finished; /* their threads are to be joined */
	size_t sessions; /* begun and not yet joined: for the accepting thread, then for who joined it */
	pthread_cond_t ended; /* something was added to `finished` */
};

/* Sleeps (or spins) unless told to stop: then it returns early. */
void blocking_sleep(struct blocking *blocking, uint64_t ns, bool spin);

/* Waits until @fd is readable; false if told to stop. */
bool blocking_wait_readable(struct blocking *blocking, int fd);

/*
 * Waits until something waits in the server's socket and then for @delay_ns, both with the turn to
 * take it. @ret_turn is to be ended with turn_end() when that is done. @ret_readable_ns: when it
 * was seen. False: nothing may be taken now.
 */
bool blocking_wait_turn(struct blocking *blocking, uint64_t delay_ns, uint64_t *ret_turn,
			uint64_t *ret_readable_ns);

bool blocking_is_stopping(struct blocking *blocking);

/* A thread's work: accepts connections, or answers datagrams, until told to stop. */
void *blocking_tcp(void *blocking);
void *blocking_udp(void *blocking);

/* What blocking_tcp() leaves behind: wakes the active sessions, and joins the finished ones. */
void blocking_tcp_stop(struct blocking *blocking);
void blocking_tcp_join(struct blocking *blocking);

#endif
