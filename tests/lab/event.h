/* SPDX-License-Identifier: MIT */
/* Serving from an epoll loop: the functions of event_tcp.c and event_udp.c for the models. */
#ifndef LAB_EVENT_H
#define LAB_EVENT_H

#include "loop.h"
#include "server.h"

struct event_conn;

struct event_tcp {
	struct server *server;
	struct loop *loop;
	struct truth_writer *writer;
	struct source source; /* the listener */
	struct timer timer;   /* before accept(): its delay, or backing off */
	uint64_t turn;	      /* the turn to accept after the delay */
	struct event_conn *conns;
};

struct event_task;

struct event_udp {
	struct server *server;
	struct loop *loop;
	struct truth_writer *writer;
	struct source source;
	struct timer timer;   /* before reading: its delay */
	uint64_t turn;	      /* the turn to read after the delay */
	uint64_t readable_ns; /* when the loop last reported it */
	struct event_task *tasks;
};

/* Start to serve on @loop. 0 or -errno. Close only after a successful open. */
int event_tcp_open(struct event_tcp *tcp, struct server *server, struct loop *loop,
		   struct truth_writer *writer);
void event_tcp_close(struct event_tcp *tcp);

int event_udp_open(struct event_udp *udp, struct server *server, struct loop *loop,
		   struct truth_writer *writer);
void event_udp_close(struct event_udp *udp);

#endif
