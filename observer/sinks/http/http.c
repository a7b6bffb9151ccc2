// SPDX-License-Identifier: MIT
/*
 * The HTTP endpoint's connections: libmicrohttpd, run from the caller's loop. guard.c decides which callers may ask,
 * and routes.c makes the answers.
 *
 * A client holds at most one of a fixed number of connections, with a fixed amount of memory, for a fixed time. Its
 * data have no influence on that.
 */
#include "http.h"

#include <errno.h>
#include <limits.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "address.h"
#include "guard.h"
#include "room.h"
#include "routes.h"
#include "secrets.h"
#include "process/reserve.h"
#include "sojourn/address.h"
#include "sojourn/clock.h"
#include "sojourn/own_token.h"
#include "sojourn/units.h"

/* No route reads a body: up to BODY_MAX it is ignored, above that it is a mistake. */
#define BODY_MAX 4096
/* An excess body is still read up to here, so that the client reads the 413 and not a reset. */
#define BODY_DISCARD_MAX (1024 * 1024)

const struct sink_http_limits sink_http_default_limits = {
	.connections = 256,
	.per_peer = 128,
	.head_s = 5,
	.idle_s = 10,
	.request_s = 30,
	.connection_memory = 16 * 1024,
	.per_second = 1000,
};

struct sink_http {
	struct sink sink;
	struct MHD_Daemon *daemon;
	int epoll_fd; /* contains the daemon's own, which changes with its certificates */
	struct http_secrets *secrets;
	struct http_routes routes;
	struct sink_http_access access;
	struct sink_http_limits limits;
	struct http_rate rates[HTTP_CALLERS];
	struct own_token own_token;
	struct sockaddr_storage address;
	char url[HTTP_ADDRESS_URL_MAX];
	bool again; /* libmicrohttpd must run again, whatever it says */
	struct http_room room;
};

/* Make a response, which takes over the reply's body; without memory the body is freed. */
static struct MHD_Response *response_of(struct http_reply *reply)
{
	struct MHD_Response *response;

	if (reply->document)
		response = MHD_create_response_from_buffer_with_free_callback_cls(
			reply->document->length, reply->body, http_document_release,
			reply->document);
	else
		response = MHD_create_response_from_buffer(strlen(reply->body), reply->body,
							   MHD_RESPMEM_MUST_FREE);
	if (!response)
		http_reply_done(reply);
	return response;
}

/*
 * A browser shows an answer, in no frame of another page. The page itself runs the scripts that have its nonce, and asks
 * nobody else.
 */
#define POLICY "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static void add_policy(struct MHD_Response *response, const char *nonce)
{
	char policy[sizeof(POLICY) + 128 + 2 * REPORT_NONCE] = POLICY;

	if (*nonce)
		snprintf(policy, sizeof(policy),
			 POLICY "; script-src 'nonce-%s'; style-src 'nonce-%s'; img-src data:; "
				"connect-src 'self'",
			 nonce, nonce);
	MHD_add_response_header(response, "Content-Security-Policy", policy);
}

/* Add @reply to the connection; MHD_NO closes it. */
static enum MHD_Result send_reply(struct MHD_Connection *connection, struct http_reply *reply)
{
	struct MHD_Response *response = reply->body ? response_of(reply) : NULL;
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "X-Frame-Options", "DENY");
	add_policy(response, reply->nonce);
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	if (reply->header)
		MHD_add_response_header(response, reply->header, reply->value);
	result = MHD_queue_response(connection, reply->status, response);
	MHD_destroy_response(response);
	return result;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* The head has arrived: refuse requests that would otherwise be read in vain. */
