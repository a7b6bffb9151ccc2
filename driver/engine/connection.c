// SPDX-License-Identifier: MIT
/*
 * A slot's requests, one after the other on a link of its own. Neighbours: transport/link.c (bytes
 * to and from the server), http/http.c, stream/stream.c.
 */
#include "connection.h"

#include <errno.h>
#include <stdlib.h>

#include "payload/detail.h"
#include "payload/request.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/units.h"
#include "target.h"
#include "transport/speech.h"

static void connection_start(struct connection *connection);

static struct connection *of(struct link *link)
{
	return (struct connection *)link; /* its first member */
}

static struct connections *all_of(const struct connection *connection)
{
	return (struct connections *)connection->link.all; /* likewise */
}

static struct connection *slot_of(struct connections *all, uint32_t slot)
{
	return (struct connection *)(all->slots + slot * all->protocol->size);
}

static void on_closed(struct link *link)
{
	struct connection *connection = of(link);

	connection->state = CONNECTION_CLOSED;
	if (!connection->wanted)
		return;
	connection->wanted = false;
	connection_start(connection);
}

static void connection_close(struct connection *connection)
{
	if (connection->link.state == LINK_CLOSED) {
		connection->state = CONNECTION_CLOSED;
		return;
	}
	connection->state = CONNECTION_CLOSING;
	link_close(&connection->link);
}

void connection_tell_begin(const struct connection *connection, char *text, size_t size)
{
	if (connection->result.bytes_in != connection->piece.length)
		return;
	detail_add(text, size, "; it begins ");
	detail_add_bytes(text, size, connection->piece.data, connection->piece.length);
}

const char *connection_other_scheme(const struct connection *connection)
{
	static const char *const schemes[] = {
		[SPEECH_HTTP1] = NULL, [SPEECH_HTTP2] = "h2c", [SPEECH_TLS] = "https"};

	if (connection->link.tls || connection->result.bytes_in != connection->piece.length)
		return NULL;
	return schemes[speech_of(connection->piece.data, connection->piece.length)];
}

/* Shorter than any server keeps an idle connection. */
#define IDLE_LEAST_NS (100 * NSEC_PER_MSEC)

/* Return whether the server may have closed an idle connection while the request was on its way. */
static bool is_idle_race(const struct connection *connection, enum run_error error)
{
	return (error == RUN_ERROR_RESET || error == RUN_ERROR_CLOSED_EARLY) &&
	       !connection->result.bytes_in && connection->idle_ns >= IDLE_LEAST_NS;
}

/* Describe an error: the protocol words it, or else how far the request came. */
static void tell_of(struct connection *connection, enum run_error error, char *text, size_t size)
{
	const struct connection_protocol *protocol = all_of(connection)->protocol;

	if (error == RUN_ERROR_MALFORMED || error == RUN_ERROR_STATUS ||
	    error == RUN_ERROR_UNEXPECTED) {
		if (protocol->tell)
			protocol->tell(connection, error, text, size);
		return;
	}
	if (!connection->result.start_ns)
		return; /* it never left */
	if (connection->result.code)
		detail_add(text, size, ", ");
	detail_add_received(text, size, connection->result.bytes_in);
	if (is_idle_race(connection, error))
		detail_add(text, size,
			   "; the connection had been idle for %s: the server's keep-alive time "
			   "may be shorter",
			   as_time((double)connection->idle_ns));
}

static void tell(const struct engine_result *result, char *text, size_t size)
{
	struct connection *connection =
		(struct connection *)((char *)result - offsetof(struct connection, result));

	engine_tell_step(all_of(connection)->host, connection->slot, text, size);
	engine_tell_result(result, text, size);
	if (!result->detail)
		tell_of(connection, engine_failure(result), text, size);
}

static bool is_over(const struct connection *connection)
{
	return policy_is_over(&connection->link.all->plan->policy, connection->served,
			      connection->opened_ns);
}

/* Report the result of the slot's start(). Return true if its next request follows. */
static bool connection_report(struct connection *connection, enum run_error error, uint64_t end_ns)
{
	const struct engine_host *host = all_of(connection)->host;
	const size_t unsent = link_unsent(&connection->link);

	connection->result.end_ns = end_ns;
	/* The server may answer or close before it has read the whole request. */
	if (unsent <= connection->result.bytes_out)
		connection->result.bytes_out -= unsent;
	connection->result.error = error;
	connection->result.detail = error == RUN_NO_ERROR ? NULL : connection->link.detail;
	connection->result.code = error == RUN_NO_ERROR ? 0 : connection->link.code;
	connection->result.tell = tell;
	connection->result.connect_failed = connection->state != CONNECTION_BUSY;
	if (error == RUN_NO_ERROR && connection->keep_alive && !connection->link.writing &&
	    !is_over(connection))
		connection->state = CONNECTION_IDLE;
	else
		connection_close(connection);
	return host->done(host, connection->slot, &connection->result) == ENGINE_AGAIN;
}

static void connection_finish(struct connection *connection, enum run_error error)
{
	if (connection_report(connection, error, clock_now_ns()))
		connection_start(connection);
}

