// SPDX-License-Identifier: MIT
/*
 * The coordinator's side of a fleet over NATS; see muster.h. Every run has a key that nobody can
 * guess. It is part of the subjects, so no agent mixes up the messages of two runs. standby.c is the
 * other side.
 */
#include "muster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/channel/channel.h"
#include "fleet/channel/relay.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define STEP_MS	      100U
#define CALL_STEPS    5U   /* between two calls: an agent may start meanwhile */
#define ACCEPT_STEPS  20U  /* for the answer to a claim */
#define FLUSH_STEPS   20U  /* for the last messages */
#define HEARD_MAX     4096 /* agents; the rest is ignored */
#define WINDOWS_BYTES (32U << 20)
#define NAMED_MAX     5U /* agents in one message */

/* An agent that has answered. */
struct heard {
	char agent[SECRET_LENGTH + 1];
	char name[RELAY_NAME_MAX + 1];
	bool busy;
};

/* The place of a member. */
struct post {
	struct muster *muster;
	char agent[SECRET_LENGTH + 1]; /* empty: nobody was asked */
	char *name;
	unsigned int asked; /* steps since the claim */
	bool accepted;
	bool opened; /* the relay has handles */
	struct relay relay;
	int fds[2]; /* the member's ends: what the agent says, what it is sent; -1: taken */
	struct member *member;
	char reason[256]; /* why the relay has ended; empty: it has not */
};

struct muster {
	const struct fleet_options *options;
	uv_loop_t *loop;
	uv_timer_t timer;
	struct nats *nats;
	const char *run;
	bool kept;
	const char **agents; /* who is to take which place; NULL: anybody */
	char *asker;
	unsigned int steps;
	struct heard *heard;
	size_t heard_count;
	struct post *posts;
	uint32_t count;
	bool open;     /* the server has let it in */
	bool gathered; /* all agents are there */
	char *failed;  /* why the connection has ended; NULL: it has not */
};

static bool is_complete(const struct muster *muster)
{
	for (uint32_t i = 0; i < muster->count; i++)
		if (!muster->posts[i].accepted)
			return false;
	return true;
}

static struct post *find_post(struct muster *muster, const char *agent)
{
	for (uint32_t i = 0; i < muster->count; i++)
		if (!strcmp(muster->posts[i].agent, agent))
			return &muster->posts[i];
	return NULL;
}

static uint32_t window_of(const struct muster *muster)
{
	uint32_t share = WINDOWS_BYTES / muster->count;

	return share < RELAY_WINDOW_MIN	  ? RELAY_WINDOW_MIN
	       : share > RELAY_WINDOW_MAX ? RELAY_WINDOW_MAX
					  : share;
}

/* ---- relays ---- */

static void note_end(struct post *post, const char *reason)
{
	snprintf(post->reason, sizeof(post->reason), "%s", *reason ? reason : "its agent has left");
	text_make_printable(post->reason, ' ');
	if (post->member)
		member_detach(post->member, post->reason);
}

/* The member has closed its end: it is over, for whatever reason it has noted. */
static void on_drained(void *user)
{
	struct post *post = user;

	relay_end(&post->relay, "");
}

static void on_ended(void *user, const char *reason)
{
	note_end(user, reason);
}

/* The member's end stays out of the children: no agent is started here, but a name may be looked up. */
static int open_pipe(uv_pipe_t *pipe, unsigned int own, int *ret_other)
{
	int fds[2], err;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	err = uv_pipe_open(pipe, fds[own]);
	*ret_other = fds[!own];
	if (err)
		close(fds[own]);
	return err;
}

static int open_relay(struct post *post)
{
	const struct relay_owner owner = {post, NULL, on_drained, on_ended, NULL};
	struct muster *muster = post->muster;
	char subject[RELAY_SUBJECT];
	int err;

	relay_address(post->agent, muster->run, subject);
	err = relay_open(&post->relay, muster->loop, muster->nats, subject, &owner);
	post->opened = true;
	if (!err)
		err = open_pipe(&post->relay.out, 1, &post->fds[0]);
	if (!err)
		err = open_pipe(&post->relay.in, 0, &post->fds[1]);
	if (err)
		return err;
	relay_begin(&post->relay, window_of(muster));
	return 0;
}

/* ---- the agents ---- */

static void fail(struct muster *muster, const char *reason)
{
	if (!muster->failed)
		muster->failed = strdup(reason);
}

