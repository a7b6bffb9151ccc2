// SPDX-License-Identifier: MIT
/*
 * CLOSE_WAIT by process: the peer has closed, the process has not. A leak grows. A constant number is a pool that
 * looks at its connections when it needs one, or handlers that work for clients that left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resource.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"

/*
 * A working handler does not notice that its client has left. Up to this time a request without an
 * answer counts as work: 300 s is the longest default of Apache and browsers.
 */
#define WORK_MS 300000
/*
 * It grows if sockets came in each quarter of the last sample, of its second half, or of the last observed minute. The
 * quarters last at least 2 s in all: connections that a pool opened together end together, and
 * their number stays afterwards.
 */
#define GROWTH_LEAST_MS 2000
#define GROWTH_MOST_MS	60000
/* Of four new ones at most one may have left: a pool that turns over loses as many as come. */
#define LEFT_PART 4
/* A past reading is replaced after this time, so growth is searched over at most twice as long. */
#define PAST_NS (30 * NSEC_PER_SEC)

/* The earliest reading with which the second one of the pair is compared. */
struct base {
	const struct socket_list *list;
	double seconds; /* before the second one; 0: there is none */
};

/* The CLOSE_WAIT sockets of one process. */
struct group {
	size_t resource; /* its index in the list */
	uint32_t working, ended, unread;
	uint32_t oldest_ms;
	double came, left;
	uint32_t in_half, in_sample, in_minute; /* bits: quarters in which some came */
};

static struct base base_of(const struct resource_pair *pair)
{
	const struct close_wait_past *past = pair->past[0].at_ns ? &pair->past[0] : &pair->past[1];
	struct base base = {&pair->before.close_wait, pair->seconds};

	if (!pair->before.at_ns)
		return (struct base){&pair->before.close_wait, 0};
	if (!past->at_ns)
		return base;
	base.list = &past->list;
	base.seconds = (double)(pair->after.at_ns - past->at_ns) / NSEC_PER_SEC;
	return base;
}

/* Ages come only with tcp_info, and a truncated list does not show new ones. */
static bool growth_known(const struct resource_pair *pair, const struct base *base)
{
	return base->seconds > 0 && pair->after.source == SOCKETS_NETLINK && !pair->after.error &&
	       !base->list->left_out && !pair->after.close_wait.left_out;
}

/*
 * Return whether a request waits: data came after the last sent bytes. Both times are ticks: within the same tick the
 * answer counts as later. If the connection has sent nothing yet, any data is a request.
 */
static bool asks(const struct resource_socket *s)
{
	return s->bytes_received > 1 && (!s->bytes_sent || s->received_ms < s->sent_ms);
}

static bool works(const struct resource_pair *pair, const struct resource_socket *s)
{
	return s->silent_ms < WORK_MS && asks(s) && netns_listener(&pair->after, s);
}

/* Return whether the socket is idle for so long that any program should have closed it. */
static bool forgotten(const struct resource_pair *pair, const struct resource_socket *s)
{
	/* Without an inode the connection is not accepted yet; held.c counts these. */
	return s->inode && s->silent_ms >= CLOSE_WAIT_MS && !works(pair, s);
}

/* Return the quarter of the time up to CLOSE_WAIT_MS ago in which the peer closed, as a bit. */
static uint32_t quarter(const struct resource_socket *s, double ms)
{
	double age = (s->silent_ms - CLOSE_WAIT_MS) / fmax(ms, GROWTH_LEAST_MS);

	return age < 1 ? 1U << (unsigned int)(age * 4) : 0;
}

static void count_new(const struct resource_pair *pair, const struct base *base,
		      const struct resource_socket *s, struct group *group)
{
	const struct resource_socket *then = netns_find(base->list, s);
	double ms = base->seconds * 1000;

	if (!forgotten(pair, s))
		return;
	group->came += !(then && forgotten(pair, then));
	/* Three spans: a process or a load that began lately leaves the first quarters of the longer ones empty. */
	group->in_half |= quarter(s, pair->seconds * 1000 / 2);
	group->in_sample |= quarter(s, pair->seconds * 1000);
	group->in_minute |= quarter(s, fmin(ms, GROWTH_MOST_MS));
}

static void note_socket(const struct resource_pair *pair, const struct resource_socket *s,
			struct resource *resource, struct group *group)
{
	resource->used++;
	resource->owners[0].sockets = (uint32_t)resource->used;
	if (s->silent_ms > group->oldest_ms)
		group->oldest_ms = s->silent_ms;
	group->working += works(pair, s);
	/* The FIN counts as one byte of the queue until the process has read up to it. */
	group->ended += !s->receive_queue;
	group->unread += s->receive_queue > 1;
	if (resource->used == 1) {
		resource->port = s->source_port;
		resource->other_port = s->destination_port;
	}
	if (resource->port != s->source_port)
		resource->port = 0;
	if (resource->other_port != s->destination_port)
		resource->other_port = 0;
}

/*
 * A socket that is gone has no process any more. It counts for all processes with connections of the same port:
 * growth may then be missed, but is never made up.
 */
static void count_left(const struct resource_pair *pair, const struct base *base,
		       const struct resource *resource, struct group *group)
{
	for (size_t i = 0; i < base->list->count; i++) {
		const struct resource_socket *s = &base->list->sockets[i];
		bool theirs = (resource->port && resource->port == s->source_port) ||
			      (resource->other_port && resource->other_port == s->destination_port);

		if (!theirs && (resource->port || resource->other_port))
			continue;
		if (forgotten(pair, s) && !netns_find(&pair->after.close_wait, s))
			group->left++;
	}
}