static enum MHD_Result accept_head(struct MHD_Connection *connection)
{
	const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *encoding = header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING);
	bool waits = header_of(connection, MHD_HTTP_HEADER_EXPECT);
	struct http_reply reply = {0};
	uint64_t bytes = 0;

	/* Without a length and not chunked, it would end with the connection only. */
	if (encoding && strcasecmp(encoding, "chunked"))
		http_reply_error(&reply, MHD_HTTP_BAD_REQUEST, "unknown Transfer-Encoding");
	else if (length && units_parse_u64(length, 0, UINT64_MAX, &bytes))
		http_reply_error(&reply, MHD_HTTP_BAD_REQUEST, "malformed Content-Length");
	else if (bytes > (waits ? BODY_MAX : BODY_DISCARD_MAX))
		http_reply_error(&reply, MHD_HTTP_CONTENT_TOO_LARGE, "no route takes a body");
	else
		return MHD_YES;
	return send_reply(connection, &reply);
}

static enum MHD_Result take_argument(void *context, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	(void)kind;
	http_query_take(context, name, value);
	return MHD_YES;
}

/* @now: see struct http_query. */
static void ask_routes(struct sink_http *sink, struct MHD_Connection *connection,
		       const char *method, const char *path, bool now, struct http_reply *reply)
{
	struct http_query query = {
		.now = now,
		.accept = header_of(connection, MHD_HTTP_HEADER_ACCEPT),
	};

	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_argument, &query);
	http_routes_answer(&sink->routes, method, path, &query, reply);
}

/* Fill @reply, a zeroed one, with what the client has waited for. */
static void take_awaited(struct sink_http *sink, struct http_client *client,
			 struct http_reply *reply)
{
	client->made = false;
	if (!client->later) {
		http_routes_made(&sink->routes, &client->awaited, client->error, reply);
		return;
	}
	client->later = false;
	*reply = client->reply;
	client->reply = (struct http_reply){0};
	if (client->error)
		http_reply_error(reply, MHD_HTTP_INTERNAL_SERVER_ERROR, strerror(-client->error));
}

static enum MHD_Result answer(struct sink_http *sink, struct http_client *client,
			      struct MHD_Connection *connection, const char *method,
			      const char *path)
{
	struct http_reply reply = {0};

	if (client->made) {
		take_awaited(sink, client, &reply);
	} else if (client->body > BODY_MAX) {
		http_reply_error(&reply, MHD_HTTP_CONTENT_TOO_LARGE, "no route takes a body");
	} else if (http_guard_admits(&sink->access, sink->own_token.text, sink->rates, connection,
				     client->fd, &sink->address, method, http_routes_probe(path),
				     &reply)) {
		client->admitted = true;
		ask_routes(sink, connection, method, path, false, &reply);
	}
	if (!reply.awaited.number && !reply.later)
		return send_reply(connection, &reply);
	client->awaited = reply.awaited;
	client->later = reply.later;
	client->method = method;
	client->path = path;
	client->waiting = connection;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

static struct http_client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Called once when the head is there, for each piece of the body, and once when all is there. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_size, void **request_context)
{
	struct http_client *client = client_of(connection);

	(void)version;
	(void)body;
	if (!client)
		return MHD_NO;
	if (!*request_context) {
		*request_context = client;
		client->body = 0;
		client->asking = true;
		http_room_set_deadline(client, ((struct sink_http *)context)->limits.request_s);
		return accept_head(connection);
	}
	if (!*body_size)
		return answer(context, client, connection, method, url);
	client->body += *body_size;
	*body_size = 0;
	return client->body > BODY_DISCARD_MAX ? MHD_NO : MHD_YES;
}

static void on_answered(void *context, struct MHD_Connection *connection, void **request_context,
			enum MHD_RequestTerminationCode code)
{
	const struct sink_http *sink = context;
	struct http_client *client = client_of(connection);

	(void)code;
	*request_context = NULL;
	if (!client)
		return;
	client->asking = false;
	http_reply_done(&client->reply);
	http_room_set_deadline(client, sink->limits.idle_s + sink->limits.head_s);
}

/* ---- documents in the making ---- */

