// SPDX-License-Identifier: MIT
/* Requests on UDP sockets: see flow.h. Neighbour: socket.c, the sockets. */
#include "flow.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "sojourn/clock.h"
#include "transport/link.h"

#define AGAIN_MIN_MS 1U
#define AGAIN_MAX_MS 50U
#define REST_MAX     4096U /* datagrams */

static void on_ready(uv_poll_t *poll, int status, int events);

static void note(struct udp *udp, enum run_datagram what, uint64_t count)
{
	udp->host->note(udp->host->user, what, count);
}

static bool is_by_order(const struct udp *udp)
{
	return udp->plan->match.kind == MATCH_ORDER;
}

/* A division is as expensive as some twenty other instructions. */
static uint32_t flow_of(const struct udp *udp, uint32_t slot)
{
	return udp->plan->outstanding == 1 ? slot : slot / udp->plan->outstanding;
}

static struct udp_socket *socket_of(struct udp *udp, uint32_t slot)
{
	return udp->sockets[flow_of(udp, slot)];
}

/* Close between requests. Limits of a connection exclude several requests at a time. */
static inline void close_if_over(struct udp_socket *socket)
{
	if (policy_is_over(&socket->udp->plan->policy, socket->served, socket->opened_ns) &&
	    !socket->under_way && !socket->queued)
		udp_socket_close(socket);
}

static void start(struct udp *udp, uint32_t slot, uint64_t now_ns);

static void report(struct udp *udp, uint32_t slot, struct engine_result *result)
{
	udp->exchanges[slot].state = UDP_IDLE;
	if (udp->host->done(udp->host, slot, result) == ENGINE_AGAIN)
		start(udp, slot, result->end_ns);
}

/* There is no socket, or nobody listens: the worker waits before it tries again. */
static void fail(struct udp *udp, uint32_t slot, int code)
{
	const struct udp_exchange *exchange = &udp->exchanges[slot];
	struct engine_result result = {
		.error = link_connect_error(-code),
		.connect_failed = true,
		.code = -code,
		.start_ns = exchange->start_ns,
		.end_ns = clock_now_ns(),
		.bytes_in = exchange->bytes_in,
		.bytes_out = exchange->bytes_out,
	};

	report(udp, slot, &result);
}

static const char *detail_of(const struct udp_exchange *exchange, enum run_error error)
{
	if (error == RUN_ERROR_MALFORMED)
		return "the datagram is not exactly one response of --framing";
	return exchange->uncaptured ? "a value to be captured was not there" : NULL;
}

static void finish(struct udp *udp, uint32_t slot, enum run_error error, uint64_t now_ns)
{
	const struct udp_exchange *exchange = &udp->exchanges[slot];
	struct engine_result result = {
		.error = error,
		.detail = detail_of(exchange, error),
		.verdict = exchange->rejected	  ? VERDICT_BAD_STATUS
			   : exchange->uncaptured ? VERDICT_UNEXPECTED
						  : VERDICT_GOOD,
		.start_ns = exchange->start_ns,
		.end_ns = now_ns,
		.bytes_in = exchange->bytes_in,
		.bytes_out = exchange->bytes_out,
	};

	report(udp, slot, &result);
}

/* The request awaits no reply any more. */
static void settle(struct udp_socket *socket, struct udp_exchange *exchange,
		   enum ledger_state state)
{
	exchange->entry->state = state;
	socket->under_way--;
}

static struct udp_exchange *exchange_about(struct udp_socket *socket, struct datagram about)
{
	struct ledger_entry *entry;
	struct udp_exchange *exchange;
	uint64_t key;

	if (!match_request_key(&socket->udp->plan->match, about.data, about.length, &key))
		return NULL;
	entry = ledger_get(&socket->ledger, key);
	if (!entry || entry->state != LEDGER_PENDING)
		return NULL;
	exchange = &socket->udp->exchanges[entry->slot];
	return exchange->state == UDP_PENDING ? exchange : NULL;
}

static bool take_error(struct udp_socket *socket)
{
	struct udp_exchange *exchange;
	struct datagram about;
	int code;

	if (datagram_take_error(socket->udp->io, socket->fd, &code, &about))
		return false;
	exchange = exchange_about(socket, about);
	if (exchange) {
		settle(socket, exchange, LEDGER_LOST);
		fail(socket->udp, exchange->entry->slot, code);
	}
	return true;
}

/* Take each reported error, of one datagram. No request starts here: a failed one waits first. */
static void take_errors(struct udp_socket *socket)
{
	int code;
	socklen_t length = sizeof(code);

	while (socket->fd >= 0 && take_error(socket))
		;
	if (socket->fd >= 0) /* clear an error that the error queue had no room for */
		getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &code, &length);
}

