// SPDX-License-Identifier: MIT
/*
 * A connection to a NATS server; see nats.h. The server speaks first, in plain text; TLS begins
 * after its INFO. The PONG to a PING after the CONNECT means that the login was accepted.
 */
#include "nats.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "sojourn/autojson.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "sojourn/units.h"
#include "text.h"

/* The step of the clock: for the connection, and between two PINGs. */
#define STEP_MS	      2000U
#define PATIENT_STEPS 5U

#define PIECE ((size_t)16 << 10) /* of plain text for TLS */

/* Answers to PINGs of a server that reads nothing, which would otherwise take memory without bound. */
#define PONGS_MAX 1000U

enum state {
	STATE_RESOLVING,
	STATE_CONNECTING,
	STATE_GREETING, /* before the server's INFO */
	STATE_SECURING,
	STATE_ENTERING, /* the CONNECT is not answered yet */
	STATE_OPEN,
	STATE_ENDED,
};

struct nats {
	const struct nats_settings *settings;
	struct nats_owner owner;
	uv_loop_t *loop;
	enum state state;
	uv_getaddrinfo_t resolving;
	uv_connect_t connecting;
	struct addrinfo *addresses, *address; /* @address is the one in use */
	uv_tcp_t stream;
	uv_timer_t timer;
	unsigned int handles; /* that are not closed */
	bool stream_open, resolves, closing;
	unsigned int silent; /* steps without a byte from the server */
	struct nats_input input;
	char received[1 << 16];
	size_t unsent;
	unsigned int pongs; /* since all was sent */
	size_t payload_max;
	bool stores;
	char *nonce; /* to be signed; NULL: none */
	unsigned int subscriptions;
	struct tls_context *context;
	struct tls_buffers buffers;
	struct tls *tls; /* NULL: plain text */
};

/* ---- settings ---- */

static void forget_peers(struct nats_peers *peers)
{
	for (size_t i = 0; i < peers->count; i++)
		free(peers->list[i]);
	peers->count = 0;
}

void nats_settings_clear(struct nats_settings *settings)
{
	if (settings->peers)
		forget_peers(settings->peers);
	free(settings->peers);
	free(settings->url);
	free(settings->host);
	nats_login_clear(&settings->login);
	*settings = (struct nats_settings){0};
}

/* Split HOST[:PORT] or [ADDRESS][:PORT]; a slash may follow. */
static int parse_host(struct nats_settings *settings, const char *text, char **ret_error)
{
	size_t length = strcspn(text, "/");
	autofree char *place = text[length] && text[length + 1] ? NULL : strndup(text, length);
	bool bracketed = place && *place == '[';
	char *end = bracketed ? strchr(place, ']') : place ? strchr(place, ':') : NULL;
	char *port = bracketed && end ? end + 1 : end;
	uint64_t number = NATS_PORT;

	if (!place || (bracketed && !end) || (port && *port && *port != ':'))
		return refuse(ret_error, "is no server's address; write it like nats://HOST:4222");
	if (port && *port && units_parse_u64(port + 1, 1, UINT16_MAX, &number))
		return refuse(ret_error, "has no port from 1 to 65535 after its colon");
	settings->port = (uint16_t)number;
	if (end)
		*end = '\0';
	if (!place[bracketed])
		return refuse(ret_error, "has no host; write it like nats://HOST:4222");
	settings->host = strdup(place + bracketed);
	return settings->host ? 0 : -ENOMEM;
}

int nats_settings_parse(struct nats_settings *settings, const char *url, char **ret_error)
{
	const char *mark = strstr(url, "://");
	bool secure = !strncmp(url, "tls://", 6);

	free(TAKE_PTR(settings->url));
	free(TAKE_PTR(settings->host));
	if (!mark || (!secure && strncmp(url, "nats://", 7) != 0))
		return refuse(ret_error, "is no NATS server; write it like nats://HOST:4222 or "
					 "tls://HOST:4222");
	settings->secure = secure;
	settings->url = strdup(url);
	if (!settings->peers)
		settings->peers = calloc(1, sizeof(*settings->peers));
	return settings->url && settings->peers ? parse_host(settings, mark + 3, ret_error)
						: -ENOMEM;
}

/* ---- the end ---- */