/* libmicrohttpd asks again for the answer to a connection that is resumed. */
static void resume(struct sink_http *sink, struct http_client *client, int error)
{
	sink->again = true;
	client->included = false;
	client->made = true;
	client->error = error;
	MHD_resume_connection(TAKE_PTR(client->waiting));
}

static void resume_all(struct sink_http *sink, bool included, int error)
{
	for (unsigned int i = 0; i < sink->room.slots; i++)
		if (sink->room.clients[i].waiting && (sink->room.clients[i].included || !included))
			resume(sink, &sink->room.clients[i], error);
}

/* Return the first slot whose client waits for a document, or with @later for a reply of its own; -1: none. */
static int find_waiting(const struct sink_http *sink, bool later)
{
	for (unsigned int i = 0; i < sink->room.slots; i++)
		if (sink->room.clients[i].waiting && sink->room.clients[i].later == later)
			return (int)i;
	return -1;
}

static void make_reply(struct sink_http *sink, struct http_client *client)
{
	ask_routes(sink, client->waiting, client->method, client->path, true, &client->reply);
	resume(sink, client, 0);
}

/* Begin the document that @first waits for. All that wait for it now get it: later requests may have to see more. */
static int begin_document(struct sink_http *sink, const struct http_client *first)
{
	for (unsigned int i = 0; i < sink->room.slots; i++) {
		struct http_client *client = &sink->room.clients[i];

		client->included =
			client->waiting && http_wants_same(&client->awaited, &first->awaited);
	}
	return http_routes_begin(&sink->routes, &first->awaited);
}

/*
 * Make a reply, continue the document that clients wait for, or look at what is running out. A run() makes one step, so
 * that other requests are answered in between.
 */
static void make_documents(struct sink_http *sink)
{
	int later = find_waiting(sink, true), first = find_waiting(sink, false), r;

	if (later >= 0) {
		make_reply(sink, &sink->room.clients[later]);
	} else if (sink->routes.documents.making.file) {
		r = http_documents_continue(&sink->routes.documents);
		if (r <= 0)
			resume_all(sink, true, r);
	} else if (sink->routes.judge_due) {
		http_routes_judge(&sink->routes);
		sink->again = true;
	} else if (first >= 0) {
		r = begin_document(sink, &sink->room.clients[first]);
		if (r)
			resume_all(sink, true, r);
	}
}

/* ---- what libmicrohttpd calls ---- */

static void on_connection(void *context, struct MHD_Connection *connection, void **client_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct sink_http *sink = context;
	struct http_client *client = *client_context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

		*client_context =
			info ? http_room_add(&sink->room, &sink->limits, info->connect_fd) : NULL;
		return;
	}
	sink->again = true;
	if (client)
		client->fd = -1;
}

/* An escaped NUL would cut off the path here, but not in an earlier check. Empty it: it then has no route. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
	(void)context;
	(void)connection;
	if (strstr(text, "%00"))
		*text = '\0';
	return MHD_http_unescape(text);
}

static int fd_of(const struct sink *base)
{
	const struct sink_http *sink = (const struct sink_http *)base;

	return sink->epoll_fd;
}

static int timeout_ms(const struct sink *base)
{
	const struct sink_http *sink = (const struct sink_http *)base;
	uint64_t now = clock_now_ns(), next = http_room_deadline(&sink->room), ours;
	MHD_UNSIGNED_LONG_LONG theirs;

	ours = next <= now ? 0 : (next - now) / NSEC_PER_MSEC + 1;
	/*
	 * At the limit of connections libmicrohttpd (0.9.75) stops polling its listener, and resumes only at the next
	 * run. Nor does it ask for a run for connections that are resumed. Without that run, clients would wait until
	 * something else happens.
	 */
	if (sink->again || sink->routes.documents.making.file || find_waiting(sink, false) >= 0 ||
	    find_waiting(sink, true) >= 0)
		return 0;
	if (MHD_get_timeout(sink->daemon, &theirs) == MHD_YES && theirs < ours)
		ours = theirs;
	else if (next == UINT64_MAX)
		return -1;
	return ours < INT_MAX ? (int)ours : INT_MAX;
}

