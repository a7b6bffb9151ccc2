// SPDX-License-Identifier: MIT
/* Ephemeral ports as resources: one per (namespace, source, destination, destination port). */
#include <stdio.h>
#include <string.h>

#include "resource.h"
#include "sojourn/address.h"

/* How many descriptors processes had, at points of the sample. */
struct trend {
	const struct process_list *processes;
	unsigned int points;
	bool period; /* the observer's */
};

#define SHOWN	    64
#define TIME_WAIT_S 60.0
/* A pool that fills up at its start is no leak yet. */
#define GROWING_SHARE 0.25

#define DIAG "TCP sockets, inet_diag"
#define PROC "TCP sockets, /proc/net/tcp"

/* In a shorter period a burst looks like a rate: 400 connections in 0.2 s are no 2,000 per second. */
#define RATE_LEAST_S 0.9

static void say_outlook(struct resource *resource, double rate, double steady, double lasting)
{
	size_t size = sizeof(resource->outlook);
	int n;

	if (rate < 1)
		return;
	n = snprintf(resource->outlook, size,
		     "%.0f ports/s taken lead to %.0f of %.0f; the largest rate that lasts is "
		     "%.0f/s",
		     rate, steady, resource->capacity, lasting);
	if (n > 0 && (size_t)n < size && isfinite(resource->seconds_left) &&
	    resource->seconds_left > 0)
		snprintf(resource->outlook + n, size - (size_t)n, "; none are left in %.1f s",
			 resource->seconds_left);
}

/* A pool that filled up in the sample predicts nothing for the time after it. */
static bool may_go_on(const struct resource *resource, const struct trend *trend)
{
	for (size_t i = 0; i < resource->owner_count; i++) {
		if (resource_may_grow(trend->processes, resource->owners[i].pid, trend->points))
			return true;
	}
	return !resource->owner_count;
}

/* Predict when the ports run out: opened ports per second times the time each stays taken, against the rest. */
static void predict(struct resource *resource, const struct resource_pair *pair,
		    const struct port_use *now, const struct trend *trend)
{
	static const struct port_use none;
	const struct port_use *then = ports_match(&pair->before.ports, &now->key);
	const struct port_rules *rules = &pair->after.rules;
	/* How long a port stays taken after its connection. */
	double linger =
		ports_reuses(rules, &now->key) ? rules->reuse_delay_ms / 1000.0 : TIME_WAIT_S;
	double grown, going, fresh, rate, steady, lasting;

	if ((!pair->before.ports.size && !pair->before.at_ns) ||
	    (trend->period && pair->seconds < RATE_LEAST_S))
		return;
	then = then ? then : &none;
	grown = ((double)now->live - then->live) / pair->seconds;
	going = grown > 0 && !may_go_on(resource, trend) ? 0 : grown;
	/* A port that was opened in the sample is still connected, or its TIME_WAIT began in the sample. */
	fresh = now->fresh / fmin(pair->seconds, TIME_WAIT_S);
	rate = fmax(0, fresh + going);
	steady = now->live + (rate > going && going > 0 ? rate - going : rate) * linger;
	lasting = (resource->capacity - now->live) / linger;
	resource->growth = ((double)ports_used(now) - ports_used(then)) / pair->seconds;
	if (resource->growth > grown - going &&
	    (steady > resource->capacity || (going > 0.5 * resource->growth &&
					     resource->used >= GROWING_SHARE * resource->capacity)))
		resource->seconds_left = fmax(0, (resource->capacity - resource->used) /
							 (resource->growth - (grown - going)));
	resource_fact(resource, "ports taken", fmax(0, fresh + grown), "per second",
		      "the sample: connections that keep theirs");
	say_outlook(resource, rate, steady, lasting > 0 ? lasting : 0);
}

static void add_facts(struct resource *resource, const struct resource_netns *netns,
		      const struct port_use *use)
{
	const struct port_rules *rules = &netns->rules;
	const char *source = netns->source == SOCKETS_NETLINK ? DIAG : PROC;

	resource_fact(resource, "used", resource->used, "ports", source);
	resource_fact(resource, "connected", use->live, "ports", source);
	resource_fact(resource, "TIME_WAIT not reusable", use->time_wait, "ports", source);
	resource_fact(resource, "TIME_WAIT waiting for the peer's FIN", use->fin_wait2, "ports",
		      source);
	resource_fact(resource, "TIME_WAIT reusable (not counted as used)", use->reusable, "ports",
		      "tcp_tw_reuse, tcp_tw_reuse_delay");
	resource_fact(resource, "capacity", resource->capacity, "ports",
		      "range less reserved and held ports");
	resource_fact(resource, "range from", rules->low, "port", "net.ipv4.ip_local_port_range");
	resource_fact(resource, "range to", rules->high, "port", "net.ipv4.ip_local_port_range");
	resource_fact(resource, "reserved", ports_reserved(rules), "ports",
		      "net.ipv4.ip_local_reserved_ports");
	resource_fact(resource, "held by bind()", ports_held(rules), "ports",
		      "listening and bound sockets");
}

static void add_owners(struct resource *resource, const struct owner_table *table, size_t index)
{
	for (size_t i = 0; i < table->socket_count; i++) {
		const struct owned_socket *s = &table->sockets[i];

		if (s->destination == index)
			resource_own(resource, owners_pid(table, s->inode));
	}
	resource_name_owners(resource);
}

static bool is_same(const struct socket_address *a, const struct socket_address *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/*
 * Note who opened the listener that the ports lead to, if it is surely on this host. If it is gone,
 * nobody can connect there anyway.
 */
static void find_server(const struct resource_netns *netns, const struct port_key *key,
			struct resource *resource)
{
	bool own = address_is_loopback(key->family, key->destination.bytes) ||
		   is_same(&key->source, &key->destination);

	if (own) {
		resource->has_user = true;
		resource->user = RESOURCE_NO_USER;
	}
	for (size_t i = 0; i < netns->listeners.count; i++) {
		const struct resource_socket *s = &netns->listeners.sockets[i];

		if (s->source_port != key->port ||
		    (!own && !is_same(&s->source, &key->destination)))
			continue;
		resource->has_user = true;
		resource->user = s->user;
	}
}

void resource_measure_ports(const struct resource_pair *pair, const struct process_list *processes,
			    unsigned int points, bool period, struct resource_list *list)
{
	const struct trend trend = {processes, points, period};
	const struct resource_netns *netns = &pair->after;
	double capacity = ports_capacity(&netns->rules);

	for (size_t i = 0; i < netns->ports.count && i < SHOWN; i++) {
		const struct port_use *use = &netns->ports.slots[i];
		const struct port_key *key = &use->key;
		char from[56], to[56];
		struct resource *resource = resource_add(list, RESOURCE_PORTS, netns);

		if (!resource)
			return;
		resource->used = ports_used(use);
		resource->capacity = capacity;
		resource->port = key->port;
		snprintf(resource->object, sizeof(resource->object), "%s to %s",
			 address_format(key->family, key->source.bytes, 0, from, sizeof(from)),
			 address_format(key->family, key->destination.bytes, key->port, to,
					sizeof(to)));
		add_facts(resource, netns, use);
		add_owners(resource, &pair->owners, i);
		find_server(netns, key, resource);
		predict(resource, pair, use, &trend);
	}
}
