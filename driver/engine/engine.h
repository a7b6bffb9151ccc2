/* SPDX-License-Identifier: MIT */
/*
 * What speaks a protocol. A worker decides when a request starts and what becomes of its result; an
 * engine carries requests out on the worker's loop and knows nothing of rates, phases or statistics.
 * A new engine is one folder and one row in driver/engines.c.
 *
 * A worker has @slots slots, each with at most one request under way. engine->start() begins one; the
 * engine answers each start with exactly one host->done(). Its verdict ENGINE_AGAIN means that the
 * slot's next request starts without a call of start(): at once, or as host->batched says.
 */
#ifndef DRIVER_ENGINE_ENGINE_H
#define DRIVER_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "payload/capture.h"
#include "payload/expectation.h"
#include "sojourn/run.h"
#include "wire/flow.h"

struct link_settings;
struct request;
struct target;

struct engine_result {
	enum run_error error; /* RUN_NO_ERROR: a complete response */
	/* may_connect() said no, nothing else is set: the worker will start the request later. */
	bool not_yet;
	bool connect_failed;  /* there was no connection to send on */
	uint16_t status;      /* of a complete response; 0 where the protocol has none */
	enum verdict verdict; /* likewise */
	uint64_t start_ns;    /* request handed to the kernel; 0 if it never was */
	uint64_t first_ns;    /* first byte of the response read; 0: none was, or not known */
	uint64_t end_ns;      /* last byte of the response read, or the failure noticed */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint32_t streams;   /* that the server allows on the connection; 0: not known */
	uint8_t grpc;	    /* status of gRPC, plus 1; 0: there is none */
	const char *detail; /* of a failure, for people, a constant; NULL: none */
	int code;	    /* of libuv's, of the call that failed; 0: none did */
	/* Appends all that is known of the failure to @text; NULL: the two above. During done() only. */
	void (*tell)(const struct engine_result *result, char *text, size_t size);
	/* Where samples are wanted and the engine can tell (else NULL); valid during done() only. */
	const struct flow *flow;
	uint32_t flow_hash;
	uint32_t index; /* of the request on its connection, from 0 */
	uint32_t step;	/* of a scenario, which sets it; else 0 */
};

enum engine_next {
	ENGINE_REST,  /* the slot stays idle until start() */
	ENGINE_AGAIN, /* start the slot's next request now */
};

/* What failed, complete or not; RUN_NO_ERROR: nothing did. */
static inline enum run_error engine_failure(const struct engine_result *result)
{
	if (result->error != RUN_NO_ERROR)
		return result->error;
	if (result->verdict == VERDICT_UNEXPECTED)
		return RUN_ERROR_UNEXPECTED;
	if (result->verdict == VERDICT_BAD_STATUS ||
	    (result->verdict == VERDICT_BY_STATUS && result->status >= 400))
		return RUN_ERROR_STATUS;
	return RUN_NO_ERROR;
}

/* What a scenario says of a slot. */
struct engine_client {
	uint32_t kind;		    /* of request that comes next: see add() */
	struct capture_store store; /* its variables */
	const char *noun, *name;    /* "step", and which one it is at; NULL: not known */
};

struct engine_host {
	uv_loop_t *loop;
	uint32_t slots;
	struct engine_client *clients; /* by slot; NULL: all requests are of kind 0 */
	uint32_t first_slot;   /* how many slots the workers before this one have, and all: */
	uint32_t all_slots;    /* what is divided between them can be divided without collision */
	uint32_t first_client; /* as first_slot, but of the workers of all drivers of the run */
	/* A request that follows a response may wait until the others that are there are read. */
	bool batched;
	void *user; /* of the calls below */
	/* Must be asked before each connection: false under a limit of connections per second. */
	bool (*may_connect)(void *user);
	/* TCP is established, and TLS, where there is any, too: secured() follows then. */
	void (*connected)(void *user, uint32_t slot, uint64_t connect_ns);
	void (*secured)(void *user, uint64_t tls_ns);
	enum engine_next (*done)(const struct engine_host *host, uint32_t slot,
				 struct engine_result *result);
	/* Datagrams that are no one's result. */
	void (*note)(void *user, enum run_datagram what, uint64_t count);
};

