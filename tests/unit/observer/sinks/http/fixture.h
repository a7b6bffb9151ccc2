/* SPDX-License-Identifier: MIT */
/*
 * An endpoint over a fake observation in a thread of its own, and a client that sends exactly the
 * bytes that a test wants to send.
 */
#ifndef UNIT_OBSERVER_SINKS_HTTP_FIXTURE_H
#define UNIT_OBSERVER_SINKS_HTTP_FIXTURE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "sinks/http/http.h"

/* How long a client waits for an answer before the test fails: far above any time expected. */
#define PATIENCE_MS 20000

struct server {
	struct sink *sink;
	struct sockaddr_storage address;
	pthread_t thread;
	int stop_fd;
	atomic_uint runs;	   /* calls of sink_run() so far */
	atomic_int fail;	   /* what every call of the source returns if not 0 */
	atomic_uint critical;	   /* 1: something is exhausted */
	bool critical_of_others;   /* it is no process of the service that runs out */
	atomic_uint looks;	   /* of the doctor so far */
	atomic_uint padding;	   /* bytes in every run document: makes it large */
	atomic_uint made;	   /* run documents so far */
	atomic_uint work_ms;	   /* CPU time that each takes */
	struct snapshot_past past; /* the last one asked for */
	uint64_t phases;	   /* begun so far; the last one's number */
	uint32_t lease_s;	   /* the last one's */
	bool open[4 * SNAPSHOT_PHASES];
};

/* A phase's document has this duration, so that a test sees which one it got. */
#define TOTAL_DURATION_NS     7
#define PHASE_DURATION_NS(id) (1000 + (id))

/* Listens on @text ("127.0.0.1:0"); 0 or what sink_http_open_limited() returned. */
int server_start(struct server *server, const char *text, const struct sink_http_limits *limits);
/* The same for whom @access lets in. */
int server_start_for(struct server *server, const char *text, const struct sink_http_access *access,
		     const struct sink_http_limits *limits);
void server_stop(struct server *server);

/* For a group of tests: one server with the default limits, which is its state. */
int group_start(void **state);
int group_stop(void **state);

unsigned int server_port(const struct server *server);

/* A connection to the server; @address NULL: to the address listened on. Asserts success. */
int client_connect(const struct server *server, const char *address);
/* 0, or -errno if the server has closed the connection. */
int client_send(int fd, const void *data, size_t length);

struct response {
	int status;
	char *text; /* status line, headers and body, zero-terminated; to be freed */
	char *body; /* within text */
	size_t length;
};

/* Reads one response; @head: it has no body. -ECONNRESET: the connection ended before. */
int client_receive(int fd, bool head, struct response *ret_response);
void response_free(struct response *response);
/* A header's value, to be freed; NULL: there is none. */
char *response_header(const struct response *response, const char *name);

/* The header is there and has this value. */
void assert_header(const struct response *response, const char *name, const char *value);
/* The status, the type, and what every answer of ours carries. */
void assert_answer(const struct response *response, int status, const char *type);

/* Reads to the end of the connection; returns the bytes, -ECONNRESET or -ETIMEDOUT. */
ssize_t client_drain(int fd, int timeout_ms);

/* Connects, sends @format, reads one response, closes. */
__attribute__((format(printf, 2, 3))) struct response ask(const struct server *server,
							  const char *format, ...);
/* Sends "@method @path" with a good Host header. */
struct response ask_route(const struct server *server, const char *method, const char *path);

#endif