/* An error may be an earlier datagram's: try this one again. */
static int send_or_take_errors(struct udp_socket *socket)
{
	int sent = udp_queue_send(socket);

	for (int tries = 0; sent < 0 && sent != -EAGAIN && tries < 3; tries++) {
		take_errors(socket);
		if (!socket->queued)
			return 0;
		sent = udp_queue_send(socket);
	}
	return sent;
}

static void flush(struct udp_socket *socket)
{
	while (socket->queued && !socket->blocked) {
		int sent = send_or_take_errors(socket);
		uint32_t slot = socket->queue[0];

		if (sent == -EAGAIN) {
			socket->blocked = true;
			uv_poll_start(&socket->poll, UV_READABLE | UV_WRITABLE, on_ready);
		} else if (sent < 0) {
			udp_queue_remove(socket, slot);
			fail(socket->udp, slot, -sent);
		}
	}
}

/* Return 0 or -errno; -EAGAIN: no socket may be opened yet. */
static int open_socket(struct udp *udp, uint32_t slot)
{
	const struct engine_host *host = udp->host;
	uint64_t begin_ns = clock_now_ns();
	int err;

	if (!host->may_connect(host->user))
		return -EAGAIN;
	err = udp_socket_open(udp, flow_of(udp, slot), on_ready);
	if (!err)
		host->connected(host->user, slot, clock_now_ns() - begin_ns);
	return err;
}

static struct capture_store *store_of(struct udp *udp, uint32_t slot)
{
	return &udp->host->clients[slot].store;
}

/* @now_ns is for the time limit alone: udp_queue_send() reads the clock when the request leaves. */
static void start(struct udp *udp, uint32_t slot, uint64_t now_ns)
{
	struct udp_socket *socket = socket_of(udp, slot);
	int err = 0;

	udp->exchanges[slot] = (struct udp_exchange){.begin_ns = now_ns};
	if (socket)
		close_if_over(socket);
	if (!socket_of(udp, slot))
		err = open_socket(udp, slot);
	if (err == -EAGAIN) {
		report(udp, slot, &(struct engine_result){.not_yet = true});
		return;
	}
	if (err) {
		fail(udp, slot, -err);
		return;
	}
	socket = socket_of(udp, slot);
	if (udp->plan->captures)
		capture_begin(store_of(udp, slot));
	udp_queue_add(socket, slot);
	if (!socket->receiving)
		flush(socket);
}

void udp_start(void *state, uint32_t slot)
{
	start(state, slot, clock_now_ns());
}

/* Once the order is broken, replies on this socket cannot be assigned: retire it. */
static void give_up_order(struct udp_socket *socket, uint64_t now_ns)
{
	if (is_by_order(socket->udp) && !socket->retired)
		udp_socket_retire(socket, now_ns);
}

static enum framing_verdict judge(const struct udp *udp, const struct udp_exchange *exchange,
				  struct datagram reply)
{
	const struct framing_sent sent = {exchange->request.iov_base, exchange->request.iov_len};
	struct framing_state state = {0};

	return framing_feed(&udp->plan->framing, &state, sent, reply.data, reply.length);
}

static void answer(struct udp_socket *socket, struct ledger_entry *entry, struct datagram reply,
		   uint64_t now_ns)
{
	struct udp *udp = socket->udp;
	const uint32_t slot = entry->slot;
	struct udp_exchange *exchange = &udp->exchanges[slot];
	enum framing_verdict verdict =
		udp->plan->framing.kind ? judge(udp, exchange, reply) : FRAMING_COMPLETE;

	exchange->bytes_in += reply.length;
	exchange->rejected |= verdict == FRAMING_REJECTED;
	if (udp->plan->captures)
		capture_body(udp->plan->captures, store_of(udp, slot), reply.data, reply.length);
	if (verdict == FRAMING_MORE || verdict == FRAMING_MALFORMED) {
		settle(socket, exchange, LEDGER_ANSWERED);
		give_up_order(socket, now_ns);
		finish(udp, slot, RUN_ERROR_MALFORMED, now_ns);
	} else if (!--entry->left) {
		settle(socket, exchange, LEDGER_ANSWERED);
		close_if_over(socket);
		exchange->uncaptured = udp->plan->captures &&
				       !capture_end(udp->plan->captures, store_of(udp, slot));
		finish(udp, slot, RUN_NO_ERROR, now_ns);
	}
}

/* Matched by order, a surplus reply is late after a request given up, otherwise unknown. */
static enum ledger_verdict verdict_on(struct udp_socket *socket, struct ledger_entry *entry)
{
	enum ledger_verdict verdict = ledger_judge(entry);

