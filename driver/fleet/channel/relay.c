// SPDX-License-Identifier: MIT
/* Bytes of pipes over NATS, and the messages beside them; see relay.h. */
#include "relay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "sojourn/cleanup.h"

#define HEAD_MAX   2048U /* of a payload, which the reason of an end may fill */
#define HEX	   "0123456789abcdef"
#define NAME_SIGNS HEX "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-"
#define PIECE_MAX  ((size_t)256 << 10)

/* The two ends send each other six messages a second at least. */
#define GAPS_PER_QUESTION 8U

/* ---- messages ---- */

void relay_publish(struct nats *nats, const char *subject, const char *reply, json_t *message,
		   const char *body, size_t length)
{
	autofree char *line = channel_line(message);

	/* Ignore failures: the end of the connection is reported, and what is not acknowledged is sent again. */
	if (line && nats)
		(void)nats_ask(nats, subject, reply, line, body, length);
}

void relay_send(struct nats *nats, const char *subject, json_t *message)
{
	relay_publish(nats, subject, NULL, message, NULL, 0);
}

size_t relay_piece(const struct nats *nats)
{
	size_t most = (nats ? nats_payload_max(nats) : NATS_PAYLOAD_LEAST) - HEAD_MAX;

	return most < PIECE_MAX ? most : PIECE_MAX;
}

void relay_address(const char *agent, const char *run, char ret_subject[static RELAY_SUBJECT])
{
	snprintf(ret_subject, RELAY_SUBJECT, "sojourn.to.%s.%s", agent, run);
}

json_t *relay_parse(const char *payload, size_t length, const char **ret_body, size_t *ret_length)
{
	const char *end = length ? memchr(payload, '\n', length) : NULL;
	json_t *head;

	if (!end)
		return NULL;
	head = json_loadb(payload, (size_t)(end - payload), JSON_REJECT_DUPLICATES, NULL);
	*ret_body = end + 1;
	*ret_length = length - (size_t)(end + 1 - payload);
	return head;
}

bool relay_is_key(const char *text)
{
	return text && strlen(text) == SECRET_LENGTH && strspn(text, HEX) == SECRET_LENGTH;
}

bool relay_is_name(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return length && length <= RELAY_NAME_MAX && strspn(text, NAME_SIGNS) == length;
}

void relay_own_name(const char *given, const char *agent, char ret_name[static RELAY_NAME_MAX + 1])
{
	*ret_name = '\0';
	if (given)
		snprintf(ret_name, RELAY_NAME_MAX + 1, "%s", given);
	else
		(void)gethostname(ret_name, RELAY_NAME_MAX);
	ret_name[RELAY_NAME_MAX] = '\0';
	if (!relay_is_name(ret_name))
		snprintf(ret_name, RELAY_NAME_MAX + 1, "agent-%.8s", agent);
}

/* ---- the pipes ---- */

static void on_closed(uv_handle_t *handle)
{
	struct relay *relay = handle->data;

	if (!--relay->handles && relay->owner.closed)
		relay->owner.closed(relay->owner.user);
}

static void close_pipe(uv_pipe_t *pipe)
{
	if (!uv_is_closing((uv_handle_t *)pipe))
		uv_close((uv_handle_t *)pipe, on_closed);
}

/* The reader is to have all bytes before the end. */
static void close_written(struct relay *relay)
{
	if (relay->over && !relay->writes)
		close_pipe(&relay->out);
}

void relay_drop(struct relay *relay)
{
	if (relay->over)
		return;
	relay->over = true;
	close_pipe(&relay->in);
	close_written(relay);
}

/* Without a connection the bytes stay unsure, and are sent again over the next one. */
static void post(struct relay *relay, json_t *message, const char *bytes, size_t length)
{
	relay_publish(relay->nats, relay->subject, NULL, message, bytes, length);
	relay->reported = relay->written;
}

static int remember(struct relay *relay, const char *bytes, size_t length)
{
	size_t unsure = (size_t)(relay->sent - relay->acknowledged);

	if (unsure + length > relay->unsure_size) {
		char *grown = realloc(relay->unsure, 2 * (unsure + length));

		if (!grown)
			return -ENOMEM;
		relay->unsure = grown;
		relay->unsure_size = 2 * (unsure + length);
	}
	memcpy(relay->unsure + unsure, bytes, length);
	relay->sent += length;
	return 0;
}

