/* SPDX-License-Identifier: MIT */
/*
 * The sockets of a worker's slots and the requests on them: sending, matching replies, time limits,
 * sending again. A socket serves plan.outstanding slots. Neighbours: udp.c (options, set-up),
 * datagram.c (system calls), ledger.c (which request a reply answers). Sees engine/engine.h.
 */
#ifndef DRIVER_ENGINE_UDP_FLOW_H
#define DRIVER_ENGINE_UDP_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "datagram.h"
#include "engine/engine.h"
#include "payload/framing/framing.h"
#include "ledger.h"
#include "payload/match.h"
#include "payload/message.h"
#include "transport/policy.h"
#include "transport/source.h"

/* Shared by all workers. */
struct udp_plan {
	struct sockaddr_storage address;
	struct connection_policy policy;
	struct source_set sources; /* borrowed from the options */
	uint64_t timeout_ns;
	uint64_t retransmit_ns; /* 0: never */
	uint32_t outstanding;	/* slots per socket */
	uint32_t replies;	/* datagrams per response */
	struct match match;
	struct framing framing;		     /* of each datagram; kind NULL: anything is a reply */
	const struct capture_list *captures; /* borrowed; NULL: nothing is captured */
	struct message message;
};

struct udp;

struct udp_socket {
	struct udp *udp;
	struct udp_socket *next; /* in udp->retired */
	uint32_t flow;
	int fd;
	bool receiving;	 /* hold requests back until the batch is read */
	bool blocked;	 /* its send buffer is full */
	bool following;	 /* in udp->following */
	bool retired;	 /* serves no slot, only counts late replies */
	uint32_t queued; /* entries in queue[] */
	uint32_t under_way;
	uint32_t drops;	    /* last value seen */
	uint64_t opened_ns; /* retired: when that happened */
	uint64_t served;
	uint64_t next_id;
	struct ledger ledger;
	uv_poll_t poll;
	uint32_t queue[]; /* slots whose requests wait to be sent */
};

enum udp_exchange_state {
	UDP_IDLE,
	UDP_QUEUED,
	UDP_PENDING, /* sent */
};

struct udp_exchange {
	enum udp_exchange_state state;
	uint32_t replies; /* so far */
	uint64_t begin_ns;
	uint64_t start_ns; /* sent for the first time */
	uint64_t sent_ns;  /* sent for the last time */
	uint64_t bytes_in;
	uint64_t bytes_out;
	struct ledger_entry *entry;
	struct iovec request;
	bool rejected;	 /* a reply says failure */
	bool uncaptured; /* a value to capture was missing */
};

struct udp {
	const struct engine_host *host;
	struct udp_plan *plan; /* not const: its message numbers the requests */
	struct source_cursor sources;
	struct datagram_io *io;
	struct message_room room;
	uint32_t flows;
	struct udp_socket **sockets; /* by flow; NULL: not open */
	struct udp_socket *retired;  /* latest first */
	uint32_t retired_count;
	/* Sockets whose next requests leave when all available replies are read. */
	struct udp_socket **following;
	uint32_t following_count;
	uv_check_t check;
	uv_timer_t again; /* retransmission */
	struct udp_exchange exchanges[];
};

/* An engine's state, see engine/engine.h. NULL without memory. */
struct udp *udp_new(const struct engine_host *host, struct udp_plan *plan);
void udp_start(void *state, uint32_t slot);
void udp_expire(void *state, uint64_t over_ns);
void udp_close(void *state);
void udp_free(void *state);

/* ---- socket.c: sockets opened, retired while late replies may come, closed ---- */

/* Open the flow's socket; @ready: as uv_poll_cb. -errno. */
int udp_socket_open(struct udp *udp, uint32_t flow, uv_poll_cb ready);

/* Close the socket; its flow has none then. Its memory is freed later. */
void udp_socket_close(struct udp_socket *socket);

/*
 * Take the socket from its flow. It receives late replies until it has been retired for @over_ns.
 */
void udp_socket_retire(struct udp_socket *socket, uint64_t now_ns);
void udp_socket_expire_retired(struct udp *udp, uint64_t now_ns, uint64_t over_ns);

/* ---- queue.c: requests waiting to leave, rendered, then sent as many as possible at once ---- */

/* Render the slot's request and append it. */
void udp_queue_add(struct udp_socket *socket, uint32_t slot);

/* Send the first ones. Return how many have left, or -errno if the first has not. */
int udp_queue_send(struct udp_socket *socket);
void udp_queue_remove(struct udp_socket *socket, uint32_t slot);

#endif
