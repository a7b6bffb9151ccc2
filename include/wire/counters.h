/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The counts of one service on one CPU, or on the CPUs that share a copy (bpf/copies.h). User space sums the copies
 * and never resets a count: a period is the difference of two readings, so that nothing is lost between periods.
 */
#ifndef WIRE_COUNTERS_H
#define WIRE_COUNTERS_H

#include <linux/types.h>
#include "wire/buckets.h"
#include "wire/stage.h"

enum counter {
	COUNTER_ACCEPTED,	   /* connections ESTABLISHED on the listener */
	COUNTER_EXCHANGES,	   /* requests whose response has begun */
	COUNTER_BYTES_IN,	   /* returned by reads */
	COUNTER_BYTES_OUT,	   /* accepted by writes */
	COUNTER_CLOSED_BY_SERVER,  /* the server's FIN came first */
	COUNTER_CLOSED_BY_CLIENT,  /* the client's FIN came first */
	COUNTER_RESET_BY_SERVER,   /* aborted here: unread data, SO_LINGER 0, ss -K, memory */
	COUNTER_RESET_BY_CLIENT,   /* RST received */
	COUNTER_TIMED_OUT,	   /* ETIMEDOUT: retransmissions or keepalive unanswered */
	COUNTER_RETRANSMITS,	   /* segments sent again */
	COUNTER_TIME_WAIT_CREATED, /* TIME_WAIT sockets left by this service's closes */
	COUNTER_OVERLAPPED,	   /* request readable before the previous response was complete */
	COUNTER_UNSOLICITED,	   /* writes without a request before */
	COUNTER_UNANSWERED,	   /* TCP: closed without a response; UDP: given up */
	COUNTER_PREEXISTING,	   /* connections older than the observation */
	COUNTER_CUT_OFF,	   /* exchanges in flight when the observation began: not timed */
	COUNTER_UNTIMED,	   /* TCP: arrival not seen; UDP: answered request not known */
	COUNTER_ACCEPT_UNSEEN,	   /* connections without an inferred accept_queue time */
	COUNTER_MULTIPLEXED,	   /* HTTP/2 connections: counted, not timed */
	COUNTER_DROPPED,	   /* UDP: datagrams dropped for a full receive buffer */
	COUNTER_UNMATCHED,	   /* UDP: datagrams whose arrival and read were not matched */
	COUNTER_STORAGE_FAILED,	   /* connections not observed, as the kernel lacked memory */
	/*
	 * The part of accept_queue with a request already waiting, which belongs to that exchange's
	 * residence. accept_queue itself is per connection and may include idle time.
	 */
	COUNTER_ACCEPT_DELAYED,	   /* exchanges whose request arrived before accept() */
	COUNTER_ACCEPT_DELAY_NS,   /* their sum of accepted - arrival */
	COUNTER_TRANSMIT_FOLLOWED, /* exchanges followed to the wire */
	COUNTER_TRANSMIT_UNSEEN,   /* of these: last byte not seen leaving */
	COUNTER_ACK_UNSEEN,	   /* of these: acknowledgement not seen */
	COUNTER_SAMPLES_LOST,	   /* sampled exchanges lost to a full ring */
	COUNTER_OUTSTANDING,	   /* UDP: datagrams read, still answerable: goes up and down */
	COUNTER_ONEWAY,	      /* clients' messages without a response before the next message */
	COUNTER_GOODBYES,     /* messages followed at once by the client's FIN: QUIT, Terminate */
	COUNTER_TRAILING,     /* writes after a response, following a pause */
	COUNTER_INCONSISTENT, /* negative times, not recorded */
	COUNTER_UNSEEN_READS, /* exchanges with unseen reads (splice): not timed */
	COUNTER_BLOCKED,      /* first writes that waited for room: start known to a tick */
	COUNTER_MPTCP,	      /* connections with MPTCP, whose data use another socket */
	/* closes at the namespace's limit of TIME_WAIT sockets, which perhaps left none */
	COUNTER_TIME_WAIT_UNSURE,
	COUNTER_LISTEN_DROPS,	   /* segments dropped by the listeners, for any reason */
	COUNTER_CARRIED,	   /* responses continued from an earlier epoch: not in RESPOND */
	COUNTER_AMBIGUOUS_REPLIES, /* UDP: exchanges with an ambiguous reply: not timed */
	COUNTER_NAMELESS_REPLIES,  /* UDP, of these: recipient of the reply not known */
	COUNTER_UNTRACKED,	   /* UDP: requests without room, whose replies are unmatched */
	COUNTER_TLS,		   /* connections with TLS */
	COUNTER_TLS_UNKNOWN,	   /* of these: protocol inside not known: not timed */
	COUNTER_UNRECOGNISED,	   /* connections whose first bytes cannot be read (io_uring) */
	COUNTER_PERHAPS_WEBSOCKET, /* connections whose reads seem to be frames; without --http */
	COUNTER_LOOKED,		   /* sampled reads whose requests were counted */
	COUNTER_LOOKED_REQUESTS,   /* requests that began in these */
	COUNTER_NAGLE_HELD, /* responses whose end waited for an ACK of their start (Nagle) */
	/*
	 * Responses whose write had not returned when the client's RST ended the connection. They and their bytes are
	 * in no count above, which softirq may not change.
	 */
	COUNTER_CUT_RESPONSES,
	COUNTER_CUT_HTTP,  /* of these: of HTTP/1 */
	COUNTER_CUT_BYTES, /* of these responses */
	/* With --http. */
	COUNTER_HTTP2,		   /* connections whose streams are followed */
	COUNTER_HTTP2_GIVEN_UP,	   /* of these: bytes not seen or not understood */
	COUNTER_STREAMS,	   /* opened by clients on these */
	COUNTER_STREAMS_BY_CLIENT, /* of these: reset by the client */
	COUNTER_STREAMS_BY_SERVER, /* of these: reset by the server */
	COUNTER_STREAMS_REFUSED,   /* of all: not processed, according to the server */
	COUNTER_STREAMS_LOST,	   /* without room, or on a connection given up */
	COUNTER_GOAWAYS,	   /* connections whose end the server announced */
	COUNTER_HTTP2_OLDER,	   /* connections with HTTP/2 that are older than the observation */
	COUNTER_HTTP2_PICKED_UP,   /* of these: followed, and in HTTP2 */
	COUNTER_STREAMS_EARLIER,   /* on these: begun before, and ended by the server */
	COUNTER_HTTP2_ENDED,	   /* of HTTP2: followed from the first stream to their end */
	COUNTER_HTTP2_ENDED_STREAMS, /* opened by clients on these */
	COUNTER_GRPC_UNSURE,	     /* responses that may be of gRPC: a field is not known */
	COUNTER_STREAMS_TWO_WAY, /* not of gRPC: data of the request came while the response was under way */
	COUNTER_PIPELINED, /* connections of HTTP/1 whose clients pipeline: each request is followed */
	COUNTER_PIPELINES_GIVEN_UP, /* of HTTP/1: bytes not seen or not understood */
	COUNTER_CALLS_LOST,	    /* with --calls: connections to other places without room */
	COUNTER_COUNT
};