static int send_bytes(struct relay *relay, const char *bytes, size_t length, const char *end)
{
	uint64_t at = relay->sent;
	int err = length ? remember(relay, bytes, length) : 0;

	if (err)
		return err;
	post(relay,
	     json_pack("{s:I, s:I, s:s*}", "at", (json_int_t)at, "ack", (json_int_t)relay->written,
		       "end", end),
	     bytes, length);
	return 0;
}

/* Send every unsure byte. @ask: the other end is to do the same. */
static void send_again(struct relay *relay, bool ask)
{
	size_t unsure = (size_t)(relay->sent - relay->acknowledged), at = 0;
	size_t most = relay_piece(relay->nats);

	do {
		size_t length = unsure - at < most ? unsure - at : most;
		post(relay,
		     json_pack("{s:I, s:I, s:b}", "at",
			       (json_int_t)relay->acknowledged + (json_int_t)at, "ack",
			       (json_int_t)relay->written, "again", ask && !at),
		     relay->unsure + at, length);
		at += length;
	} while (at < unsure);
}

void relay_end(struct relay *relay, const char *reason)
{
	if (relay->over)
		return;
	(void)send_bytes(relay, NULL, 0, reason);
	relay_drop(relay);
}

/* ---- sending ---- */

static void end_by(struct relay *relay, const char *reason)
{
	relay_drop(relay);
	relay->owner.ended(relay->owner.user, reason);
}

static void fail(struct relay *relay, const char *reason)
{
	(void)send_bytes(relay, NULL, 0, reason);
	end_by(relay, reason);
}

static size_t room(const struct relay *relay)
{
	size_t free_bytes = relay->window - (size_t)(relay->sent - relay->acknowledged);
	size_t most = relay_piece(relay->nats);

	if (relay->muted)
		return PIECE_MAX;
	if (!relay->nats)
		return 0;
	return free_bytes < most ? free_bytes : most;
}

static void on_allocate(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	size_t length = room(handle->data);

	(void)size;
	buffer->base = length ? malloc(length) : NULL;
	buffer->len = buffer->base ? length : 0;
}

static void read_if_room(struct relay *relay);

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct relay *relay = stream->data;
	int err = 0;

	if (length > 0 && relay->owner.read)
		relay->owner.read(relay->owner.user, buffer->base, (size_t)length);
	if (length > 0 && !relay->muted)
		err = send_bytes(relay, buffer->base, (size_t)length, NULL);
	free(buffer->base);
	if (err) {
		fail(relay, "no memory");
	} else if (length < 0) {
		uv_read_stop(stream);
		relay->drained = true;
		relay->owner.drained(relay->owner.user);
	} else {
		read_if_room(relay);
	}
}

/* A reader that waits lets the pipe fill, so its writer waits, too. */
static void read_if_room(struct relay *relay)
{
	bool wanted = room(relay) > 0;

	if (relay->drained || relay->over)
		return;
	if (wanted && !relay->reading)
		uv_read_start((uv_stream_t *)&relay->in, on_allocate, on_read);
	else if (!wanted && relay->reading)
		uv_read_stop((uv_stream_t *)&relay->in);
	relay->reading = wanted;
}

/* ---- receiving ---- */

struct writing {
	uv_write_t request;
	struct relay *relay;
	size_t counted; /* bytes of the other end */
	char bytes[];
};

/* Acknowledge bytes that were written: a reader that does not keep up slows its sender down. */
static void on_written(uv_write_t *request, int status)
{
	struct writing *writing = (struct writing *)request;
	struct relay *relay = writing->relay;

	relay->writes--;
	relay->written += writing->counted;
	free(writing);
	if (!status && !relay->over && relay->written - relay->reported >= relay->window / 4)
		(void)send_bytes(relay, NULL, 0, NULL);
	close_written(relay);
}

