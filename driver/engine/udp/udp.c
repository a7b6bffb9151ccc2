// SPDX-License-Identifier: MIT
/*
 * udp:// — any protocol of request and reply datagrams. Neighbours: flow.c does the work,
 * payload/match.c matches replies to requests.
 */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "sojourn/refuse.h"
#include "engine/target.h"
#include "flow.h"
#include "payload/request.h"
#include "transport/link.h"

/* Refuse options of connections that datagrams cannot use. */
static int check_policy(const struct link_settings *link, char **ret_error)
{
	const struct connection_policy *policy = &link->policy;
	const char *wrong = policy->reset ? "--close" : policy->delay ? "--nodelay" : NULL;

	if (wrong)
		return refuse(ret_error, "%s: udp: targets have no connections; leave it out",
			      wrong);
	if (link->datagrams.outstanding > 1 && (policy->requests || policy->lifetime_ns))
		return refuse(ret_error,
			      "--outstanding: a socket with several requests under way cannot be "
			      "replaced; leave out --new-connections, --requests-per-connection "
			      "and --connection-lifetime");
	return 0;
}

static int check_id(const struct match *match, uint32_t outstanding, size_t least, char **ret_error)
{
	uint64_t ids = match_ids(match);

	if ((size_t)match->offset + match->width > least)
		return refuse(ret_error,
			      "--match: the identifier ends at byte %zu of the request, but the "
			      "payload may have only %zu",
			      (size_t)match->offset + match->width, least);
	if (ids && outstanding > ids / 2)
		return refuse(ret_error,
			      "--outstanding: %u requests under way need a wider identifier than "
			      "%u byte%s; write --match=id:%u or use at most %u",
			      outstanding, match->width, match->width > 1 ? "s" : "",
			      match->width * 2U, (unsigned int)(ids / 2));
	return 0;
}

static int check_match(const struct request *request, const struct link_settings *link,
		       const struct message *message, char **ret_error)
{
	const struct match *match = &request->match;
	uint32_t outstanding = link->datagrams.outstanding;

	if (match->kind == MATCH_ID)
		return check_id(match, outstanding, message->template.min, ret_error);
	if (match->kind == MATCH_ECHO && !message->template.unique)
		return refuse(ret_error,
			      "--match: echo needs requests that differ; put {{counter}} "
			      "or {{uuid}} into the payload");
	if (match->kind == MATCH_ORDER && outstanding > 1)
		return refuse(ret_error,
			      "--outstanding: with --match=order a reply of %u could belong to "
			      "any; use --match=id:WIDTH or echo, or leave it at 1",
			      outstanding);
	return 0;
}

static int udp_check(const struct request *request, const struct link_settings *link,
		     const struct target *target, char **ret_error)
{
	struct message message = {0};
	int err = check_policy(link, ret_error);

	(void)target;
	if (err)
		return err;
	if (framing_lasts_until_close(&request->framing))
		return refuse(ret_error, "--framing: udp: targets do not close; leave it out: a "
					 "datagram's end is its own");
	err = message_build(request, &message, ret_error);
	if (!err && message.length > DATAGRAM_SIZE_MAX)
		err = refuse(ret_error,
			     "--payload: a request of %zu bytes does not fit into a datagram; at "
			     "most %u are allowed",
			     message.length, DATAGRAM_SIZE_MAX);
	if (!err)
		err = check_match(request, link, &message, ret_error);
	message_clear(&message);
	return err;
}

static void udp_release(void *state)
{
	struct udp_plan *plan = state;

	if (plan)
		message_clear(&plan->message);
	free(plan);
}

static void fill_plan(const struct request *request, const struct link_settings *link,
		      const struct target *target, struct udp_plan *plan)
{
	plan->address = target->address;
	plan->policy = link->policy;
	plan->policy.delay = true; /* TCP_NODELAY does not apply */
	plan->sources = link->sources;
	plan->timeout_ns = link->timeout_ns;
	plan->retransmit_ns = link->datagrams.retransmit_ns;
	plan->outstanding = link->datagrams.outstanding;
	plan->replies = request->framing.replies ? request->framing.replies : 1;
	plan->match = request->match;
	plan->framing = request->framing;
	plan->framing.replies = 1; /* per datagram */
	if (request->captures && request->captures->count)
		plan->captures = request->captures;
}

static int udp_prepare(const struct request *request, const struct link_settings *link,
		       const struct target *target, void **ret_shared, char **ret_error)
{
	struct udp_plan *plan;
	int err = source_check(&link->sources, target->address.ss_family, ret_error);

	if (!err)
		err = policy_check(&link->policy, ret_error);
	if (err)
		return err;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	fill_plan(request, link, target, plan);
	err = message_build(request, &plan->message, ret_error);
	if (err) {
		udp_release(plan);
		return err;
	}
	*ret_shared = plan;
	return 0;
}

static int udp_open(const struct engine_host *host, const void *shared, void **ret_state)
{
	struct udp *udp = udp_new(host, (struct udp_plan *)shared);

	if (!udp)
		return -ENOMEM;
	*ret_state = udp;
	return 0;
}

const struct engine engine_udp = {
	.scheme = "udp",
	.form = "udp://HOST:PORT",
	.bits = ENGINE_ADDRESSED | ENGINE_PLAIN | ENGINE_DATAGRAMS | ENGINE_CAPTURES,
	.unsampled = "exchanges over UDP are not joined",
	.check = udp_check,
	.prepare = udp_prepare,
	.release = udp_release,
	.open = udp_open,
	.start = udp_start,
	.expire = udp_expire,
	.close = udp_close,
	.free = udp_free,
};