	if (!entry)
		return LEDGER_UNKNOWN;
	if (verdict == LEDGER_DUPLICATE && is_by_order(socket->udp))
		return LEDGER_UNKNOWN;
	if (verdict == LEDGER_ANSWERS && socket->udp->exchanges[entry->slot].state != UDP_PENDING)
		return LEDGER_UNKNOWN; /* not sent yet */
	return verdict;
}

static void take(struct udp_socket *socket, struct datagram reply, uint64_t now_ns)
{
	static const enum run_datagram notes[] = {
		[LEDGER_DUPLICATE] = RUN_DATAGRAM_DUPLICATE,
		[LEDGER_LATE] = RUN_DATAGRAM_LATE,
		[LEDGER_UNKNOWN] = RUN_DATAGRAM_UNMATCHED,
	};
	struct ledger_entry *entry = NULL;
	enum ledger_verdict verdict;
	uint64_t key;

	if (match_reply_key(&socket->udp->plan->match, reply.data, reply.length, &key))
		entry = ledger_get(&socket->ledger, key);
	verdict = verdict_on(socket, entry);
	if (verdict == LEDGER_ANSWERS)
		answer(socket, entry, reply, now_ns);
	else
		note(socket->udp, notes[verdict], 1);
}

/* Send the queued requests: at once, or in on_check(), before libuv waits again. */
static void follow(struct udp_socket *socket)
{
	struct udp *udp = socket->udp;

	if (!udp->host->batched) {
		flush(socket);
	} else if (socket->queued && !socket->following) {
		socket->following = true;
		udp->following[udp->following_count++] = socket;
	}
}

/*
 * All available replies are read: send the next requests. The same system call many times in a row
 * finds its code in the cache. Reading is cheap and sending is not, so no reply waits for the
 * requests of other sockets.
 */
static void on_check(uv_check_t *check)
{
	struct udp *udp = check->data;
	const uint32_t count = udp->following_count;

	udp->following_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		udp->following[i]->following = false;
		flush(udp->following[i]);
	}
}

/* Return how many datagrams were there, of one batch. */
static uint32_t receive(struct udp_socket *socket)
{
	const uint32_t wanted = socket->under_way + 1;
	struct datagram list[DATAGRAM_BATCH];
	uint64_t now_ns;
	int count;

	count = datagram_receive(socket->udp->io, socket->fd,
				 wanted < DATAGRAM_BATCH ? wanted : DATAGRAM_BATCH, list);
	if (count < 0) {
		if (count != -EAGAIN)
			take_errors(socket);
		return 0;
	}
	now_ns = clock_now_ns();
	socket->receiving = true;
	for (int i = 0; i < count; i++)
		take(socket, list[i], now_ns);
	socket->receiving = false;
	if (socket->fd >= 0 && !socket->retired)
		follow(socket);
	return (uint32_t)count;
}

/* On an error libuv stops polling and reports EBADF, whatever the error was. */
static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct udp_socket *socket = poll->data;

	if (status) {
		take_errors(socket);
		if (socket->fd >= 0)
			uv_poll_start(poll, UV_READABLE | (socket->blocked ? UV_WRITABLE : 0),
				      on_ready);
		return;
	}
	if (events & UV_WRITABLE) {
		socket->blocked = false;
		uv_poll_start(poll, UV_READABLE, on_ready);
		flush(socket);
	}
	if (events & UV_READABLE && socket->fd >= 0)
		receive(socket);
}

static void lose_pending(struct udp_socket *socket, struct udp_exchange *exchange, uint64_t now_ns)
{
	uint32_t drops = datagram_drops(socket->fd);

	settle(socket, exchange, LEDGER_LOST);
	note(socket->udp, RUN_DATAGRAM_DROPPED, drops - socket->drops);
	socket->drops = drops;
	give_up_order(socket, now_ns);
}

/*
 * The loop's look took one batch from the socket. The next ones may have come in time, too. A server
 * that sends without end must not keep the worker here.
 */
static void receive_rest(struct udp_socket *socket)
{
	uint32_t count = 1;

	for (uint32_t left = REST_MAX; count && left && socket->fd >= 0;
	     left -= count < left ? count : left)
		count = receive(socket);
	if (socket->fd >= 0 && !socket->retired)
		flush(socket);
}

static bool is_late(const struct udp *udp, uint32_t slot, uint64_t over_ns)
{
	const struct udp_exchange *exchange = &udp->exchanges[slot];

	return exchange->state != UDP_IDLE && over_ns >= exchange->begin_ns + udp->plan->timeout_ns;
}