static void write_out(struct relay *relay, const char *bytes, size_t length, size_t counted)
{
	struct writing *writing = malloc(sizeof(*writing) + length);
	uv_buf_t buffer;

	if (!writing)
		return; /* they are never acknowledged, and the run ends by silence */
	writing->relay = relay;
	writing->counted = counted;
	memcpy(writing->bytes, bytes, length);
	buffer = uv_buf_init(writing->bytes, (unsigned int)length);
	if (uv_write(&writing->request, (uv_stream_t *)&relay->out, &buffer, 1, on_written))
		free(writing);
	else
		relay->writes++;
}

static void take_acknowledgement(struct relay *relay, uint64_t acknowledged)
{
	size_t left = (size_t)(relay->sent - acknowledged);

	if (acknowledged <= relay->acknowledged)
		return; /* an old message */
	if (left)
		memmove(relay->unsure, relay->unsure + (acknowledged - relay->acknowledged), left);
	relay->acknowledged = acknowledged;
}

/* Bytes that were received before are skipped. */
static void take_bytes(struct relay *relay, uint64_t at, const char *bytes, size_t length)
{
	size_t known = (size_t)(relay->received - at);

	relay->gaps = 0;
	if (known >= length)
		return;
	relay->received += length - known;
	write_out(relay, bytes + known, length - known, length - known);
}

/* The sender counts its window from what was written here, so an honest one never has more under way. */
static bool exceeds_window(const struct relay *relay, uint64_t at, size_t length)
{
	uint64_t end = at + length;

	return end > relay->received && end - relay->written > relay->window;
}

void relay_take(struct relay *relay, const char *payload, size_t length)
{
	const char *body = NULL, *end;
	size_t body_length = 0;
	autojson json_t *head = relay_parse(payload, length, &body, &body_length);
	json_int_t at = json_integer_value(json_object_get(head, "at"));
	json_int_t acknowledged = json_integer_value(json_object_get(head, "ack"));

	if (relay->over)
		return;
	if (!head || acknowledged < 0 || acknowledged > (json_int_t)relay->sent || at < 0 ||
	    body_length > RELAY_WINDOW_MAX) {
		fail(relay, "a message was not valid");
		return;
	}
	take_acknowledgement(relay, (uint64_t)acknowledged);
	/* Ask for what is missing, and seldom again: all that is under way follows the gap, too. */
	if (at > (json_int_t)relay->received) {
		if (relay->gaps++ % GAPS_PER_QUESTION == 0)
			send_again(relay, true);
		return;
	}
	if (exceeds_window(relay, (uint64_t)at, body_length)) {
		fail(relay, "it sends more than it may");
		return;
	}
	take_bytes(relay, (uint64_t)at, body, body_length);
	if (json_is_true(json_object_get(head, "again")))
		send_again(relay, false);
	end = json_string_value(json_object_get(head, "end"));
	if (end)
		end_by(relay, end);
	else
		read_if_room(relay);
}

void relay_attach(struct relay *relay, struct nats *nats)
{
	relay->nats = nats;
	if (relay->over || relay->muted)
		return;
	if (nats)
		send_again(relay, true);
	read_if_room(relay);
}

void relay_mute(struct relay *relay)
{
	if (relay->over || relay->muted)
		return;
	relay->muted = true;
	read_if_room(relay);
}

void relay_inject(struct relay *relay, const char *line)
{
	if (!relay->over)
		write_out(relay, line, strlen(line), 0);
}

/* ---- opened ---- */

int relay_open(struct relay *relay, uv_loop_t *loop, struct nats *nats, const char *subject,
	       const struct relay_owner *owner)
{
	uv_pipe_t *pipes[] = {&relay->in, &relay->out};
	int err = 0;

	*relay = (struct relay){.nats = nats, .owner = *owner};
	snprintf(relay->subject, sizeof(relay->subject), "%s", subject);
	for (size_t i = 0; i < ARRAY_SIZE(pipes) && !err; i++) {
		err = uv_pipe_init(loop, pipes[i], 0);
		pipes[i]->data = relay;
		relay->handles += !err;
	}
	return err;
}

void relay_begin(struct relay *relay, uint32_t window)
{
	relay->window = window;
	read_if_room(relay);
}

void relay_clear(struct relay *relay)
{
	free(TAKE_PTR(relay->unsure));
	relay->unsure_size = 0;
}