/* Start the slot's next request: at once, or in on_check(), before libuv waits again. */
static void connection_follow(struct connection *connection)
{
	struct connections *all = all_of(connection);

	if (all->host->batched)
		all->following[all->following_count++] = connection->slot;
	else
		connection_start(connection);
}

/*
 * All available responses are read: send the next requests together. Reading is cheap and writing
 * is not, so no response waits for the requests of other slots.
 */
static void on_check(uv_check_t *check)
{
	struct connections *all = check->data;

	for (uint32_t i = 0; i < all->following_count; i++)
		connection_start(slot_of(all, all->following[i]));
	all->following_count = 0;
}

static void connection_send(struct connection *connection)
{
	int err;

	connection->keep_alive = false;
	all_of(connection)->protocol->begin(connection);
	connection->state = CONNECTION_BUSY;
	connection->begin_ns = clock_now_ns();
	connection->idle_ns =
		connection->served ? connection->begin_ns - connection->result.end_ns : 0;
	connection->result = (struct engine_result){
		.start_ns = connection->begin_ns,
		.bytes_out = connection->request.len,
		.flow = connection->has_flow ? &connection->flow : NULL,
		.flow_hash = connection->flow_hash,
		.index = (uint32_t)connection->served++,
	};
	err = link_send(&connection->link, connection->request.base, connection->request.len);
	if (!err)
		return;
	connection->result.bytes_out = 0;
	connection_finish(connection, link_transfer_failure(&connection->link, err));
}

static void on_received(struct link *link, const char *data, size_t length)
{
	struct connection *connection = of(link);
	uint64_t now_ns = clock_now_ns();
	enum connection_verdict verdict;

	if (connection->state != CONNECTION_BUSY) {
		connection_close(connection); /* nobody asked for these bytes */
		return;
	}
	if (!connection->result.bytes_in)
		connection->result.first_ns = now_ns;
	connection->result.bytes_in += length;
	connection->piece = (struct connection_piece){data, length};
	verdict = all_of(connection)->protocol->receive(connection, data, length);
	if (verdict != CONNECTION_MORE &&
	    connection_report(connection,
			      verdict == CONNECTION_COMPLETE ? RUN_NO_ERROR : RUN_ERROR_MALFORMED,
			      now_ns))
		connection_follow(connection);
}

static void on_ended(struct link *link, enum run_error error)
{
	struct connection *connection = of(link);

	if (connection->state != CONNECTION_BUSY)
		connection_close(connection);
	else if (error != RUN_NO_ERROR)
		connection_finish(connection, error);
	else if (all_of(connection)->protocol->end(connection) == CONNECTION_COMPLETE)
		connection_finish(connection, RUN_NO_ERROR);
	else
		connection_finish(connection, RUN_ERROR_CLOSED_EARLY);
}

static void on_opened(struct link *link)
{
	struct connection *connection = of(link);
	const struct engine_host *host = all_of(connection)->host;

	connection->opened_ns = link->begin_ns + link->connect_ns + link->tls_ns;
	connection->served = 0;
	host->connected(host->user, connection->slot, link->connect_ns);
	if (link->tls)
		host->secured(host->user, link->tls_ns);
	connection->has_flow = link_flow(link, &connection->flow, &connection->flow_hash);
	connection_send(connection);
}

static void on_failed(struct link *link, enum run_error error)
{
	struct connection *connection = of(link);

	if (connection->state == CONNECTION_CONNECTING)
		connection_finish(connection, error);
}

static const struct link_events events = {
	.opened = on_opened,
	.failed = on_failed,
	.received = on_received,

	.ended = on_ended,
	.closed = on_closed,
};

static void connection_open(struct connection *connection)
{
	int err;

	connection->state = CONNECTION_CONNECTING;
	err = link_open(&connection->link);
	if (err == -EAGAIN)
		connection->state = CONNECTION_BLOCKED;
	else if (err)
		connection_finish(connection, link_connect_failure(&connection->link, err));
}

static void connection_connect(struct connection *connection)
{
	const struct engine_host *host = all_of(connection)->host;

	connection->result = (struct engine_result){0};
	connection->begin_ns = clock_now_ns();
	if (host->may_connect(host->user)) {
		connection_open(connection);
		return;
	}
	connection->result.not_yet = true;
	host->done(host, connection->slot, &connection->result);
}

static void connection_start(struct connection *connection)
{
	if (connection->state == CONNECTION_IDLE && is_over(connection))
		connection_close(connection);
	if (connection->state == CONNECTION_IDLE)
		connection_send(connection);
	else if (connection->state != CONNECTION_CLOSED)
		connection->wanted = true;
	else
		connection_connect(connection);
}

static enum run_error timeout_of(const struct connection *connection)
{
	if (connection->state == CONNECTION_BUSY)
		return RUN_ERROR_TIMEOUT;
	return connection->link.state == LINK_SECURING ? RUN_ERROR_TLS_TIMEOUT
						       : RUN_ERROR_CONNECT_TIMEOUT;
}

