// SPDX-License-Identifier: MIT
/*
 * A client of JetStream; see store.h. It is a request and its answer each time, over a connection
 * of its own. Every request may be sent twice, so one without an answer is sent again, also to
 * another server of the cluster.
 */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "relay.h"
#include "sojourn/autojson.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "transport/loop.h"

#define STREAM	"SOJOURN"
#define ANSWERS "store"

#define STEP_MS	     250U
#define ANSWER_STEPS 8U	 /* before a request is sent again */
#define TOTAL_STEPS  40U /* before it has failed */
#define REPLICAS     3	 /* in a cluster; a single server has one */

/* The server's codes for what is no error here. */
#define CODE_OTHER_SETTINGS 10058 /* the stream exists: an administrator has made it */
#define CODE_NO_MESSAGE	    10037
#define CODE_NO_STREAM	    10059

struct store {
	const struct nats_settings *settings;
	struct store_owner owner;
	uv_loop_t loop;
	uv_timer_t timer;
	struct nats *nats; /* NULL: not connected */
	bool open;
	char run[SECRET_LENGTH + 1];
	unsigned int steps;
	uint64_t number; /* of the request; answers to others are late ones */
	json_t *answer;
	char *failed; /* why the last connection failed */
};

/* ---- the connection ---- */

static void on_open(void *user)
{
	struct store *store = user;
	static const char *const words[] = {ANSWERS ".*", "*"};
	char subject[RELAY_SUBJECT];

	for (size_t i = 0; i < (store->owner.heard ? 2 : 1); i++) {
		snprintf(subject, sizeof(subject), "sojourn.from.%s.%s", store->run, words[i]);
		(void)nats_subscribe(store->nats, subject);
	}
	store->open = true;
}

static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct store *store = user;
	const char *dot = strrchr(subject, '.'), *word = dot ? dot + 1 : "", *body;
	size_t body_length;

	if (strstr(subject, "." ANSWERS ".")) {
		if (strtoull(word, NULL, 10) != store->number || store->answer)
			return;
		store->answer = json_loadb(payload, length, JSON_REJECT_DUPLICATES, NULL);
	} else if (store->owner.heard && relay_is_key(word)) {
		autojson json_t *head = relay_parse(payload, length, &body, &body_length);

		if (head && channel_type(head))
			store->owner.heard(store->owner.user, word, head);
	}
}

static void on_failed(void *user, const char *reason)
{
	struct store *store = user;

	free(store->failed);
	store->failed = strdup(reason);
	store->open = false;
	nats_close(TAKE_PTR(store->nats));
}

static int connect_to(struct store *store, char **ret_error)
{
	const struct nats_owner owner = {store, on_open, on_message, on_failed};

	return nats_open(&store->loop, store->settings, &owner, &store->nats, ret_error);
}

static void on_step(uv_timer_t *timer)
{
	struct store *store = timer->data;
	autofree char *error = NULL;

	store->steps++;
	if (!store->nats)
		(void)connect_to(store, &error);
}

/* Take one turn. A cluster that has lost a server may need seconds for an answer. */
static void turn(struct store *store)
{
	uv_run(&store->loop, UV_RUN_ONCE);
	if (store->owner.waits)
		store->owner.waits(store->owner.user);
}

/* ---- requests ---- */

static void send_request(struct store *store, const char *subject, const char *head,
			 const char *body, size_t length)
{
	char reply[RELAY_SUBJECT];

	snprintf(reply, sizeof(reply), "sojourn.from.%s." ANSWERS ".%" PRIu64, store->run,
		 store->number);
	(void)nats_ask(store->nats, subject, reply, head, body, length);
}

static bool is_denied(const struct store *store)
{
	return store->failed && strstr(store->failed, "Permissions Violation");
}

/* Return 0 with the answer, which may be an error of the server. */
static int ask(struct store *store, const char *subject, const char *head, const char *body,
	       size_t length, json_t **ret_answer, char **ret_error)
{
	bool sent = false;
	unsigned int sent_at = 0;

	store->number++;
	store->steps = 0;
	while (!store->answer && store->steps < TOTAL_STEPS && !is_denied(store)) {
		if (!store->open)
			sent = false;
		if (store->open && (!sent || store->steps - sent_at >= ANSWER_STEPS)) {
			send_request(store, subject, head, body, length);
			sent = true;
			sent_at = store->steps;
		}
		turn(store);
	}
	*ret_answer = TAKE_PTR(store->answer);
	if (*ret_answer)
		return 0;
	return refuse(ret_error, "%s",
		      store->failed ? store->failed : "the server did not answer for JetStream");
}