static void end(struct nats *nats, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void end(struct nats *nats, const char *format, ...)
{
	char reason[512];
	va_list args;

	if (nats->state == STATE_ENDED || nats->closing)
		return;
	nats->state = STATE_ENDED;
	nats->settings->peers->turn++;
	uv_timer_stop(&nats->timer);
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	text_make_printable(reason, ' ');
	nats->owner.ended(nats->owner.user, reason);
}

static void free_nats(struct nats *nats)
{
	if (nats->handles || nats->resolves)
		return;
	uv_freeaddrinfo(nats->addresses);
	nats_input_clear(&nats->input);
	free(nats->nonce);
	tls_free(nats->tls);
	tls_buffers_clear(&nats->buffers);
	tls_context_free(nats->context);
	free(nats);
}

static void try_address(struct nats *nats);

static void on_closed(uv_handle_t *handle)
{
	struct nats *nats = handle->data;

	nats->handles--;
	if (nats->closing)
		free_nats(nats);
	else if (nats->state == STATE_CONNECTING)
		try_address(nats);
}

static void close_stream(struct nats *nats)
{
	if (!nats->stream_open)
		return;
	nats->stream_open = false;
	uv_close((uv_handle_t *)&nats->stream, on_closed);
}

void nats_close(struct nats *nats)
{
	if (!nats || nats->closing)
		return;
	nats->closing = true;
	if (nats->resolves)
		uv_cancel((uv_req_t *)&nats->resolving);
	close_stream(nats);
	uv_close((uv_handle_t *)&nats->timer, on_closed);
}

/* ---- sending ---- */

struct sending {
	uv_write_t request;
	struct nats *nats;
	size_t length;
	char bytes[];
};

static void on_sent(uv_write_t *request, int status)
{
	struct sending *sending = (struct sending *)request;
	struct nats *nats = sending->nats;

	nats->unsent -= sending->length;
	if (!nats->unsent)
		nats->pongs = 0;
	free(sending);
	if (status && status != UV_ECANCELED)
		end(nats, "the connection ended: %s", strerror(-status));
}

/* Without @bytes the caller fills it. */
static struct sending *sending_new(struct nats *nats, const char *bytes, size_t length)
{
	struct sending *sending = malloc(sizeof(*sending) + length);

	if (!sending)
		return NULL;
	sending->nats = nats;
	sending->length = length;
	if (bytes)
		memcpy(sending->bytes, bytes, length);
	return sending;
}

static int send_off(struct nats *nats, struct sending *sending)
{
	uv_buf_t buffer = uv_buf_init(sending->bytes, (unsigned int)sending->length);
	int err = nats->stream_open ? uv_write(&sending->request, (uv_stream_t *)&nats->stream,
					       &buffer, 1, on_sent)
				    : -ENOTCONN;

	if (err)
		free(sending);
	else
		nats->unsent += sending->length;
	return err;
}

static int flush(struct nats *nats)
{
	size_t length = nats->buffers.out_length;
	struct sending *sending;

	nats->buffers.out_length = 0;
	if (!length)
		return 0;
	sending = sending_new(nats, nats->buffers.out, length);
	return sending ? send_off(nats, sending) : -ENOMEM;
}

static int send_secured(struct nats *nats, const char *bytes, size_t length)
{
	for (size_t at = 0; at < length; at += PIECE)
		if (tls_write(nats->tls, bytes + at, length - at < PIECE ? length - at : PIECE) !=
		    TLS_DONE)
			return -EPROTO;
	return flush(nats);
}

/* Takes @sending. */
static int send_plain(struct nats *nats, struct sending *sending)
{
	int err;

	if (!nats->tls)
		return send_off(nats, sending);
	err = send_secured(nats, sending->bytes, sending->length);
	free(sending);
	return err;
}

static int say(struct nats *nats, const char *text)
{
	struct sending *sending = sending_new(nats, text, strlen(text));

	return sending ? send_plain(nats, sending) : -ENOMEM;
}

int nats_subscribe(struct nats *nats, const char *subject)
{
	autofree char *line = NULL;

	if (nats->state != STATE_OPEN)
		return -ENOTCONN;
	if (!nats_is_subject(subject))
		return -EINVAL;
	return asprintf(&line, "SUB %s %u\r\n", subject, ++nats->subscriptions) < 0
		       ? -ENOMEM
		       : say(nats, line);
}

int nats_ask(struct nats *nats, const char *subject, const char *reply, const char *head,
	     const char *body, size_t body_length)
{
	size_t head_length = strlen(head), length = head_length + body_length, line_length;
	autofree char *line = NULL;
	struct sending *sending;
	char *at;

	if (nats->state != STATE_OPEN)
		return -ENOTCONN;
	if (!nats_is_subject(subject) || (reply && !nats_is_subject(reply)))
		return -EINVAL;
	if (length > nats->payload_max)
		return -EMSGSIZE;
	if (asprintf(&line, "PUB %s %s%s%zu\r\n", subject, reply ? reply : "", reply ? " " : "",
		     length) < 0)
		return -ENOMEM;
	line_length = strlen(line);
	sending = sending_new(nats, NULL, line_length + length + 2);
	if (!sending)
		return -ENOMEM;
	at = mempcpy(sending->bytes, line, line_length);
	at = mempcpy(at, head, head_length);
	if (body_length)
		at = mempcpy(at, body, body_length);
	at[0] = '\r';
	at[1] = '\n';
	return send_plain(nats, sending);
}

bool nats_stores(const struct nats *nats)
{
	return nats->stores;
}

size_t nats_payload_max(const struct nats *nats)
{
	return nats->payload_max;
}

bool nats_is_flushed(const struct nats *nats)
{
	return !nats->unsent;
}

/* ---- received operations ---- */

static void enter(struct nats *nats)
{
	autofree char *json = NULL, *line = NULL, *error = NULL;
	int err = nats_login_connect(&nats->settings->login, nats->nonce, nats->tls, &json, &error);

	if (!err && asprintf(&line, "CONNECT %s\r\nPING\r\n", json) < 0)
		err = -ENOMEM;
	if (!err)
		err = say(nats, line);
	if (err)
		end(nats, "the login cannot be sent: %s", error ? error : strerror(-err));
	nats->state = err ? nats->state : STATE_ENTERING;
}

static int make_context(struct nats *nats, char **ret_error)
{
	return tls_context_new(&nats->settings->tls, nats->settings->host, NULL, &nats->context,
			       ret_error);
}

static void secure(struct nats *nats)
{
	autofree char *error = NULL;
	int err = nats->context ? 0 : make_context(nats, &error);

	if (!err)
		err = tls_buffers_init(&nats->buffers);
	nats->state = STATE_SECURING;
	nats->tls = err ? NULL : tls_new(nats->context, &nats->buffers);
	if (!nats->tls)
		end(nats, "TLS cannot begin: %s", error ? error : "no memory");
	else if (tls_handshake(nats->tls) != TLS_MORE || flush(nats))
		end(nats, "TLS cannot begin");
}

static void take_peers(struct nats_peers *peers, const json_t *info)
{
	const json_t *urls = json_object_get(info, "connect_urls");

	if (!json_array_size(urls))
		return;
	forget_peers(peers);
	for (size_t i = 0; i < json_array_size(urls) && peers->count < NATS_PEERS_MAX; i++) {
		const char *url = json_string_value(json_array_get(urls, i));
		char *own = url ? strdup(url) : NULL;

		if (own)
			peers->list[peers->count++] = own;
	}
}

static void take_info(struct nats *nats, const struct nats_operation *operation)
{
	autojson json_t *info = json_loadb(operation->text, operation->text_length, 0, NULL);
	json_int_t most = json_integer_value(json_object_get(info, "max_payload"));
	const char *nonce = json_string_value(json_object_get(info, "nonce"));
	bool required = json_is_true(json_object_get(info, "tls_required"));

	take_peers(nats->settings->peers, info);
	if (nats->state != STATE_GREETING)
		return; /* a change in its cluster */
	if (!json_is_object(info) || most <= 0) {
		end(nats, "it is no NATS server");
		return;
	}
	if (most < NATS_PAYLOAD_LEAST) {
		end(nats,
		    "its max_payload is %" JSON_INTEGER_FORMAT " bytes; at least %d are needed",
		    most, NATS_PAYLOAD_LEAST);
		return;
	}
	nats->payload_max = (size_t)most;
	nats->stores = json_is_true(json_object_get(info, "jetstream"));
	free(nats->nonce);
	nats->nonce = nonce ? strdup(nonce) : NULL;
	if (required)
		secure(nats);
	else if (!nats->settings->secure)
		enter(nats);
	else if (json_is_true(json_object_get(info, "tls_available")))
		secure(nats);
	else
		end(nats, "it has no TLS; use nats://, or configure its TLS");
}

static void take_pong(struct nats *nats)
{
	if (nats->state != STATE_ENTERING)
		return;
	nats->state = STATE_OPEN;
	nats->owner.opened(nats->owner.user);
}

/* Name the reason as the server does: 'Authorization Violation'. */
static void take_error(struct nats *nats, const struct nats_operation *operation)
{
	static const char refused[] = "Authorization Violation";
	const char *text = operation->text;
	int length = (int)operation->text_length;

	if (memmem(text, operation->text_length, refused, strlen(refused)))
		end(nats, "the server refuses the login (%s)%s", refused,
		    nats_login_is_given(&nats->settings->login)
			    ? " in the file of --credentials"
			    : "; --credentials names a file with one");
	else
		end(nats, "the server says %.*s", length, text);
}

/* A failure to send ends the connection anyway. */
static void take_ping(struct nats *nats)
{
	if (nats->pongs++ < PONGS_MAX)
		(void)say(nats, "PONG\r\n");
	else
		end(nats, "the server sends, but does not read");
}

static void take_message(struct nats *nats, const struct nats_operation *operation)
{
	autofree char *subject = strndup(operation->text, operation->text_length);

	if (subject && nats->state == STATE_OPEN)
		nats->owner.message(nats->owner.user, subject, operation->payload,
				    operation->payload_length);
}

static void take(struct nats *nats, const struct nats_operation *operation)
{
	switch (operation->verb) {
	case NATS_INFO:
		take_info(nats, operation);
		break;
	case NATS_MSG:
		take_message(nats, operation);
		break;
	case NATS_PING:
		take_ping(nats);
		break;
	case NATS_PONG:
		take_pong(nats);
		break;
	case NATS_OK:
		break;
	case NATS_ERR:
		take_error(nats, operation);
		break;
	}
}

/* A callback may end or close it, after which no operation is taken. */
static void take_plain(struct nats *nats, const char *bytes, size_t length)
{
	struct nats_operation operation;
	int taken = nats_input_add(&nats->input, bytes, length);

	if (taken)
		end(nats, "no memory for a message");
	while (nats->state != STATE_ENDED && !nats->closing &&
	       (taken = nats_input_take(&nats->input, &operation)) == 1)
		take(nats, &operation);
	if (taken < 0)
		end(nats, "it is no NATS server");
}

static void end_in_tls(struct nats *nats)
{
	const char *detail;

	(void)tls_failure(nats->tls, &detail);
	(void)flush(nats); /* the alert */
	end(nats, "TLS failed: %s", detail ? detail : "the server ended it");
}

static void take_secured(struct nats *nats, const char *bytes, size_t length)
{
	enum tls_verdict verdict = TLS_DONE;

	tls_feed(nats->tls, bytes, length);
	if (nats->state == STATE_SECURING) {
		verdict = tls_handshake(nats->tls);
		if (verdict == TLS_DONE)
			enter(nats);
	}
	while (verdict == TLS_DONE && nats->state != STATE_ENDED && !nats->closing) {
		verdict = tls_read(nats->tls, &length);
		if (length)
			take_plain(nats, nats->buffers.plaintext, length);
	}
	if (verdict == TLS_FAILED)
		end_in_tls(nats);
	else if (verdict == TLS_ENDED)
		end(nats, "the server has ended the connection");
	else
		(void)flush(nats);
}

/* ---- the connection ---- */

static void on_allocate(uv_handle_t *handle, size_t size, uv_buf_t *buffer)
{
	struct nats *nats = handle->data;

	(void)size;
	*buffer = uv_buf_init(nats->received, sizeof(nats->received));
}

static void on_received(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
	struct nats *nats = stream->data;

	nats->silent = 0;
	if (length > 0 && nats->tls)
		take_secured(nats, buffer->base, (size_t)length);
	else if (length > 0)
		take_plain(nats, buffer->base, (size_t)length);
	else if (length == UV_EOF)
		end(nats, "the server has ended the connection");
	else if (length < 0)
		end(nats, "the connection ended: %s", strerror((int)-length));
}

static void on_connected(uv_connect_t *request, int status)
{
	struct nats *nats = request->handle->data;

	if (nats->closing || nats->state == STATE_ENDED)
		return;
	if (!status) {
		nats->state = STATE_GREETING;
		uv_tcp_nodelay(&nats->stream, 1);
		uv_read_start((uv_stream_t *)&nats->stream, on_allocate, on_received);
	} else if (nats->address->ai_next) {
		nats->address = nats->address->ai_next;
		close_stream(nats);
	} else {
		end(nats, "cannot connect: %s", strerror(-status));
	}
}

static void try_address(struct nats *nats)
{
	int err = uv_tcp_init(nats->loop, &nats->stream);

	nats->stream.data = nats;
	if (!err) {
		nats->handles++;
		nats->stream_open = true;
		err = uv_tcp_connect(&nats->connecting, &nats->stream, nats->address->ai_addr,
				     on_connected);
	}
	if (err)
		end(nats, "cannot connect: %s", strerror(-err));
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
	struct nats *nats = request->data;

	nats->resolves = false;
	nats->addresses = addresses;
	nats->address = addresses;
	if (nats->closing) {
		free_nats(nats);
	} else if (nats->state == STATE_ENDED) {
		return;
	} else if (status || !addresses) {
		end(nats, "cannot find '%s': %s", nats->settings->host, uv_strerror(status));
	} else {
		nats->state = STATE_CONNECTING;
		try_address(nats);
	}
}

/* Where there are others, do not wait long for one that does not accept. */
static unsigned int patience_with(const struct nats *nats)
{
	return nats->state == STATE_CONNECTING && nats->settings->peers->count ? 0 : PATIENT_STEPS;
}

/* Count steps, not time: if this process itself was stopped, the server was not silent. */
static void on_step(uv_timer_t *timer)
{
	struct nats *nats = timer->data;
	unsigned int patience = patience_with(nats);

	if (nats->silent++ >= patience)
		end(nats, "%s for %u s",
		    nats->state == STATE_OPEN	    ? "nothing was heard of the server"
		    : nats->state == STATE_GREETING ? "it did not greet, as a NATS server does,"
						    : "it did not answer",
		    (patience ? patience : 1) * STEP_MS / 1000);
	else if (nats->state == STATE_OPEN)
		(void)say(nats, "PING\r\n");
}

static int resolve(struct nats *nats, const char *host, uint16_t port)
{
	static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	char text[8];
	int err;

	snprintf(text, sizeof(text), "%u", port);
	nats->resolving.data = nats;
	err = uv_getaddrinfo(nats->loop, &nats->resolving, on_resolved, host, text, &hints);
	nats->resolves = !err;
	return err;
}

/* Another of its cluster may be there while the one of the URL is not. */
static int resolve_next(struct nats *nats)
{
	const struct nats_settings *settings = nats->settings;
	struct nats_peers *peers = settings->peers;
	size_t turn = peers->turn % (peers->count + 1);
	struct nats_settings peer = {0};
	autofree char *wrong = NULL;
	int err = turn ? parse_host(&peer, peers->list[turn - 1], &wrong) : -ENOENT;

	err = err ? resolve(nats, settings->host, settings->port)
		  : resolve(nats, peer.host, peer.port);
	free(peer.host);
	return err;
}

int nats_open(uv_loop_t *loop, const struct nats_settings *settings, const struct nats_owner *owner,
	      struct nats **ret_nats, char **ret_error)
{
	struct nats *nats = calloc(1, sizeof(*nats));
	int err;

	if (!nats)
		return -ENOMEM;
	nats->settings = settings;
	nats->owner = *owner;
	nats->loop = loop;
	/* Without tls:// most servers need none, and the system's certificates take 20 ms. */
	err = settings->secure ? make_context(nats, ret_error) : 0;
	if (!err)
		err = uv_timer_init(loop, &nats->timer);
	if (err) {
		free_nats(nats);
		return err;
	}
	nats->timer.data = nats;
	nats->handles++;
	uv_timer_start(&nats->timer, on_step, STEP_MS, STEP_MS);
	err = resolve_next(nats);
	if (err)
		nats_close(nats);
	else
		*ret_nats = nats;
	return err;
}
