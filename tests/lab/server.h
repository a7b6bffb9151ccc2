/* SPDX-License-Identifier: MIT */
/* Every model's input: options, the bound socket, counters, records and the control descriptor. */
#ifndef LAB_SERVER_H
#define LAB_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "counters.h"
#include "options.h"
#include "protocol.h"
#include "truth.h"
#include "turn.h"

/* Memory that forked workers share with their parent. */
struct shared {
	struct turn turn;	      /* for --accept-delay or, udp, --read-delay */
	_Atomic uint64_t connections; /* accepted so far: the last connection's number */
	struct counters counters[];   /* one per process that serves */
};

/* The delays, each counted alone. */
enum delay {
	DELAY_ACCEPT,
	DELAY_READ,
	DELAY_SERVICE,
	DELAY_COUNT
};

struct server {
	const struct options *options;
	const struct protocol *protocol; /* NULL: udp */
	int fd;				 /* the listener or the UDP socket */
	union address address;		 /* as bound */
	int control;			 /* readable: call server_control() */
	int ready;			 /* a worker's pipe, by which it reports that it serves */
	bool worker;			 /* a forked one: its control only means stop */
	struct shared *shared;
	size_t shared_size;
	struct counters *counters; /* this process's own */
	struct truth *truth;	   /* NULL without --truth */
	int truth_fd;
	_Atomic uint64_t delays[DELAY_COUNT]; /* calls of server_delay() so far, for --one-in */
	_Atomic uint64_t complained_ns;	      /* time of server_complain()'s last message */
};

/* Bind, open the truth file and the signals. On failure log and return -errno. */
int server_open(struct server *server, const struct options *options);

/* Write the files of --truth and --summary. On failure log and return -errno. */
int server_finish(struct server *server);

void server_close(struct server *server);

/* Serve by the chosen model until the stop. On failure log and return -errno. */
int server_run(struct server *server);

/* Handle an event on `control`: true means stop. */
bool server_control(struct server *server);

/*
 * Called when clients can be served: prints "listening on ADDR:PORT" or, in a worker, notifies the
 * parent.
 */
void server_announce(struct server *server);

/* Log an error that can repeat quickly, at most once per second. */
void server_complain(struct server *server, int err, const char *what);

/*
 * Ask for the turn to take from the socket after @delay_ns. Both results are 0 if the socket is
 * empty again.
 */
struct turn_wait server_take_turn(struct server *server, uint64_t delay_ns);

/* Return @delay_ns at one of --one-in calls for this delay, 0 at the others. */
uint64_t server_delay(struct server *server, enum delay which, uint64_t delay_ns);

void server_leak(struct server *server);

/* Count and record a finished exchange; @answered: its response was written completely. */
void server_record(struct server *server, struct truth_writer *writer, struct exchange *exchange,
		   const struct request *request, bool answered);

void server_sleep(uint64_t ns, bool spin);

/* The models serve until control says stop. 0 or -errno. */
int model_event(struct server *server);
int model_threads(struct server *server);
int model_prefork(struct server *server);

/* Serve from an epoll loop in this process until control says stop. 0 or -errno. */
int event_run(struct server *server);

/*
 * Serve by blocking calls in this process: a thread per connection, or one connection after the
 * other.
 */
int blocking_run(struct server *server, bool thread_per_connection);

#endif