static void connection_expire(struct connection *connection, uint64_t over_ns, uint64_t timeout_ns)
{
	if (connection->state == CONNECTION_IDLE && is_over(connection))
		connection_close(connection);
	if (connection->state != CONNECTION_CONNECTING && connection->state != CONNECTION_BUSY &&
	    connection->state != CONNECTION_BLOCKED)
		return;
	if (over_ns >= connection->begin_ns + timeout_ns)
		connection_finish(connection, timeout_of(connection));
	else if (connection->state == CONNECTION_BLOCKED)
		connection_open(connection);
}

void connections_start(void *state, uint32_t slot)
{
	connection_start(slot_of(state, slot));
}

void connections_retire(void *state, uint32_t slot)
{
	struct connection *connection = slot_of(state, slot);

	if (connection->state == CONNECTION_IDLE)
		connection_close(connection);
}

void connections_expire(void *state, uint64_t over_ns)
{
	struct connections *all = state;

	for (uint32_t i = 0; i < all->host->slots; i++)
		connection_expire(slot_of(all, i), over_ns, all->links.plan->timeout_ns);
}

void connections_close(void *state)
{
	struct connections *all = state;

	all->following_count = 0;
	uv_close((uv_handle_t *)&all->check, NULL);
	for (uint32_t i = 0; i < all->host->slots; i++) {
		slot_of(all, i)->wanted = false;
		connection_close(slot_of(all, i));
	}
}

void connection_begin(struct connection *connection)
{
	struct connections *all = all_of(connection);
	const struct engine_client *clients = all->host->clients;
	uint32_t index = clients ? clients[connection->slot].kind : 0;
	struct connection_kind *kind = all->shared->kinds[index];
	size_t length;

	connection->kind = kind;
	connection->memo = all->memos + index * all->protocol->memo_size;
	connection->request.base =
		message_next(&kind->message, &all->room, connection->slot,
			     engine_values(all->host, connection->slot), &length);
	connection->request.len = length;
}

static int open_all(struct connections *all)
{
	const struct connections_shared *shared = all->shared;
	const struct engine_host *host = all->host;
	size_t size = 0;

	for (uint32_t i = 0; i < shared->kind_count; i++)
		size = message_room_max(&shared->kinds[i]->message, size);
	all->memos = calloc(shared->kind_count + 1, all->protocol->memo_size + 1);
	all->following = calloc(host->slots, sizeof(*all->following));
	if (!all->memos || !all->following ||
	    message_room_open(&all->room, size, host->first_client, host->slots))
		return -ENOMEM;
	return links_init(&all->links, host->loop, &shared->plan, &events);
}

int connections_open(const struct engine_host *host, const struct connections_shared *shared,
		     const struct connection_protocol *protocol, void **ret_state)
{
	struct connections *all = calloc(1, sizeof(*all) + host->slots * protocol->size);
	int err;

	if (!all)
		return -ENOMEM;
	all->host = host;
	all->shared = shared;
	all->protocol = protocol;
	err = open_all(all);
	if (err) {
		connections_free(all);
		return err;
	}
	links_divide(&all->links, host->first_slot, host->slots, host->all_slots);
	uv_check_init(host->loop, &all->check);
	all->check.data = all;
	uv_check_start(&all->check, on_check);
	for (uint32_t i = 0; i < host->slots; i++) {
		slot_of(all, i)->link.all = &all->links;
		slot_of(all, i)->slot = i;
	}
	*ret_state = all;
	return 0;
}

void connections_free(void *state)
{
	struct connections *all = state;

	if (!all)
		return;
	links_clear(&all->links);
	message_room_close(&all->room);
	free(all->memos);
	free(all->following);
	free(all);
}

/* ---- shared by all workers ---- */

struct connection_kind *connections_add(struct connections_shared *shared,
					const struct request *request)
{
	struct connection_kind *kind = calloc(1, sizeof(*kind));

	if (!kind || ARRAY_GROW(shared->kinds, shared->kind_count)) {
		free(kind);
		return NULL;
	}
	kind->request = request;
	kind->captures = request->captures && request->captures->count ? request->captures : NULL;
	shared->kinds[shared->kind_count++] = kind;
	return kind;
}

int connections_prepare(const struct request *request, const struct link_settings *link,
			const struct target *target, const char *protocol,
			int (*add)(void *shared, const struct request *request,
				   const struct target *target, char **ret_error),
			void **ret_shared, char **ret_error)
{
	struct connections_shared *shared = calloc(1, sizeof(*shared));
	int err;

	if (!shared)
		return -ENOMEM;
	err = link_plan_fill(link, &target->address, target->host, protocol, &shared->plan,
			     ret_error);
	if (!err)
		err = add(shared, request, target, ret_error);
	if (err)
		connections_release(shared);
	else
		*ret_shared = shared;
	return err;
}

void connections_release(void *state)
{
	struct connections_shared *shared = state;

	if (!shared)
		return;
	link_plan_clear(&shared->plan);
	for (uint32_t i = 0; i < shared->kind_count; i++) {
		message_clear(&shared->kinds[i]->message);
		free(shared->kinds[i]);
	}
	free(shared->kinds);
	free(shared);
}