static void claim(struct muster *muster, struct post *post, const struct heard *heard)
{
	char subject[RELAY_SUBJECT];

	snprintf(post->agent, sizeof(post->agent), "%s", heard->agent);
	free(post->name);
	post->name = strdup(heard->name);
	post->asked = 0;
	relay_address(heard->agent, muster->run, subject);
	relay_send(muster->nats, subject,
		   json_pack("{s:s, s:s, s:b, s:I, s:I}", "type", "claim", "asker", muster->asker,
			     "keep", muster->kept, "window", (json_int_t)window_of(muster),
			     "patience_ns", (json_int_t)muster->options->lost_after_ns));
}

/* Return the place that @agent may take; NULL: there is none. */
static struct post *place_for(struct muster *muster, const char *agent)
{
	if (!muster->agents)
		return find_post(muster, "");
	for (uint32_t i = 0; i < muster->count; i++)
		if (!strcmp(muster->agents[i], agent))
			return *muster->posts[i].agent ? NULL : &muster->posts[i];
	return NULL;
}

static struct heard *hear(struct muster *muster, const char *agent, const char *name)
{
	struct heard *added;

	for (size_t i = 0; i < muster->heard_count; i++)
		if (!strcmp(muster->heard[i].agent, agent))
			return &muster->heard[i];
	if (muster->heard_count == HEARD_MAX)
		return NULL;
	added = ARRAY_APPEND(muster->heard, muster->heard_count);
	if (!added)
		return NULL;
	snprintf(added->agent, sizeof(added->agent), "%s", agent);
	snprintf(added->name, sizeof(added->name), "%s", name);
	return added;
}

static void take_offer(struct muster *muster, const char *agent, const char *name)
{
	struct heard *heard = hear(muster, agent, name);
	struct post *post = place_for(muster, agent);

	if (heard)
		heard->busy = false;
	if (heard && post && !find_post(muster, agent))
		claim(muster, post, heard);
}

static void take_busy(struct muster *muster, const char *agent, const char *name)
{
	struct heard *heard = hear(muster, agent, name);
	struct post *post = find_post(muster, agent);

	if (heard)
		heard->busy = true;
	if (post && !post->accepted)
		*post->agent = '\0';
}

/* Release one whose place another has, as its answer came too late. */
static void take_acceptance(struct muster *muster, const char *agent, const char *name)
{
	struct post *post = find_post(muster, agent);
	char subject[RELAY_SUBJECT];
	int err;

	(void)name;
	if (post && post->accepted)
		return;
	if (!post) {
		relay_address(agent, muster->run, subject);
		relay_send(muster->nats, subject,
			   json_pack("{s:i, s:i, s:s}", "at", 0, "ack", 0, "end",
				     "it answered too late"));
		return;
	}
	err = open_relay(post);
	if (err)
		fail(muster, strerror(-err));
	else
		post->accepted = true;
}

static const struct {
	const char *type;
	void (*take)(struct muster *muster, const char *agent, const char *name);
} answers[] = {
	{"offer", take_offer},
	{"busy", take_busy},
	{"accepted", take_acceptance},
};

static void take_answer(struct muster *muster, const char *agent, const json_t *message)
{
	const char *type = channel_type(message);
	const char *name = json_string_value(json_object_get(message, "name"));

	if (!type || !relay_is_name(name))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (!strcmp(type, answers[i].type))
			answers[i].take(muster, agent, name);
}

/* A payload has a type, or is for a relay. */
static void on_message(void *user, const char *subject, const char *payload, size_t length)
{
	struct muster *muster = user;
	const char *agent = strrchr(subject, '.');
	autojson json_t *head = NULL;
	const char *body;
	size_t body_length;
	struct post *post;

	if (!agent || !relay_is_key(agent + 1))
		return;
	head = relay_parse(payload, length, &body, &body_length);
	post = find_post(muster, agent + 1);
	if (head && channel_type(head))
		take_answer(muster, agent + 1, head);
	else if (post && post->accepted)
		relay_take(&post->relay, payload, length);
}

static void call(struct muster *muster)
{
	if (!is_complete(muster))
		relay_send(muster->nats, RELAY_TO_ALL,
			   json_pack("{s:s, s:s}", "type", "call", "run", muster->run));
}

static void on_open(void *user)
{
	struct muster *muster = user;
	char subject[RELAY_SUBJECT];
	int err;

	muster->open = true;
	snprintf(subject, sizeof(subject), "sojourn.from.%s.*", muster->run);
	err = nats_subscribe(muster->nats, subject);
	if (err)
		fail(muster, strerror(-err));
	for (uint32_t i = 0; i < muster->count; i++)
		if (muster->posts[i].opened)
			relay_attach(&muster->posts[i].relay, muster->nats);
	call(muster);
}