/* Return 0, or the server's code with its reason. */
static int error_in(const json_t *answer, const char **ret_reason)
{
	const json_t *error = json_object_get(answer, "error");
	const char *reason = json_string_value(json_object_get(error, "description"));

	*ret_reason = reason ? reason : "no reason";
	if (!error)
		return 0;
	return (int)json_integer_value(json_object_get(error, "err_code")) ?: -1;
}

static bool is_known(int code)
{
	return code == CODE_OTHER_SETTINGS || code == CODE_NO_MESSAGE || code == CODE_NO_STREAM;
}

/* Ask JetStream itself. Return 0, a code above, or -EINVAL with a sentence. */
static int ask_server(struct store *store, const char *operation, json_t *body, json_t **ret_answer,
		      char **ret_error)
{
	autojson json_t *own = body;
	autofree char *text = own ? json_dumps(own, JSON_COMPACT) : NULL;
	autojson json_t *answer = NULL;
	char subject[RELAY_SUBJECT];
	const char *reason;
	int err;

	if (!text)
		return -ENOMEM;
	if (store->open && !nats_stores(store->nats))
		return refuse(ret_error, "the server has no JetStream");
	snprintf(subject, sizeof(subject), "$JS.API.STREAM.%s." STREAM, operation);
	err = ask(store, subject, text, NULL, 0, &answer, ret_error);
	if (err)
		return err;
	err = error_in(answer, &reason);
	if (err && !is_known(err))
		return refuse(ret_error, "JetStream says: %s", reason);
	*ret_answer = TAKE_PTR(answer);
	return err;
}

/* ---- the stream ---- */

static json_t *describe_stream(int replicas)
{
	return json_pack("{s:s, s:[s], s:s, s:s, s:s, s:I, s:I, s:i}", "name", STREAM, "subjects",
			 "sojourn.kept.>", "retention", "limits", "storage", "file", "discard",
			 "new", "max_age", (json_int_t)(STORE_AGE_HOURS * 3600 * NSEC_PER_SEC),
			 "max_bytes", (json_int_t)STORE_BYTES, "num_replicas", replicas);
}

static int make_stream(struct store *store, int replicas, char **ret_error)
{
	autojson json_t *answer = NULL;
	int err = ask_server(store, "CREATE", describe_stream(replicas), &answer, ret_error);

	return err > 0 ? 0 : err;
}

/* An administrator may have made it, with other limits. */
static int find_stream(struct store *store, uint64_t *ret_age_ns, char **ret_error)
{
	autojson json_t *answer = NULL;
	int err = ask_server(store, "INFO", json_object(), &answer, ret_error);
	const json_t *config = json_object_get(answer, "config");

	if (!err)
		*ret_age_ns = (uint64_t)json_integer_value(json_object_get(config, "max_age"));
	return err;
}

int store_prepare(struct store *store, uint64_t *ret_age_ns, char **ret_error)
{
	autofree char *unused = NULL;
	int err = find_stream(store, ret_age_ns, ret_error);

	if (err != CODE_NO_STREAM)
		return err;
	if (make_stream(store, REPLICAS, &unused)) {
		err = make_stream(store, 1, ret_error);
		if (err)
			return err;
	}
	return find_stream(store, ret_age_ns, ret_error);
}

/* ---- messages ---- */

static int put_piece(struct store *store, const char *subject, const char *text, size_t total,
		     size_t at, size_t length, char **ret_error)
{
	autojson json_t *answer = NULL;
	const char *reason;
	char head[96];
	int err;

	snprintf(head, sizeof(head), "{\"at\":%zu,\"total\":%zu}\n", at, total);
	err = ask(store, subject, head, text + at, length, &answer, ret_error);
	if (!err && error_in(answer, &reason))
		err = refuse(ret_error, "JetStream says: %s", reason);
	return err;
}

int store_put(struct store *store, const char *name, const char *text, char **ret_error)
{
	size_t total = strlen(text), at = 0;
	char subject[RELAY_SUBJECT];
	int err = 0;

	snprintf(subject, sizeof(subject), "sojourn.kept.%s.%s", store->run, name);
	while (!err && at < total) {
		size_t most = relay_piece(store->nats);
		size_t length = total - at < most ? total - at : most;
		err = put_piece(store, subject, text, total, at, length, ret_error);
		at += length;
	}
	return err;
}

