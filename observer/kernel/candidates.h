/* SPDX-License-Identifier: MIT */
/*
 * The questions of the observer, and the programs of which each may answer one: a new program is a row here. plan.c
 * rehearses them.
 */
#ifndef OBSERVER_KERNEL_CANDIDATES_H
#define OBSERVER_KERNEL_CANDIDATES_H

enum question {
	QUESTION_SOCKETS,      /* which sockets are there now? */
	QUESTION_CONNECTIONS,  /* when do connections begin and end? */
	QUESTION_RESETS,       /* which were reset by the peer? */
	QUESTION_RETRANSMITS,  /* which segments were sent again? */
	QUESTION_ARRIVAL,      /* when did a request become readable? */
	QUESTION_READ,	       /* when did the server read it? */
	QUESTION_WRITE,	       /* when did the server write the response? */
	QUESTION_HTTP,	       /* when do connections with streams of HTTP/2 end? */
	QUESTION_STREAMS,      /* what do such connections carry? */
	QUESTION_COMMANDS,     /* when do connections with open commands end? */
	QUESTION_TLS,	       /* which text do calls of TLS libraries carry? */
	QUESTION_TLS_SOCKET,   /* which connection is such a call for? */
	QUESTION_TLS_SENT,     /* when did it write to the socket? */
	QUESTION_ACCEPT,       /* when did accept() return? */
	QUESTION_ACCEPT_URING, /* when did io_uring's complete? */
	QUESTION_TRANSMIT,     /* when did the response leave, when was it acknowledged? */
	QUESTION_CALLS,	       /* when do the server's calls of others begin and end? */
	QUESTION_CPU,	       /* when do the threads that serve run? */
	QUESTION_UDP_ARRIVAL,  /* when did a datagram arrive? */
	QUESTION_UDP_READ,     /* when did the server read it? */
	QUESTION_UDP_WRITE,    /* when did it reply? */
	QUESTION_UDP_DROP,     /* which datagrams were dropped? */
	QUESTION_UDP_OPEN,     /* which ones wait for their reply? */
	QUESTION_COUNT
};

/* When a candidate is used at all. */
enum candidate_use {
	USE_ALWAYS,
	USE_ACCEPT_RETURNED, /* with --accept-source auto or accept */
	USE_ACCEPT_SYSCALL,  /* with --accept-source syscall */
	USE_TRANSMIT,	     /* with --transmit */
	USE_TRANSMIT_STAMPS, /* likewise, and with the cgroup of the services */
	USE_CPU,	     /* with --cpu */
	USE_CALLS,	     /* with --calls */
	USE_INSIDE,	     /* with --http or --protocol */
	USE_HTTP,	     /* likewise, for the streams of HTTP/2 */
	USE_BESIDE,	     /* without, likewise: beside the plain ones (bpf/tcp/http/beside.h) */
	USE_COMMANDS,	     /* with --protocol */
	USE_TLS,	     /* with --tls */
	USE_UDP,	     /* with a UDP service */
};

/* The most programs of one candidate. */
#define PLAN_ROW_PROGRAMS 3

struct candidate {
	enum question question;
	const char *program; /* name of the BPF program */
	const char *hook;    /* what it attaches to, for people */
	enum candidate_use use;
	const char *also[PLAN_ROW_PROGRAMS - 1]; /* further programs that it needs; NULL: none */
};

#define PLAN_ROWS 39

/* Best first. */
extern const struct candidate plan_candidates[]; /* PLAN_ROWS */

/* In words, e.g. "When did the server read it?", and the stages and counts that need it, e.g. "socket_queue, receive". */
struct candidate_question {
	const char *text;
	const char *use;
};

extern const struct candidate_question candidate_questions[];

/* This program and ARRIVAL_HTTP are the only ones for arrivals that also see a listener's queue grow. */
#define ARRIVAL_READY "exchange_ready"
#define READ_PLAIN    "exchange_recv"
#define WRITE_PLAIN   "exchange_send"
/* Programs that also follow the streams of HTTP/2, and commands. */
#define ARRIVAL_HTTP "exchange_ready_http"
#define READ_HTTP    "exchange_recv_http"
#define READ_CLOCK   "read_clock_look"
#define WRITE_HTTP   "exchange_send_http"

#endif
