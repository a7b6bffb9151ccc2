/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What the kernel side counts for one service on one CPU. User space adds the CPUs up and never
 * resets anything: a period is the difference of two readings, so nothing is lost between them.
 */
#ifndef WIRE_COUNTERS_H
#define WIRE_COUNTERS_H

#include <linux/types.h>
#include "wire/buckets.h"
#include "wire/stage.h"

enum counter {
	COUNTER_ACCEPTED,	   /* children that reached ESTABLISHED on the listener */
	COUNTER_EXCHANGES,	   /* requests whose response has begun */
	COUNTER_BYTES_IN,	   /* bytes that reads returned */
	COUNTER_BYTES_OUT,	   /* bytes that writes accepted */
	COUNTER_CLOSED_BY_SERVER,  /* the server's FIN came first */
	COUNTER_CLOSED_BY_CLIENT,  /* the client's FIN came first */
	COUNTER_RESET_BY_SERVER,   /* aborted here: unread data, SO_LINGER 0, ss -K, memory */
	COUNTER_RESET_BY_CLIENT,   /* RST received */
	COUNTER_TIMED_OUT,	   /* ETIMEDOUT: retransmissions or keepalive without an answer */
	COUNTER_RETRANSMITS,	   /* segments sent again */
	COUNTER_TIME_WAIT_CREATED, /* TIME_WAIT sockets that this service's closes left behind */
	COUNTER_OVERLAPPED,	   /* request readable before the previous response was complete */
	COUNTER_UNSOLICITED,	   /* writes with no request before them */
	COUNTER_UNANSWERED,	   /* TCP: ended by close without a response; UDP: given up */
	COUNTER_PREEXISTING,	   /* connections older than the observation */
	COUNTER_CUT_OFF,	   /* exchanges under way when the observation began: not timed */
	COUNTER_UNTIMED,	/* TCP: arrival not seen; UDP: unknown which request was answered */
	COUNTER_ACCEPT_UNSEEN,	/* connections whose accept_queue time could not be inferred */
	COUNTER_MULTIPLEXED,	/* connections that speak HTTP/2: counted, not timed */
	COUNTER_DROPPED,	/* UDP: datagrams that found the receive buffer full */
	COUNTER_UNMATCHED,	/* UDP: datagrams whose arrival and read could not be matched */
	COUNTER_STORAGE_FAILED, /* connections not observed: the kernel had no memory for them */
	/*
	 * The part of accept_queue in which a request was already waiting: it belongs to that
	 * exchange's residence. accept_queue itself is per connection and may include idle time.
	 */
	COUNTER_ACCEPT_DELAYED,	   /* exchanges whose request arrived before accept() */
	COUNTER_ACCEPT_DELAY_NS,   /* sum over them of accepted - arrival */
	COUNTER_TRANSMIT_FOLLOWED, /* exchanges whose response is followed to the wire */
	COUNTER_TRANSMIT_UNSEEN,   /* of these: its last byte was not seen to leave */
	COUNTER_ACK_UNSEEN,	   /* of these: its acknowledgement was not seen */
	COUNTER_SAMPLES_LOST,	   /* sampled exchanges that found the ring full */
	COUNTER_OUTSTANDING, /* UDP: datagrams read that may still be answered: goes up and down */
	COUNTER_ONEWAY,	     /* messages of clients that got no response before the next one came */
	COUNTER_GOODBYES,    /* messages that the client's FIN came right behind: QUIT, Terminate */
	COUNTER_TRAILING,    /* writes after a response, when nothing had been written for a time */
	COUNTER_INCONSISTENT, /* times that would have been negative: not recorded */
	COUNTER_UNSEEN_READS, /* exchanges of which bytes were read unseen (splice): not timed */
	COUNTER_BLOCKED, /* first writes that waited for room: their begin is known to a tick */
	COUNTER_MPTCP,	 /* connections with MPTCP: their data passes another socket */
	COUNTER_TIME_WAIT_UNSURE, /* closes that found no room for a TIME_WAIT socket, or the last */
	COUNTER_LISTEN_DROPS,	  /* segments that its listeners dropped, for whatever reason */
	COUNTER_CARRIED, /* responses of an earlier epoch that went on: what they took is not in RESPOND */
	COUNTER_AMBIGUOUS_REPLIES, /* UDP: exchanges whose reply may answer several requests: not timed */
	COUNTER_NAMELESS_REPLIES, /* UDP, of these: nobody knows to whom the reply was sent */
	COUNTER_UNTRACKED,    /* UDP: requests that found no room, so that no reply matches them */
	COUNTER_TLS,	      /* connections that speak TLS */
	COUNTER_TLS_UNKNOWN,  /* of these: what they speak in it cannot be told: not timed */
	COUNTER_UNRECOGNISED, /* connections whose first bytes cannot be read (io_uring) */
	COUNTER_LOOKED,	      /* reads whose requests were counted, of a sample */
	COUNTER_LOOKED_REQUESTS, /* requests that began in them */
	COUNTER_NAGLE_HELD,	 /* responses whose end waited for an ACK of their begin (Nagle) */
	/* With --http. */
	COUNTER_HTTP2,		   /* connections whose streams are followed */
	COUNTER_HTTP2_GIVEN_UP,	   /* of these: bytes were not seen, or not understood */
	COUNTER_STREAMS,	   /* opened by clients on these */
	COUNTER_STREAMS_BY_CLIENT, /* of these: reset by the client, */
	COUNTER_STREAMS_BY_SERVER, /* and by the server */
	COUNTER_STREAMS_REFUSED,   /* of all: the server says that it did nothing for them */
	COUNTER_STREAMS_LOST,	   /* found no room, or their connection was given up */
	COUNTER_GOAWAYS,	   /* connections that the server has told it ends */
	COUNTER_COUNT
};

