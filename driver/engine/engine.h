/* SPDX-License-Identifier: MIT */
/*
 * The interface of protocols. A worker decides when a request starts and judges its result. An
 * engine carries requests out on the worker's loop; it knows no rates, phases or statistics. A new
 * engine is one folder and one row in driver/engines.c.
 *
 * A worker has @slots slots, each with at most one request in flight. engine->start() starts one;
 * the engine answers each start with exactly one host->done(). If that returns ENGINE_AGAIN, the
 * slot's next request starts without start(): at once, or as host->batched says.
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
	/* may_connect() refused: nothing else is set, and the worker starts the request later. */
	bool not_yet;
	bool connect_failed;  /* the request had no connection */
	uint16_t status;      /* of a complete response; 0: the protocol has none */
	enum verdict verdict; /* of a complete response */
	uint64_t start_ns;    /* request handed to the kernel; 0: never */
	uint64_t first_ns;    /* first byte of the response read; 0: none, or not known */
	uint64_t end_ns;      /* last byte of the response read, or failure noticed */
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint32_t streams; /* allowed by the server per connection; 0: not known */
	uint8_t grpc;	  /* status of gRPC, plus 1; 0: none */
	uint32_t messages_sent, messages_received; /* of gRPC, whole ones */
	const char *detail; /* of a failure, for people; a constant, or NULL */
	int code;	    /* libuv's error code of the call that failed; 0: none did */
	/*
	 * Append everything known about the failure; NULL: only the two above. During done() only.
	 */
	void (*tell)(const struct engine_result *result, char *text, size_t size);
	/* NULL: no samples wanted, or flow not known. Valid during done() only. */
	const struct flow *flow;
	uint32_t flow_hash;
	uint32_t index; /* of the request on its connection, from 0 */
	uint32_t step;	/* set by scenarios, else 0 */
};

enum engine_next {
	ENGINE_REST,  /* the slot stays idle until start() */
	ENGINE_AGAIN, /* start the slot's next request now */
};

/* Return the failure of a complete or incomplete response; RUN_NO_ERROR: none. */
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

/* A slot's state in a scenario. */
struct engine_client {
	uint32_t kind;		    /* of the next request, see add() */
	struct capture_store store; /* variables */
	const char *noun, *name;    /* "step", and its name; NULL: not known */
};

struct engine_host {
	uv_loop_t *loop;
	uint32_t slots;
	struct engine_client *clients; /* by slot; NULL: all requests are of kind 0 */
	uint32_t first_slot;	       /* slots of the workers before this one */
	uint32_t all_slots;    /* of all workers; with first_slot, divides shared resources */
	uint32_t first_client; /* as first_slot, but counted over all drivers of the run */
	/* The next request of a slot may wait until all available responses are read. */
	bool batched;
	void *user;
	/* Ask before each connection: false under a limit of connections per second. */
	bool (*may_connect)(void *user);
	/* TCP is established; secured() follows when TLS is. */
	void (*connected)(void *user, uint32_t slot, uint64_t connect_ns);
	void (*secured)(void *user, uint64_t tls_ns);
	enum engine_next (*done)(const struct engine_host *host, uint32_t slot,
				 struct engine_result *result);
	/* Count datagrams that belong to no result. */
	void (*note)(void *user, enum run_datagram what, uint64_t count);
};

/* Properties of an engine. */
enum engine_bit {
	ENGINE_ADDRESSED = 1 << 0, /* the URL names a host and port */
	ENGINE_LOCAL = 1 << 1,	   /* SCHEME:PATH names a socket in the file system */
	ENGINE_TLS = 1 << 2,	   /* accepts the options for TLS */
	ENGINE_HTTP2 = 1 << 3,	   /* several requests at a time on a connection, gRPC */
	ENGINE_PLAIN = 1 << 4,	   /* a request is --payload: no method, headers or status */
	ENGINE_CAPTURES = 1 << 5,  /* scenarios can capture values from its responses */
	ENGINE_DATAGRAMS = 1 << 6, /* no connections, but sockets, each with --outstanding slots */
};

/* Return the slot's variables, or NULL. */
static inline const struct template_value *engine_values(const struct engine_host *host,
							 uint32_t slot)
{
	return host->clients ? host->clients[slot].store.values : NULL;
}

struct engine {
	const char *scheme;
	const char *form;      /* of its URLs, for people; NULL: not offered to users */
	unsigned int bits;     /* enum engine_bit */
	uint16_t default_port; /* 0: none */
	const char *unsampled; /* why results lack flow and index, for people; NULL: they do not */
	/* Return why these requests cannot be sampled, or NULL if they can. Optional: all can. */
	const char *(*unsampled_with)(const struct request *request);

	/* Return 0, or -EINVAL with a sentence about the settings. NULL: all are valid. */
	int (*check)(const struct request *request, const struct link_settings *link,
		     const struct target *target, char **ret_error);

	/*
	 * Make the state that all workers share, before any load. @request and @link stay valid
	 * until release(), which takes NULL. -EINVAL with @ret_error, or another -errno.
	 */
	int (*prepare)(const struct request *request, const struct link_settings *link,
		       const struct target *target, void **ret_shared, char **ret_error);
	void (*release)(void *shared);

	/*
	 * Scenarios: add a kind of request to @shared. The n-th call adds kind n, to the same
	 * server as prepare()'s kind 0. Errors as prepare(). NULL: one kind only.
	 */
	int (*add)(void *shared, const struct request *request, const struct target *target,
		   char **ret_error);

	/* Open one worker's state on its loop, without I/O. -errno. */
	int (*open)(const struct engine_host *host, const void *shared, void **ret_state);
	void (*start)(void *state, uint32_t slot);
	/* The idle slot pauses: its connection may close. NULL: it stays. */
	void (*retire)(void *state, uint32_t slot);
	/*
	 * Fail requests whose time limit was over by @over_ns; called every few milliseconds. The
	 * loop has looked for responses since then, and requests may have started since then.
	 */
	void (*expire)(void *state, uint64_t over_ns);
	/* Start to close every handle; nothing is reported any more. */
	void (*close)(void *state);
	/* Free @state when the loop has ended; takes NULL. */
	void (*free)(void *state);
};

/* Defined in http/, http2/, stream/, udp/ and null.c; driver/engines.c has the table. */
extern const struct engine engine_http, engine_https, engine_h2, engine_h2c;
extern const struct engine engine_tcp, engine_udp, engine_unix, engine_null;

static inline bool engine_has(const struct engine *engine, enum engine_bit bit)
{
	return engine->bits & bit;
}

/* Return the engine for the scheme of @url, from a table that ends with NULL, or NULL. */
const struct engine *engine_find(const struct engine *const *engines, const char *url);

#define ENGINE_FORMS_SIZE 512

/* List the URL forms offered to users in @buffer. Return @buffer. */
char *engine_forms(const struct engine *const *engines, char *buffer, size_t size);

/* Return why results of these requests are not sampled, for people; NULL: they are. */
const char *engine_unsampled(const struct engine *engine, const struct request *request);

/* Append "step a: " if the slot's scenario names its steps. */
void engine_tell_step(const struct engine_host *host, uint32_t slot, char *text, size_t size);

/* Append the error code or constant of @result, without asking its engine. */
void engine_tell_result(const struct engine_result *result, char *text, size_t size);

#endif