static bool grows(const struct group *group)
{
	return group->left * LEFT_PART <= group->came &&
	       (group->in_half == 0xf || group->in_sample == 0xf || group->in_minute == 0xf);
}

static void say_growth(const struct resource_pair *pair, const struct base *base,
		       const struct group *group, struct resource *resource)
{
	if (!growth_known(pair, base)) {
		snprintf(resource->outlook, sizeof(resource->outlook),
			 "whether their number grows is not known (%s)",
			 base->seconds > 0 ? "no age of each is" : "one reading");
		return;
	}
	if (grows(group))
		resource->grown = fmax(0, group->came - group->left);
	snprintf(resource->outlook, sizeof(resource->outlook),
		 group->came > group->left
			 ? "%.0f came and %.0f left in %.1f s"
			 : "their number does not grow: %.0f came and %.0f left in %.1f s",
		 group->came, group->left, base->seconds);
	resource_fact(resource, "more than at the first reading", group->came - group->left,
		      "sockets", "inet_diag, by cookie");
}

static void name_process(struct resource *resource)
{
	const struct resource_owner *who = resource->owners;

	resource_name_owners(resource);
	if (resource->owner_count)
		snprintf(resource->object, sizeof(resource->object), "%s (pid %u)", who->comm,
			 who->pid);
	else
		snprintf(resource->object, sizeof(resource->object), "a process that is not seen");
}

static void finish(const struct resource_pair *pair, const struct base *base, struct group *group,
		   struct resource *resource)
{
	bool netlink = pair->after.source == SOCKETS_NETLINK;

	name_process(resource);
	resource_fact(resource, "in CLOSE_WAIT for a second or longer", resource->used, "sockets",
		      netlink ? "inet_diag, tcp_info" : "/proc/net/tcp, seen twice");
	if (netlink) {
		resource_fact(resource, "oldest", group->oldest_ms / 1000.0, "s",
			      "tcp_info, time since the last ACK");
		resource_fact(resource, "with a request that has no answer yet", group->working,
			      "sockets", "tcp_info, last data received and sent");
		resource_fact(resource, "whose end the process has read", group->ended, "sockets",
			      "inet_diag");
		resource_fact(resource, "with data that is not read", group->unread, "sockets",
			      "inet_diag");
	}
	if (growth_known(pair, base))
		count_left(pair, base, resource, group);
	say_growth(pair, base, group, resource);
	if (resource->port)
		resource_fact(resource, "local port", resource->port, "port", "TCP sockets");
	if (resource->other_port)
		resource_fact(resource, "peer's port", resource->other_port, "port", "TCP sockets");
}

/* Return the process's group, a new one if need be; NULL: no memory. */
static struct group *group_of(struct resource_list *list, uint32_t pid,
			      const struct resource_netns *netns, struct group **groups,
			      size_t *count)
{
	struct resource *resource;

	for (size_t i = 0; i < *count; i++) {
		if (list->entries[(*groups)[i].resource].owners[0].pid == pid)
			return &(*groups)[i];
	}
	if (ARRAY_GROW(*groups, *count) < 0)
		return NULL;
	resource = resource_add(list, RESOURCE_CLOSE_WAIT, netns);
	if (!resource)
		return NULL;
	resource_own(resource, pid);
	(*groups)[*count] = (struct group){.resource = list->count - 1};
	return &(*groups)[(*count)++];
}

/* /proc has no ages: there all that are met twice count. */
static bool stays(const struct resource_pair *pair, const struct resource_socket *s)
{
	if (!s->inode)
		return false;
	return pair->after.source == SOCKETS_PROCFS ? !!netns_find(&pair->before.close_wait, s)
						    : s->silent_ms >= CLOSE_WAIT_MS;
}

void resource_measure_close_wait(const struct resource_pair *pair, struct resource_list *list)
{
	const struct socket_list *sockets = &pair->after.close_wait;
	const struct base base = base_of(pair);
	autofree struct group *groups = NULL;
	size_t count = 0;

	for (size_t i = 0; i < sockets->count; i++) {
		const struct resource_socket *s = &sockets->sockets[i];
		struct group *group;

		if (!stays(pair, s))
			continue;
		group = group_of(list, owners_pid(&pair->owners, s->inode), &pair->after, &groups,
				 &count);
		if (!group)
			break;
		note_socket(pair, s, &list->entries[group->resource], group);
		if (growth_known(pair, &base))
			count_new(pair, &base, s, group);
	}
	for (size_t i = 0; i < count; i++)
		finish(pair, &base, &groups[i], &list->entries[groups[i].resource]);
}

/* ---- earlier looks ---- */

static void forget(struct close_wait_past *past)
{
	free(past->list.sockets);
	*past = (struct close_wait_past){};
}

void close_wait_forget(struct resource_pair *pair)
{
	forget(&pair->past[0]);
	forget(&pair->past[1]);
}

/* Without memory growth is searched over a shorter time. */
void close_wait_remember(struct resource_pair *pair)
{
	const struct socket_list *list = &pair->before.close_wait;
	struct close_wait_past now = {.list = *list, .at_ns = pair->before.at_ns};

	if (!now.at_ns || (pair->past[1].at_ns && now.at_ns - pair->past[1].at_ns < PAST_NS))
		return;
	now.list.sockets = calloc(list->count + 1, sizeof(*list->sockets));
	if (!now.list.sockets)
		return;
	if (list->count)
		memcpy(now.list.sockets, list->sockets, list->count * sizeof(*list->sockets));
	forget(&pair->past[0]);
	pair->past[0] = pair->past[1];
	pair->past[1] = now;
}