struct stage_histogram {
	__u64 sum_ns;
	__u64 max_ns;
	__u64 buckets[BUCKET_COUNT];
};

/*
 * RECEIVE and RESPOND record no zeros in buckets: nearly every exchange has one read and one write.
 * User space computes the number of zeros (timed exchanges - sum of buckets).
 */
struct service_slot {
	__u64 generation; /* of the service's number (wire/config.h); next to the hot counters */
	__u64 counters[COUNTER_COUNT];
	__u64 depth_max;	/* high-water mark of the accept queue */
	__u64 epoch;		/* the epoch (bpf/state.h) of first_message_ns */
	__u64 first_message_ns; /* earliest arrival among the epoch's exchanges */
	__u64 last_message_ns;	/* latest write */
	struct stage_histogram stages[STAGE_RESIDENCE_END];
};

/*
 * Return where a copy that CPUs share has that earliest arrival; 0: none yet. Nobody can change two words at once, so
 * there the two are for epochs of even and of odd numbers. User space empties the next one before it raises the epoch.
 */
static inline __attribute__((always_inline)) __u64 *first_message_at(struct service_slot *slot,
								     __u64 epoch)
{
	return epoch & 1 ? &slot->first_message_ns : &slot->epoch;
}

/* The stages after the residence, with --transmit. */
struct service_transmit {
	struct stage_histogram stages[STAGE_COUNT - STAGE_RESIDENCE_END];
};

/* Times that are no stage of an exchange. */
enum span {
	SPAN_TLS_HANDSHAKE, /* ClientHello's first byte arrived → last flight */
	SPAN_ABANDONED,	    /* unanswered requests: age at the end of their connection */
	SPAN_COUNT
};

/* Per service, for all CPUs. */
struct service_spans {
	struct stage_histogram spans[SPAN_COUNT];
};

/* The parts of SERVICE, by the state of the serving thread. */
enum split_part {
	SPLIT_RUNNING,	/* on a CPU */
	SPLIT_RUNNABLE, /* ready to run, waiting for a CPU */
	SPLIT_BLOCKED,	/* waiting for something else */
	SPLIT_COUNT
};

/* The parts, in each copy, with --cpu. RUNNABLE and BLOCKED record no zeros in buckets. */
struct service_split {
	struct stage_histogram parts[SPLIT_COUNT];
};

_Static_assert(sizeof(struct stage_histogram) == 8 * (2 + BUCKET_COUNT), "no padding");
_Static_assert(sizeof(struct service_slot) ==
		       8 * (COUNTER_COUNT + 5) +
			       STAGE_RESIDENCE_END * sizeof(struct stage_histogram),
	       "no padding");

#endif