static char *decode(const json_t *data, size_t *ret_length)
{
	const char *text = json_string_value(data);
	size_t size = json_string_length(data);
	unsigned char *bytes = malloc(size + 1);
	int length =
		bytes ? EVP_DecodeBlock(bytes, (const unsigned char *)(size ? text : ""), (int)size)
		      : -1;

	if (length < 0) {
		free(bytes);
		return NULL;
	}
	for (size_t i = size; i && text[i - 1] == '='; i--)
		length--;
	*ret_length = (size_t)length;
	return (char *)bytes;
}

/* A message of a foreign program may have no head. */
static int read_message(const json_t *answer, uint64_t *number, struct store_message *ret_message)
{
	const json_t *message = json_object_get(answer, "message");
	const char *subject = json_string_value(json_object_get(message, "subject"));
	const char *name = subject ? strrchr(subject, '.') : NULL;
	json_int_t sequence = json_integer_value(json_object_get(message, "seq"));
	size_t length = 0;

	if (!name || sequence <= (json_int_t)*number)
		return -EBADMSG;
	ret_message->name = strdup(name + 1);
	ret_message->payload = decode(json_object_get(message, "data"), &length);
	if (!ret_message->name || !ret_message->payload)
		return -ENOMEM;
	ret_message->head = relay_parse(ret_message->payload, length, &ret_message->body,
					&ret_message->body_length);
	*number = (uint64_t)sequence;
	return 1;
}

int store_next(struct store *store, uint64_t *number, struct store_message *ret_message,
	       char **ret_error)
{
	autojson json_t *answer = NULL;
	char subject[RELAY_SUBJECT];
	int err;

	*ret_message = (struct store_message){0};
	snprintf(subject, sizeof(subject), "sojourn.kept.%s.*", store->run);
	err = ask_server(
		store, "MSG.GET",
		json_pack("{s:I, s:s}", "seq", (json_int_t)*number + 1, "next_by_subj", subject),
		&answer, ret_error);
	if (err)
		return err > 0 ? 0 : err;
	err = read_message(answer, number, ret_message);
	if (err < 0)
		store_message_clear(ret_message);
	return err;
}

void store_message_clear(struct store_message *message)
{
	free(message->name);
	free(message->payload);
	json_decref(message->head);
	*message = (struct store_message){0};
}

int store_forget(struct store *store, char **ret_error)
{
	autojson json_t *answer = NULL;
	char subject[RELAY_SUBJECT];
	int err;

	snprintf(subject, sizeof(subject), "sojourn.kept.%s.*", store->run);
	err = ask_server(store, "PURGE", json_pack("{s:s}", "filter", subject), &answer, ret_error);
	return err > 0 ? 0 : err;
}

void store_tell(struct store *store, const char *agent, json_t *message)
{
	char subject[RELAY_SUBJECT];

	relay_address(agent, store->run, subject);
	relay_send(store->open ? store->nats : NULL, subject, message);
}

/* ---- opened and closed ---- */

static int wait_until_open(struct store *store, char **ret_error)
{
	autofree char *error = NULL;
	int err = connect_to(store, ret_error);

	/* Others of the cluster are known from an earlier connection, if from any. */
	while (!err && !store->open && store->steps < TOTAL_STEPS &&
	       (store->nats || store->settings->peers->count))
		turn(store);
	if (err || store->open)
		return err;
	return refuse(ret_error, "%s", store->failed ? store->failed : "it did not answer");
}

int store_open(const struct nats_settings *settings, const char *run,
	       const struct store_owner *owner, struct store **ret_store, char **ret_error)
{
	struct store *store = calloc(1, sizeof(*store));
	int err = store ? uv_loop_init(&store->loop) : -ENOMEM;

	if (err) {
		free(store);
		return err;
	}
	*ret_store = store;
	store->settings = settings;
	store->owner = *owner;
	snprintf(store->run, sizeof(store->run), "%s", run);
	uv_timer_init(&store->loop, &store->timer);
	store->timer.data = store;
	uv_timer_start(&store->timer, on_step, STEP_MS, STEP_MS);
	return wait_until_open(store, ret_error);
}

uv_loop_t *store_loop(struct store *store)
{
	return &store->loop;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	nats_close(TAKE_PTR(store->nats));
	loop_close_handles(&store->loop);
	uv_loop_close(&store->loop);
	json_decref(store->answer);
	free(store->failed);
	free(store);
}
