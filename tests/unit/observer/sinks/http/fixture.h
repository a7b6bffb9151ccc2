/* SPDX-License-Identifier: MIT */
/*
 * An endpoint over a fake observation in its own thread, and a client that sends exactly a test's
 * bytes.
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

#include "model/meanwhile.h"
#include "sinks/http/http.h"

/* A client's wait for an answer before the test fails: far above any expected time. */
#define PATIENCE_MS 20000

struct server {
	struct sink *sink;
	struct sockaddr_storage address;
	pthread_t thread;
	int stop_fd;
	atomic_uint runs;	 /* calls of sink_run() so far */
	atomic_int fail;	 /* every call of the source returns this if not 0 */
	atomic_uint critical;	 /* 1: something is exhausted */
	bool critical_of_others; /* no process of the service is exhausted */
	atomic_uint looks;	 /* of the doctor so far */
	atomic_uint padding;	 /* bytes in every run document: makes it large */
	atomic_uint made;	 /* run documents so far */
	atomic_uint work_ms;	 /* CPU time of each */
	atomic_uint services;	 /* in each, with SERVICE_LISTENERS: their text takes a while */
	atomic_int asker; /* not 0: a connection that requests /healthz when a document is read */
	atomic_int asked; /* not 0: the one that did so in this call of sink_run() */
	atomic_int impatient;  /* as asker, and the reading goes on until the answer is there */
	atomic_uint satisfied; /* such readings that saw it within IMPATIENCE_MS */
	struct meanwhile meanwhile;
	atomic_uint in_time, late; /* calls of sink_run() that ended with its answer, or without */
	struct snapshot_past past; /* the last one requested */
	uint64_t phases;	   /* begun so far; also the last one's id */
	uint32_t lease_s;	   /* the last one's */
	bool open[4 * SNAPSHOT_PHASES];
};

#define SERVICE_LISTENERS 4000
#define IMPATIENCE_MS	  PATIENCE_MS

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

/* A phase's document has this duration, by which a test identifies it. */
#define TOTAL_DURATION_NS     7
#define PHASE_DURATION_NS(id) (1000 + (id))

/* Listen on @text ("127.0.0.1:0"); return 0 or the error of sink_http_open_limited(). */
int server_start(struct server *server, const char *text, const struct sink_http_limits *limits);
int server_start_for(struct server *server, const char *text, const struct sink_http_access *access,
		     const struct sink_http_limits *limits);
void server_stop(struct server *server);

/* For a group of tests: one server with the default limits, which is its state. */
int group_start(void **state);
int group_stop(void **state);

unsigned int server_port(const struct server *server);

/* Connect to the server; @address NULL: at the address listened on. Asserts success. */
int client_connect(const struct server *server, const char *address);
/* Return 0, or -errno if the server has closed the connection. */
int client_send(int fd, const void *data, size_t length);

struct response {
	int status;
	char *text; /* status line, headers and body, zero-terminated; to be freed */
	char *body; /* within text */
	size_t length;
};

/* Read one response; @head: it has no body. -ECONNRESET: the connection ended before. */
int client_receive(int fd, bool head, struct response *ret_response);
void response_free(struct response *response);
/* Return a header's value, to be freed; NULL: there is none. */
char *response_header(const struct response *response, const char *name);

void assert_header(const struct response *response, const char *name, const char *value);
/* Assert the status, the type, and the headers of every answer. */
void assert_answer(const struct response *response, int status, const char *type);

/* Read to the end of the connection; return the bytes, -ECONNRESET or -ETIMEDOUT. */
ssize_t client_drain(int fd, int timeout_ms);

__attribute__((format(printf, 2, 3))) struct response ask(const struct server *server,
							  const char *format, ...);
struct response ask_route(const struct server *server, const char *method, const char *path);

#endif