static void expire_slot(struct udp *udp, uint32_t slot, uint64_t now_ns)
{
	struct udp_exchange *exchange = &udp->exchanges[slot];

	if (exchange->state == UDP_PENDING)
		lose_pending(socket_of(udp, slot), exchange, now_ns);
	else
		udp_queue_remove(socket_of(udp, slot), slot);
	finish(udp, slot, RUN_ERROR_TIMEOUT, now_ns);
}

/* Expire slots of a flow, after its socket has been read once. */
static void expire_flow(struct udp *udp, uint32_t first, uint64_t over_ns)
{
	const uint32_t last = first + udp->plan->outstanding;
	const uint32_t end = last < udp->host->slots ? last : udp->host->slots;
	bool read = false;

	for (uint32_t slot = first; slot < end; slot++) {
		if (is_late(udp, slot, over_ns) && !read) {
			receive_rest(socket_of(udp, slot));
			read = true;
		}
		if (is_late(udp, slot, over_ns))
			expire_slot(udp, slot, clock_now_ns());
	}
}

void udp_expire(void *state, uint64_t over_ns)
{
	struct udp *udp = state;

	for (uint32_t slot = 0; slot < udp->host->slots; slot += udp->plan->outstanding)
		expire_flow(udp, slot, over_ns);
	for (uint32_t flow = 0; flow < udp->flows; flow++)
		if (udp->sockets[flow])
			close_if_over(udp->sockets[flow]);
	udp_socket_expire_retired(udp, clock_now_ns(), udp->plan->timeout_ns);
}

static void on_again(uv_timer_t *timer)
{
	struct udp *udp = timer->data;
	uint64_t now_ns = clock_now_ns();

	for (uint32_t slot = 0; slot < udp->host->slots; slot++) {
		struct udp_exchange *exchange = &udp->exchanges[slot];

		if (exchange->state != UDP_PENDING ||
		    now_ns - exchange->sent_ns < udp->plan->retransmit_ns)
			continue;
		exchange->sent_ns = now_ns;
		if (datagram_send(udp->io, socket_of(udp, slot)->fd, &exchange->request, 1) != 1)
			continue; /* as if lost: its time limit runs */
		exchange->bytes_out += exchange->request.iov_len;
		note(udp, RUN_DATAGRAM_RETRANSMITTED, 1);
	}
}

static void start_again_timer(struct udp *udp)
{
	uint64_t ms = udp->plan->retransmit_ns / NSEC_PER_MSEC / 10;

	uv_timer_init(udp->host->loop, &udp->again);
	udp->again.data = udp;
	if (!udp->plan->retransmit_ns)
		return;
	ms = ms < AGAIN_MIN_MS ? AGAIN_MIN_MS : ms;
	ms = ms > AGAIN_MAX_MS ? AGAIN_MAX_MS : ms;
	uv_timer_start(&udp->again, on_again, ms, ms);
}

struct udp *udp_new(const struct engine_host *host, struct udp_plan *plan)
{
	struct udp *udp = calloc(1, sizeof(*udp) + host->slots * sizeof(udp->exchanges[0]));
	const size_t numbered = plan->match.kind == MATCH_ID ? plan->message.length + 1 : 0;

	if (!udp)
		return NULL;
	udp->host = host;
	udp->plan = plan;
	udp->flows = (host->slots + plan->outstanding - 1) / plan->outstanding;
	/* Let the kernel choose ports: UDP's search for a free one stays fast. */
	source_begin(&udp->sources, 0, clock_now_ns() * 0x9e3779b97f4a7c15ULL);
	udp->io = datagram_io_new(plan->outstanding > 1);
	udp->sockets = calloc(udp->flows, sizeof(udp->sockets[0]));
	udp->following = calloc(udp->flows, sizeof(udp->following[0]));
	if (!udp->io || !udp->sockets || !udp->following ||
	    message_room_open(&udp->room, message_room_max(&plan->message, numbered),
			      host->first_client, host->slots)) {
		udp_free(udp);
		return NULL;
	}
	start_again_timer(udp);
	uv_check_init(host->loop, &udp->check);
	udp->check.data = udp;
	uv_check_start(&udp->check, on_check);
	return udp;
}

void udp_close(void *state)
{
	struct udp *udp = state;

	uv_close((uv_handle_t *)&udp->again, NULL);
	uv_close((uv_handle_t *)&udp->check, NULL);
	for (uint32_t flow = 0; flow < udp->flows; flow++)
		if (udp->sockets[flow])
			udp_socket_close(udp->sockets[flow]);
	while (udp->retired)
		udp_socket_close(udp->retired);
}

void udp_free(void *state)
{
	struct udp *udp = state;

	if (!udp)
		return;
	free(udp->io);
	free(udp->sockets);
	free(udp->following);
	message_room_close(&udp->room);
	free(udp);
}
