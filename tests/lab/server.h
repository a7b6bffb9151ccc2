/* SPDX-License-Identifier: MIT */
/* What every model gets: options, the bound socket, where to count, record and hear of the end. */
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
	struct turn turn;	      /* of --accept-delay or, udp, --read-delay */
	_Atomic uint64_t connections; /* accepted so far: the last connection's number */
	struct counters counters[];   /* one per process that serves */
};

/* What can be delayed, each counted by itself. */
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
	int ready;			 /* a worker's: where it tells its parent that it serves */
	bool worker;			 /* a forked one: its control only ever says stop */
	struct shared *shared;
	size_t shared_size;
	struct counters *counters; /* this process's own */
	struct truth *truth;	   /* NULL without --truth */
	int truth_fd;
	_Atomic uint64_t delays[DELAY_COUNT]; /* how often was asked for each, for --one-in */
	_Atomic uint64_t complained_ns;	      /* when server_complain() last spoke */
};

/* Binds, opens the truth file and the signals. Logs and returns -errno if it cannot. */
int server_open(struct server *server, const struct options *options);

/* Writes what --truth and --summary ask for. Logs and returns -errno if it cannot. */
int server_finish(struct server *server);

void server_close(struct server *server);

/* Serves by the chosen model until told to stop. Logs and returns -errno. */
int server_run(struct server *server);

/* Handles what made `control` readable: true if it is time to stop. */
bool server_control(struct server *server);

/*
 * Called as soon as a client would be served: prints "listening on ADDR:PORT", or, in a worker,
 * tells the parent.
 */
void server_announce(struct server *server);

/* An error that can repeat quickly: logged once per second at most. */
void server_complain(struct server *server, int err, const char *what);

/*
 * Asks for the turn to take what waits in the socket after @delay_ns. With `mine` 0 and `wait_ns` 0
 * nothing waits there any more.
 */
struct turn_wait server_take_turn(struct server *server, uint64_t delay_ns);

/* @delay_ns for one of --one-in, 0 for the others. */
uint64_t server_delay(struct server *server, enum delay which, uint64_t delay_ns);

/* Does what knobs.leak asks for. */
void server_leak(struct server *server);

/* Counts and records an exchange that is over; @answered: its response was written to its end. */
void server_record(struct server *server, struct truth_writer *writer, struct exchange *exchange,
		   const struct request *request, bool answered);

/* Sleeps (or spins) where there is nothing else to do meanwhile. */
void server_sleep(uint64_t ns, bool spin);

/* The models: each serves until control says stop. 0 or -errno. */
int model_event(struct server *server);
int model_threads(struct server *server);
int model_prefork(struct server *server);

/* Serves from an epoll loop in this process until control says stop. 0 or -errno. */
int event_run(struct server *server);

/* The blocking way to serve, in this process: by a thread per connection or one after the other. */
int blocking_run(struct server *server, bool thread_per_connection);

#endif