/* Agents whose results are kept wait for the next connection, too: lost members are silent. */
static void lose_connection(struct muster *muster)
{
	muster->open = false;
	nats_close(TAKE_PTR(muster->nats));
	for (uint32_t i = 0; i < muster->count; i++)
		if (muster->posts[i].opened)
			relay_attach(&muster->posts[i].relay, NULL);
}

static void on_failed(void *user, const char *reason)
{
	struct muster *muster = user;
	char text[256];

	if (muster->kept && muster->gathered && !muster->failed) {
		lose_connection(muster);
		return;
	}
	fail(muster, reason);
	snprintf(text, sizeof(text), "the connection to %s: %s", muster->options->nats.url, reason);
	for (uint32_t i = 0; i < muster->count; i++) {
		struct post *post = &muster->posts[i];

		if (!post->accepted || *post->reason)
			continue;
		relay_drop(&post->relay);
		note_end(post, text);
	}
}

static int connect_to(struct muster *muster, char **ret_error)
{
	const struct nats_owner owner = {muster, on_open, on_message, on_failed};

	return nats_open(muster->loop, &muster->options->nats, &owner, &muster->nats, ret_error);
}

static void connect_again(struct muster *muster)
{
	autofree char *error = NULL;
	int err = connect_to(muster, &error);

	if (err)
		fail(muster, error ? error : strerror(-err));
}

/* Free the places of agents that did not answer their claims, and call for others. */
static void on_step(uv_timer_t *timer)
{
	struct muster *muster = timer->data;

	muster->steps++;
	if (muster->gathered && !muster->nats)
		connect_again(muster);
	if (!muster->open || muster->gathered)
		return;
	for (uint32_t i = 0; i < muster->count; i++) {
		struct post *post = &muster->posts[i];

		if (!post->accepted && *post->agent && ++post->asked > ACCEPT_STEPS)
			*post->agent = '\0';
	}
	if (muster->steps % CALL_STEPS == 0)
		call(muster);
}

/* ---- the result ---- */

/* Append " (2)" and so on to names that several agents have. */
static int settle_names(struct muster *muster)
{
	for (uint32_t i = 0; i < muster->count; i++) {
		struct post *post = &muster->posts[i];
		unsigned int same = 1;
		char *name;

		for (uint32_t j = 0; j < i; j++)
			same += !strncmp(muster->posts[j].name, post->name, strlen(post->name)) &&
				strchr(" ", muster->posts[j].name[strlen(post->name)]);
		if (same == 1)
			continue;
		if (asprintf(&name, "%s (%u)", post->name, same) < 0)
			return -ENOMEM;
		free(post->name);
		post->name = name;
	}
	return 0;
}

/* Describe the agents that answered: ": a, b, 3 more, and 2 are busy". */
static void describe(const struct muster *muster, size_t size, char *ret_text)
{
	FILE *file = fmemopen(ret_text, size, "w");
	uint32_t shown = 0, ours = 0, busy = 0;

	*ret_text = '\0';
	if (!file)
		return;
	for (uint32_t i = 0; i < muster->count; i++) {
		if (!muster->posts[i].accepted)
			continue;
		if (ours++ < NAMED_MAX)
			fprintf(file, "%s%s", shown++ ? ", " : " (", muster->posts[i].name);
	}
	if (ours > shown)
		fprintf(file, ", %u more", ours - shown);
	fputs(shown ? ")" : "", file);
	for (size_t i = 0; i < muster->heard_count; i++)
		busy += muster->heard[i].busy;
	if (busy)
		fprintf(file, "%s%u other%s busy with another run", shown ? ", " : "; ", busy,
			busy == 1 ? " is" : "s are");
	fclose(file);
}

static int refuse_few(const struct muster *muster, char **ret_error)
{
	const struct fleet_options *options = muster->options;
	char time[32], others[512];
	uint32_t ours = 0;

	units_format_duration((double)options->gather_ns, time, sizeof(time));
	describe(muster, sizeof(others), others);
	for (uint32_t i = 0; i < muster->count; i++)
		ours += muster->posts[i].accepted;
	if (muster->agents)
		return refuse(
			ret_error,
			"%u of its %u agents answered at %s within %s%s; another one does not "
			"take the place of a member",
			ours, muster->count, options->nats.url, time, others);
	return refuse(ret_error,
		      "--members: %u of %u agents answered at %s within %s%s; start them with "
		      "sojourn-drive agent --fleet %s, or allow more time with --gather",
		      ours, muster->count, options->nats.url, time, others, options->nats.url);
}