/* TLS 1.3, and 1.2 with forward secrecy: a key that leaks later does not reveal earlier data. */
static const char tls_priorities[] =
	"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-DHE-DSS:%SERVER_PRECEDENCE";

static void tls_options(const struct sink_http_access *access, struct MHD_OptionItem options[5])
{
	size_t count = 0;

	if (access->tls_key) {
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0,
							   (void *)access->tls_key};
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
							   (void *)access->tls_cert};
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
							   (void *)tls_priorities};
	}
	if (access->tls_client_ca)
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0,
							   (void *)access->tls_client_ca};
	options[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

static int epoll_of(const struct sink_http *sink)
{
	return MHD_get_daemon_info(sink->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/*
 * Hand @fd over. libmicrohttpd closes it when it stops, and on most failures to start, so we never
 * close it here.
 */
static int start_daemon(struct sink_http *sink, int fd)
{
	struct MHD_OptionItem tls[5] = {{0}};
	struct epoll_event readable = {.events = EPOLLIN};

	tls_options(&sink->access, tls);
	errno = 0;
	/* clang-format off */
	sink->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (sink->access.tls_key ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, sink,
		MHD_OPTION_ARRAY, tls,
		MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, sink->room.slots,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, sink->limits.connection_memory,
		MHD_OPTION_CONNECTION_TIMEOUT, sink->limits.idle_s,
		MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, sink,
		MHD_OPTION_NOTIFY_COMPLETED, on_answered, sink,
		MHD_OPTION_END);
	/* clang-format on */
	if (sink->daemon)
		return epoll_ctl(sink->epoll_fd, EPOLL_CTL_ADD, epoll_of(sink), &readable) ? -errno
											   : 0;
	if (sink->access.tls_key)
		return -EINVAL;
	return errno ? -errno : -ENOMEM;
}

/*
 * libmicrohttpd (0.9.75) reads key and certificates only at its start: start another one with the same listener.
 * Connections end; clients in the listener's queue notice nothing.
 */
static int renew_daemon(struct sink_http *sink)
{
	int fd = MHD_quiesce_daemon(sink->daemon);

	resume_all(sink, false, -ECANCELED);
	epoll_ctl(sink->epoll_fd, EPOLL_CTL_DEL, epoll_of(sink), NULL);
	MHD_stop_daemon(sink->daemon);
	sink->daemon = NULL;
	return fd < 0 ? -EIO : start_daemon(sink, fd);
}

/*
 * Answer while a reading is taken. Requests that need a reading wait until run(), and so do those for what it changes:
 * documents, phases, clients, a first look.
 */
static void answer_meanwhile(void *context)
{
	struct sink_http *sink = context;

	if (sink->daemon)
		MHD_run(sink->daemon);
}

/* A step that takes longer has let requests wait. */
#define LONG_STEP_NS (5 * NSEC_PER_MSEC)

static int run(struct sink *base, short revents)
{
	struct sink_http *sink = (struct sink_http *)base;
	RESERVE_SCOPE; /* a client needs a descriptor */
	int r = http_secrets_renew(sink->secrets) ? renew_daemon(sink) : 0;
	uint64_t begin_ns;

	(void)revents;
	if (r < 0)
		return r;
	http_room_expire(&sink->room);
	sink->again = false;
	sink->room.round++;
	MHD_run(sink->daemon);
	http_room_wake_ended(&sink->room);
	begin_ns = clock_now_ns();
	make_documents(sink);
	/* The caller may now take a reading of its own: answer before it what came meanwhile. */
	if (clock_now_ns() - begin_ns >= LONG_STEP_NS)
		MHD_run(sink->daemon);
	return 0;
}

static void close_sink(struct sink *base)
{
	struct sink_http *sink = (struct sink_http *)base;

	if (sink->routes.source.meanwhile)
		sink->routes.source.meanwhile(sink->routes.source.context, NULL, NULL);
	if (sink->daemon) {
		resume_all(sink, false, -ECANCELED);
		MHD_stop_daemon(sink->daemon);
	}
	http_routes_done(&sink->routes);
	own_token_drop(&sink->own_token);
	http_secrets_free(sink->secrets);
	cleanup_close(&sink->epoll_fd);
	http_room_close(&sink->room);
	free(sink);
}

/* ---- opening ---- */

static const struct sink_operations operations = {
	.fd = fd_of, .timeout_ms = timeout_ms, .run = run, .close = close_sink};

/*
 * Each connection inherits this limit from its listener. The kernel's own limit grows to 4 MiB.
 * With hundreds of readers of long documents, one round of writes would delay the next caller by
 * most of a second (tests/bench/endpoint.py).
 */
static const int send_buffer = 64 << 10;

static int open_socket(const struct sockaddr_storage *address, int *ret_fd)
{
	autoclose int fd =
		socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer)) ||
	    bind(fd, (const struct sockaddr *)address, address_length(address)) ||
	    listen(fd, SOMAXCONN))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static struct sink_http *sink_new(const struct snapshot_source *source,
				  const struct sink_http_access *access,
				  const struct sink_http_limits *limits)
{
	struct sink_http *sink = calloc(1, sizeof(*sink));

	if (!sink)
		return NULL;
	if (http_room_open(&sink->room, limits)) {
		http_room_close(&sink->room);
		free(sink);
		return NULL;
	}
	sink->sink.operations = &operations;
	sink->epoll_fd = -1;
	sink->routes.source = *source;
	if (access)
		sink->access = *access;
	sink->routes.buckets = sink->access.buckets;
	sink->limits = *limits;
	for (unsigned int i = 0; i < HTTP_CALLERS; i++)
		sink->rates[i].per_second = limits->per_second;
	return sink;
}

int sink_http_open_limited(const struct sockaddr_storage *address,
			   const struct snapshot_source *source,
			   const struct sink_http_access *access,
			   const struct sink_http_limits *limits, struct sink **ret_sink)
{
	struct sink_http *sink = sink_new(source, access, limits);
	autosink struct sink *opened = (struct sink *)sink;
	socklen_t length = sizeof(sink->address);
	autoclose int fd = -1;
	int r;

	if (!sink)
		return -ENOMEM;
	r = open_socket(address, &fd);
	if (r)
		return r;
	if (getsockname(fd, (struct sockaddr *)&sink->address, &length))
		return -errno;
	http_address_url(&sink->address, sink->access.tls_key, sink->url);
	opened->url = sink->url;
	if (sink->access.own_token)
		opened->locked = own_token_make(&sink->own_token, http_address_port(&sink->address),
						sink->access.user);
	r = http_secrets_check(&sink->access);
	if (r)
		return r;
	sink->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sink->secrets = http_secrets_new(&sink->access);
	if (sink->epoll_fd < 0 || !sink->secrets)
		return sink->secrets ? -errno : -ENOMEM;
	r = start_daemon(sink, TAKE_FD(fd));
	if (r)
		return r;
	meanwhile_set(&sink->routes.meanwhile, answer_meanwhile, sink);
	if (source->meanwhile)
		source->meanwhile(source->context, answer_meanwhile, sink);
	*ret_sink = TAKE_PTR(opened);
	return 0;
}

int sink_http_open(const struct sockaddr_storage *address, const struct snapshot_source *source,
		   const struct sink_http_access *access, struct sink **ret_sink)
{
	return sink_http_open_limited(address, source, access, &sink_http_default_limits, ret_sink);
}

int sink_http_parse_address(const char *text, struct sockaddr_storage *ret_address)
{
	return http_address_parse(text, ret_address);
}
