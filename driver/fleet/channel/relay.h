/* SPDX-License-Identifier: MIT */
/*
 * A channel over NATS: two pipes of this process, whose bytes a relay at the other end has, too.
 * NATS neither reports a lost message nor slows its sender down, so the relays number all bytes and
 * acknowledge them. A relay sends again what was not acknowledged when either end has a new
 * connection or misses bytes. A payload is a line of JSON, then the bytes.
 *
 * Subjects: sojourn.to.all (a coordinator calls), sojourn.to.AGENT.RUN, sojourn.from.RUN.AGENT.
 */
#ifndef DRIVER_FLEET_CHANNEL_RELAY_H
#define DRIVER_FLEET_CHANNEL_RELAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "nats/nats.h"
#include "sojourn/autojson.h"
#include "sojourn/secret.h"

#define RELAY_TO_ALL "sojourn.to.all"

/* Characters of an agent's name. */
#define RELAY_NAME_MAX 64U

/* "sojourn.from.", two keys of 32 characters, a dot. */
#define RELAY_SUBJECT 96

/* Bytes under way in one direction. A server gives up a client for which it holds 64 MiB. */
#define RELAY_WINDOW_MIN 16384U
#define RELAY_WINDOW_MAX (1U << 20)

struct relay;

struct relay_owner {
	void *user;
	/* Bytes were read from the pipe. NULL: not wanted. */
	void (*read)(void *user, const char *bytes, size_t length);
	/* Nothing more will be read from the pipe; all of it has been sent. */
	void (*drained)(void *user);
	/* The other end has ended, or messages were lost. The relay is over. */
	void (*ended)(void *user, const char *reason);
	/* Both pipes are closed, and its memory can be used again. NULL: not wanted. */
	void (*closed)(void *user);
};

struct relay {
	struct nats *nats; /* NULL: the connection has ended, and another is to come */
	struct relay_owner owner;
	char subject[RELAY_SUBJECT];
	uint32_t window;
	uv_pipe_t in;	      /* bytes read here are sent */
	uv_pipe_t out;	      /* received bytes are written here */
	unsigned int handles; /* that are not closed */
	unsigned int writes;  /* that have not ended */
	uint64_t sent, acknowledged;
	char *unsure; /* the bytes from @acknowledged to @sent */
	size_t unsure_size;
	unsigned int gaps;		      /* messages in a row before which bytes are missing */
	uint64_t received, written, reported; /* the other end knows of @reported */
	bool reading;			      /* there is room for more */
	bool drained;
	bool muted;
	bool over;
};

/* Prepare both pipes, which the caller then opens, for bytes to @subject. 0 or -errno. */
int relay_open(struct relay *relay, uv_loop_t *loop, struct nats *nats, const char *subject,
	       const struct relay_owner *owner);
/* Begin to carry bytes, of which at most @window may be under way. */
void relay_begin(struct relay *relay, uint32_t window);
/* Take a message of the other end. */
void relay_take(struct relay *relay, const char *payload, size_t length);
/* Use another connection, once it is open; NULL: there is none for now. */
void relay_attach(struct relay *relay, struct nats *nats);
/* The other end is gone: read the pipe on, and send no bytes. */
void relay_mute(struct relay *relay);
/* Write a line to the pipe that the other end has not sent. */
void relay_inject(struct relay *relay, const char *line);
/* Free its memory, once it is closed or if it was never opened. */
void relay_clear(struct relay *relay);
/* Tell the other end why nothing more comes, and close both pipes. */
void relay_end(struct relay *relay, const char *reason);
/* Likewise without a word: the connection has ended. */
void relay_drop(struct relay *relay);

/* ---- messages beside the bytes ---- */

/*
 * Publish @message and the @length bytes after it, and free @message. @nats, @message: NULL without
 * connection or memory. An answer comes to the subject @reply; NULL: none is wanted.
 */
void relay_publish(struct nats *nats, const char *subject, const char *reply, json_t *message,
		   const char *body, size_t length);
/* Likewise, the message alone. */
void relay_send(struct nats *nats, const char *subject, json_t *message);
/* Return how many bytes after a message the server carries; without a connection, what any does. */
size_t relay_piece(const struct nats *nats);
/* The subject of messages to an agent about a run. */
void relay_address(const char *agent, const char *run, char ret_subject[static RELAY_SUBJECT]);
/* Return the JSON line of a payload; NULL: there is none. *@ret_body is what follows it. */
json_t *relay_parse(const char *payload, size_t length, const char **ret_body, size_t *ret_length);
/* Return whether @text is the key of an agent or run: as secret_make() makes them. */
bool relay_is_key(const char *text);
/* Return whether @text may name an agent: like a host's name. Takes NULL. */
bool relay_is_name(const char *text);
/* Choose the name of @agent: @given, or the host's. */
void relay_own_name(const char *given, const char *agent, char ret_name[static RELAY_NAME_MAX + 1]);

#endif