/* What an engine can, or is. */
enum engine_bit {
	ENGINE_ADDRESSED = 1 << 0, /* the URL names a host and port */
	ENGINE_LOCAL = 1 << 1,	   /* SCHEME:PATH names a socket of the file system */
	ENGINE_TLS = 1 << 2,	   /* the options of TLS make sense */
	ENGINE_HTTP2 = 1 << 3,	   /* several requests at a time on a connection, gRPC */
	ENGINE_PLAIN = 1 << 4,	   /* a request is --payload: no method, headers or status */
	ENGINE_CAPTURES = 1 << 5,  /* scenarios: values can be taken from its responses */
	ENGINE_DATAGRAMS = 1 << 6, /* no connections: sockets, each with --outstanding slots */
};

/* The values of a slot's variables; NULL: it has none. */
static inline const struct template_value *engine_values(const struct engine_host *host,
							 uint32_t slot)
{
	return host->clients ? host->clients[slot].store.values : NULL;
}

struct engine {
	const char *scheme;
	const char *form;      /* how its URLs look, for people; NULL: not offered to users */
	unsigned int bits;     /* enum engine_bit */
	uint16_t default_port; /* 0: there is none */
	const char *unsampled; /* why its results do not name their flow and index, for people */
	/* Where they do: why not with these requests. NULL, and an answer of NULL: they do. */
	const char *(*unsampled_with)(const struct request *request);

	/* Whether the settings make sense here: 0, or -EINVAL with a sentence. NULL: they do. */
	int (*check)(const struct request *request, const struct link_settings *link,
		     const struct target *target, char **ret_error);

	/*
	 * Makes what all workers share, before any load; @request and @link stay. -EINVAL with a reason for people in
	 * @ret_error (freed by the caller), or another -errno. release() takes NULL.
	 */
	int (*prepare)(const struct request *request, const struct link_settings *link,
		       const struct target *target, void **ret_shared, char **ret_error);
	void (*release)(void *shared);

	/*
	 * Scenarios: adds a kind of request to @shared, with what it expects and captures; the n-th
	 * call adds kind n, towards the same server as prepare()'s kind 0. Errors as there. NULL:
	 * there is one kind.
	 */
	int (*add)(void *shared, const struct request *request, const struct target *target,
		   char **ret_error);

	/* One worker's state on its loop; no I/O yet. -errno. */
	int (*open)(const struct engine_host *host, const void *shared, void **ret_state);
	void (*start)(void *state, uint32_t slot);
	/* An idle slot will send nothing for some time: its connection may go. NULL: it stays. */
	void (*retire)(void *state, uint32_t slot);
	/* Called every few milliseconds: fails what has outlived its time limit. */
	void (*expire)(void *state, uint64_t now_ns);
	/* Begins to close every handle; nothing is reported any more. */
	void (*close)(void *state);
	/* Frees @state, once the loop has run out; takes NULL. */
	void (*free)(void *state);
};

/* Those that there are, each in a file of its name; driver/engines.c has the table. */
extern const struct engine engine_http, engine_https, engine_h2, engine_h2c;
extern const struct engine engine_tcp, engine_udp, engine_unix, engine_null;

static inline bool engine_has(const struct engine *engine, enum engine_bit bit)
{
	return engine->bits & bit;
}

/* Of @engines, up to a NULL (driver/engines.h), the one that speaks @scheme; NULL: none does. */
const struct engine *engine_find(const struct engine *const *engines, const char *scheme);

#define ENGINE_FORMS_SIZE 512

/* Lists the URL forms that users may write into @buffer, and returns it. */
char *engine_forms(const struct engine *const *engines, char *buffer, size_t size);

/* Why its results are not sampled with these requests, for people. NULL: they are. */
const char *engine_unsampled(const struct engine *engine, const struct request *request);

/* Appends "step a: ", where @slot is a client of a scenario that has a name for what it does. */
void engine_tell_step(const struct engine_host *host, uint32_t slot, char *text, size_t size);

/* Appends all that is known of @result without asking its engine: its code, or its constant. */
void engine_tell_result(const struct engine_result *result, char *text, size_t size);

#endif