static int wait_for_agents(struct muster *muster, struct patience patience, char **ret_error)
{
	uint64_t steps = muster->options->gather_ns / (STEP_MS * NSEC_PER_MSEC);

	/* The connection has a limit of its own, and its failure says more. */
	while (!muster->failed && !is_complete(muster)) {
		if (patience.is_over(patience.user))
			return -ECANCELED;
		if (muster->open && muster->steps >= steps)
			return refuse_few(muster, ret_error);
		uv_run(muster->loop, UV_RUN_ONCE);
		if (!muster->open)
			muster->steps = 0;
	}
	if (muster->failed)
		return refuse(ret_error, "--via: %s: %s", muster->options->nats.url,
			      muster->failed);
	return settle_names(muster);
}

const char *muster_name(const struct muster *muster, uint32_t index)
{
	return muster->posts[index].name;
}

const char *muster_agent(const struct muster *muster, uint32_t index)
{
	return muster->posts[index].agent;
}

int muster_attach(struct muster *muster, uint32_t index, struct member *member)
{
	struct post *post = &muster->posts[index];
	int err = member_attach(member, muster->loop, post->fds[0], post->fds[1]);

	if (err)
		return err;
	post->fds[0] = -1;
	post->fds[1] = -1;
	post->member = member;
	if (*post->reason)
		member_detach(member, post->reason);
	return 0;
}

/* ---- opened and closed ---- */

static char *describe_asker(void)
{
	const char *user = getenv("USER");
	char host[256] = "", uid[32];

	(void)gethostname(host, sizeof(host) - 1);
	snprintf(uid, sizeof(uid), "uid-%u", (unsigned int)getuid());
	return text_format("%s@%s, process %d", user ? user : uid, host, (int)getpid());
}

static int open_muster(struct muster *muster, char **ret_error)
{
	muster->asker = describe_asker();
	muster->posts = calloc(muster->count, sizeof(*muster->posts));
	if (!muster->asker || !muster->posts)
		return -ENOMEM;
	for (uint32_t i = 0; i < muster->count; i++) {
		muster->posts[i].muster = muster;
		muster->posts[i].fds[0] = -1;
		muster->posts[i].fds[1] = -1;
	}
	uv_timer_start(&muster->timer, on_step, STEP_MS, STEP_MS);
	return connect_to(muster, ret_error);
}

int muster_call(uv_loop_t *loop, const struct fleet_options *options, const struct kept *kept,
		struct patience patience, struct muster **ret_muster, char **ret_error)
{
	struct muster *muster = calloc(1, sizeof(*muster));
	int err = muster ? uv_timer_init(loop, &muster->timer) : -ENOMEM;

	if (err) {
		free(muster);
		return err;
	}
	muster->timer.data = muster;
	muster->options = options;
	muster->run = kept->run;
	muster->kept = kept_by_members(kept);
	muster->agents = kept->agents;
	muster->loop = loop;
	muster->count = options->members;
	*ret_muster = muster;
	err = open_muster(muster, ret_error);
	if (!err)
		err = wait_for_agents(muster, patience, ret_error);
	muster->gathered = !err;
	if (err || !muster->kept)
		uv_timer_stop(&muster->timer);
	return err;
}

static void on_late(uv_timer_t *timer)
{
	struct muster *muster = timer->data;

	muster->steps++;
}

void muster_leave(struct muster *muster)
{
	for (uint32_t i = 0; muster->posts && i < muster->count; i++) {
		struct post *post = &muster->posts[i];

		post->member = NULL;
		if (post->accepted)
			relay_end(&post->relay, "");
	}
	muster->steps = 0;
	uv_timer_start(&muster->timer, on_late, STEP_MS, STEP_MS);
	while (muster->nats && !muster->failed && !nats_is_flushed(muster->nats) &&
	       muster->steps < FLUSH_STEPS)
		uv_run(muster->loop, UV_RUN_ONCE);
	uv_timer_stop(&muster->timer);
	nats_close(TAKE_PTR(muster->nats));
}

void muster_free(struct muster *muster)
{
	if (!muster)
		return;
	for (uint32_t i = 0; muster->posts && i < muster->count; i++) {
		cleanup_close(&muster->posts[i].fds[0]);
		cleanup_close(&muster->posts[i].fds[1]);
		relay_clear(&muster->posts[i].relay);
		free(muster->posts[i].name);
	}
	free(muster->posts);
	free(muster->heard);
	free(muster->asker);
	free(muster->failed);
	free(muster);
}