struct stage_histogram {
	__u64 sum_ns;
	__u64 max_ns;
	__u64 buckets[BUCKET_COUNT];
};

/*
 * Values of zero are not written into the buckets of RECEIVE and RESPOND: nearly every exchange has
 * one read and one write, and user space can tell their number (exchanges timed - sum of buckets).
 */
struct service_slot {
	__u64 generation; /* of its service's number (wire/config.h): beside what each exchange counts */
	__u64 counters[COUNTER_COUNT];
	__u64 depth_max;	/* accept-queue depth, high-water mark */
	__u64 epoch;		/* first_message_ns is the first of this epoch (wire/config.h) */
	__u64 first_message_ns; /* earliest arrival among the epoch's exchanges */
	__u64 last_message_ns;	/* latest write */
	struct stage_histogram stages[STAGE_RESIDENCE_END];
};

/* The stages behind the residence, with --transmit. */
struct service_transmit {
	struct stage_histogram stages[STAGE_COUNT - STAGE_RESIDENCE_END];
};

/* Times that are no stage of an exchange. */
enum span {
	SPAN_TLS_HANDSHAKE, /* the first byte of ClientHello was there → the last flight passed */
	SPAN_ABANDONED, /* requests that were not answered: their age when their connection ended */
	SPAN_COUNT
};

/* Of a service on all CPUs. */
struct service_spans {
	struct stage_histogram spans[SPAN_COUNT];
};

/* What SERVICE divides into, by the state of the thread that served. */
enum split_part {
	SPLIT_RUNNING,	/* on a CPU */
	SPLIT_RUNNABLE, /* it could have run and waited for a CPU */
	SPLIT_BLOCKED,	/* it waited for something else */
	SPLIT_COUNT
};

/* The same on one CPU, with --cpu. Values of zero are not written into RUNNABLE and BLOCKED. */
struct service_split {
	struct stage_histogram parts[SPLIT_COUNT];
};

_Static_assert(sizeof(struct stage_histogram) == 8 * (2 + BUCKET_COUNT), "no padding");
_Static_assert(sizeof(struct service_slot) ==
		       8 * (COUNTER_COUNT + 5) +
			       STAGE_RESIDENCE_END * sizeof(struct stage_histogram),
	       "no padding");

#endif
