// SPDX-License-Identifier: MIT
/*
 * Upstreams among the observed services; see upstreams.h. The kernel side counts connections that processes open
 * during the period (bpf/tcp/connection/front.h). Those that are older are looked up once, by their client's socket.
 */
#include "upstreams.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timed_calls.h"
#include "parts.h"
#include "host/net/netns.h"
#include "host/net/outgoing.h"
#include "host/net/sockets.h"
#include "host/process.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"

static void add_front(void *context, const void *front, uint64_t connections)
{
	const struct owner_key *key = front;
	struct fronts *fronts = context;

	if (ARRAY_GROW(fronts->list, fronts->count))
		fronts->short_of_memory = true;
	else
		fronts->list[fronts->count++] = (struct front){*key, connections, NULL};
}

static int compare_fronts(const void *a, const void *b)
{
	const struct front *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int read_fronts(const struct loader *loader, struct fronts *ret_fronts)
{
	loader_fronts(loader, add_front, ret_fronts);
	if (ret_fronts->count)
		qsort(ret_fronts->list, ret_fronts->count, sizeof(*ret_fronts->list),
		      compare_fronts);
	return ret_fronts->short_of_memory ? -ENOMEM : 0;
}

int upstreams_new(const struct loader *loader, struct upstreams **ret_upstreams)
{
	CLEANUP(cleanup_upstreams_free) struct upstreams *upstreams = calloc(1, sizeof(*upstreams));
	int r = upstreams ? read_fronts(loader, &upstreams->before) : -ENOMEM;

	if (!r)
		r = upstreams_read_called(loader, &upstreams->called_before);
	if (!r)
		r = timed_calls_new(loader, &upstreams->timed_before);
	if (r < 0)
		return r;
	*ret_upstreams = TAKE_PTR(upstreams);
	return 0;
}

void upstreams_free(struct upstreams *upstreams)
{
	if (!upstreams)
		return;
	free(upstreams->before.list);
	free(upstreams->called_before.list);
	free(upstreams->far_before.list);
	free(upstreams->older);
	timed_calls_free(upstreams->timed_before);
	free(upstreams);
}

/* ---- connections that are older ---- */

/* One end of a connection to an observed service. */
struct end {
	uint8_t family;
	uint8_t is_client;
	uint16_t client_port;
	uint16_t port; /* of the service */
	struct socket_address client;
	uint64_t inode; /* of the client's socket; 0: no process has it */
};

struct search {
	const struct run *run;
	uint32_t netns;
	struct end *ends;
	size_t count;
	int error;
};

static bool is_service(const struct search *search, uint16_t port)
{
	for (size_t i = 0; i < search->run->service_count; i++) {
		const struct run_service *service = &search->run->services[i];

		if (service->port == port && service->netns == search->netns &&
		    !strcmp(service->protocol, "tcp"))
			return true;
	}
	return false;
}

static void add_end(struct search *search, const struct resource_socket *socket, bool is_client)
{
	struct end end = {.family = socket->family, .is_client = is_client};

	if (ARRAY_GROW(search->ends, search->count)) {
		search->error = -ENOMEM;
		return;
	}
	end.client_port = is_client ? socket->source_port : socket->destination_port;
	end.port = is_client ? socket->destination_port : socket->source_port;
	end.client = is_client ? socket->source : socket->destination;
	end.inode = is_client ? socket->inode : 0;
	search->ends[search->count++] = end;
}

static void visit(void *context, const struct resource_socket *socket)
{
	struct search *search = context;

	if (is_service(search, socket->source_port))
		add_end(search, socket, false);
	if (is_service(search, socket->destination_port))
		add_end(search, socket, true);
}

/* Order the ends of a connection next to each other, the service's first. */
static int compare_connections(const struct end *x, const struct end *y)
{
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	if (x->client_port != y->client_port)
		return x->client_port < y->client_port ? -1 : 1;
	if (x->family != y->family)
		return x->family < y->family ? -1 : 1;
	return memcmp(&x->client, &y->client, sizeof(x->client));
}

static int compare_ends(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	int order = compare_connections(x, y);

	return order ? order : x->is_client - y->is_client;
}

static int add_older(struct upstreams *upstreams, uint16_t port, uint32_t pid, uint64_t connections)
{
	for (size_t i = 0; i < upstreams->older_count; i++) {
		struct older *older = &upstreams->older[i];

		if (older->port != port || older->pid != pid)
			continue;
		older->connections += connections;
		return 0;
	}
	if (ARRAY_GROW(upstreams->older, upstreams->older_count))
		return -ENOMEM;
	upstreams->older[upstreams->older_count++] = (struct older){port, pid, connections};
	return 0;
}

/* Give each end of a service its client's inode, and note these in @owners. Return their number. */
static size_t match_ends(struct search *search, struct socket_owner *owners)
{
	struct end *ends = search->ends;
	size_t count = 0;

	if (search->count)
		qsort(ends, search->count, sizeof(*ends), compare_ends);
	for (size_t i = 0; i + 1 < search->count; i++) {
		if (ends[i].is_client || compare_connections(&ends[i], &ends[i + 1]))
			continue;
		ends[i].inode = ends[i + 1].inode;
		if (ends[i].inode)
			owners[count++].inode = ends[i].inode;
	}
	return count;
}

/* Count each connection that a service has for its client's process. */
static int count_older(struct upstreams *upstreams, const struct search *search,
		       const struct socket_owner *owners, size_t count)
{
	int r = 0;

	for (size_t i = 0; !r && i < search->count; i++) {
		const struct end *end = &search->ends[i];

		if (!end->is_client)
			r = add_older(upstreams, end->port,
				      process_owner(owners, count, end->inode), 1);
	}
	return r;
}

/* Find the processes of all these connections in one pass over /proc. */
static int keep_connections(struct upstreams *upstreams, struct search *search,
			    const struct outgoing_list *open)
{
	autofree struct socket_owner *owners =
		calloc(search->count + open->count + 1, sizeof(*owners));
	size_t count;
	int r;

	if (!owners)
		return -ENOMEM;
	count = match_ends(search, owners);
	count += upstreams_far_inodes(open, owners + count);
	process_owners(owners, count);
	r = count_older(upstreams, search, owners, count);
	/* Without these the front's connections are fewer than the upstream's, and their part is not known. */
	if (!r)
		(void)upstreams_keep_far(open, owners, count, &upstreams->far_before);
	return r;
}

int upstreams_begin(struct upstreams *upstreams, const struct run *base)
{
	struct search search = {.run = base};
	struct outgoing_list open = {};
	int fd, r = netns_open(NULL, &fd, &search.netns);

	if (!r && base->service_count)
		r = sockets_tcp(sockets_source(), SOCKET_BIT(SOCKET_ESTABLISHED), SOCKET_PLAIN,
				visit, &search);
	if (!r)
		r = search.error;
	if (!r && base->service_count)
		(void)outgoing_read(&open);
	if (!r)
		r = keep_connections(upstreams, &search, &open);
	free(open.list);
	free(search.ends);
	upstreams->netns = search.netns;
	upstreams->looked = !r;
	return r;
}

/* ---- a period's end ---- */

#define PORTS 65536

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Note where each service is. Those of @keys with a port are the document's, in its order. */
static int open_places(const struct loader *loader, const struct service_key *keys,
		       size_t key_count, struct reading *reading)
{
	struct run *run = reading->run;
	size_t at = 0;

	reading->places = calloc(run->service_count + 1, sizeof(*reading->places));
	reading->by_port = calloc(PORTS, sizeof(struct run_service *));
	if (!reading->places || !reading->by_port)
		return -ENOMEM;
	for (size_t i = 0; i < key_count && at < run->service_count; i++) {
		struct run_service *service = &run->services[at];

		if (!keys[i].port)
			continue;
		at++;
		if (!upstreams_is_looked_at(reading, service))
			continue;
		reading->places[reading->place_count++] =
			(struct place){loader_service_number(loader, (uint32_t)i), service};
		reading->by_port[service->port] = service;
	}
	if (reading->place_count)
		qsort(reading->places, reading->place_count, sizeof(*reading->places),
		      compare_places);
	return 0;
}

static void find_services(const struct reading *reading, struct fronts *fronts)
{
	for (size_t i = 0; reading->place_count && i < fronts->count; i++) {
		const struct place wanted = {.number = fronts->list[i].key.service};
		const struct place *found = bsearch(&wanted, reading->places, reading->place_count,
						    sizeof(*reading->places), compare_places);

		fronts->list[i].service = found ? found->service : NULL;
	}
}

static void add_owner(void *context, const struct owner_key *owner)
{
	add_front(context, owner, 0);
}

/* The calls of one upstream follow each other, so its row is the front's last one. */
static int add_row(struct run_service *front, uint16_t port, uint64_t connections)
{
	struct run_upstream *row =
		front->upstream_count ? &front->upstreams[front->upstream_count - 1] : NULL;

	if (!row || row->port != port)
		row = ARRAY_APPEND(front->upstreams, front->upstream_count);
	if (!row)
		return -ENOMEM;
	row->port = port;
	row->connections += connections;
	return 0;
}

/* Add the connections to all services that their process serves. */
static int add_rows_of(const struct reading *reading, const struct call *call)
{
	int r = 0;

	for (const struct front *owned = upstreams_first_owned(reading, call->pid);
	     !r && upstreams_is_owned(reading, owned, call->pid); owned++) {
		struct run_service *front = owned->service;

		if (front && front != call->upstream && front->exchanges)
			r = add_row(front, call->upstream->port, call->connections);
	}
	return r;
}

static void add_call(struct reading *reading, struct run_service *upstream, uint32_t pid,
		     uint64_t connections)
{
	if (upstream && connections)
		reading->calls[reading->call_count++] = (struct call){upstream, pid, connections};
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *x = a, *y = b;

	return x->upstream < y->upstream ? -1 : x->upstream > y->upstream;
}

/* Return how many connections of the process are of the period. */
static uint64_t opened(const struct upstreams *upstreams, const struct front *now)
{
	const struct fronts *before = &upstreams->before;
	const struct front *found = before->count ? bsearch(now, before->list, before->count,
							    sizeof(*now), compare_fronts)
						  : NULL;

	/* If there are fewer now, the kernel side has forgotten the process and begun again. */
	return found && found->connections <= now->connections
		       ? now->connections - found->connections
		       : now->connections;
}

static int add_rows(struct reading *reading)
{
	const struct upstreams *upstreams = reading->upstreams;
	int r = 0;

	reading->calls =
		calloc(reading->now.count + upstreams->older_count + 1, sizeof(*reading->calls));
	if (!reading->calls)
		return -ENOMEM;
	for (size_t i = 0; i < reading->now.count; i++) {
		const struct front *now = &reading->now.list[i];

		add_call(reading, now->service, now->key.pid, opened(upstreams, now));
	}
	for (size_t i = 0; i < upstreams->older_count; i++) {
		const struct older *older = &upstreams->older[i];

		add_call(reading, reading->by_port[older->port], older->pid, older->connections);
	}
	if (reading->call_count)
		qsort(reading->calls, reading->call_count, sizeof(*reading->calls), compare_calls);
	for (size_t i = 0; !r && i < reading->call_count; i++)
		r = add_rows_of(reading, &reading->calls[i]);
	return r;
}

/* Return how many connections each service had in the period, whoever opened them, by its index. */
static uint64_t *count_connections(const struct reading *reading)
{
	const struct upstreams *upstreams = reading->upstreams;
	const struct run *run = reading->run;
	uint64_t *counts = calloc(run->service_count + 1, sizeof(*counts));

	for (size_t i = 0; counts && i < run->service_count; i++)
		counts[i] = run->services[i].accepted;
	for (size_t i = 0; counts && i < upstreams->older_count; i++) {
		const struct run_service *service = reading->by_port[upstreams->older[i].port];

		if (service)
			counts[service - run->services] += upstreams->older[i].connections;
	}
	return counts;
}

/*
 * Complete the front's rows. If its processes serve the requests of another service, too, which of both the calls
 * are for is not known.
 */
static void complete_rows(const struct reading *reading, const uint64_t *connections,
			  struct run_service *front)
{
	const struct run_service *others[2];

	upstreams_served_too(reading, front, others);
	for (size_t i = 0; i < front->upstream_count; i++) {
		struct run_upstream *row = &front->upstreams[i];
		const struct run_service *upstream = reading->by_port[row->port];
		const struct run_service *other = others[others[0] == upstream];
		uint64_t all = connections[upstream - reading->run->services];

		row->others = all > row->connections ? all - row->connections : 0;
		if (other)
			row->serves_too = (struct run_number){true, other->port};
	}
}

static int complete_all(const struct reading *reading)
{
	autofree uint64_t *connections = count_connections(reading);
	struct run *run = reading->run;

	for (size_t i = 0; connections && i < run->service_count; i++)
		if (run->services[i].upstream_count)
			complete_rows(reading, connections, &run->services[i]);
	return connections ? 0 : -ENOMEM;
}

/* ---- upstreams that are not observed ---- */

/* Shorter service needs no explanation. */
#define SLOW_NS	    (1.0 * NSEC_PER_MSEC)
#define CALLS_NAMED 3

/* Of a service with more processes, these show what the others do, too. */
#define PROCESSES_MOST 64

static bool is_slow(const struct reading *reading, const struct run_service *service)
{
	return upstreams_is_looked_at(reading, service) &&
	       run_stage_mean(service, STAGE_SERVICE) >= SLOW_NS;
}

/* Name the destinations of the sockets that have owners, each once, without services that are observed. */
static int write_calls(const struct reading *reading, const struct outgoing_list *outgoing,
		       const struct socket_owner *owners, struct run_service *front)
{
	const char *named[CALLS_NAMED];
	char text[CALLS_NAMED * sizeof(outgoing->list->towards)] = "";
	size_t count = 0;

	for (size_t i = 0; i < outgoing->count && count < CALLS_NAMED; i++) {
		const char *towards = outgoing->list[i].towards;
		bool known = !owners[i].pid ||
			     (outgoing->list[i].here && reading->by_port[outgoing->list[i].port]);
		size_t length = strlen(text);

		for (size_t k = 0; k < count; k++)
			known |= !strcmp(named[k], towards);
		if (known)
			continue;
		named[count++] = towards;
		snprintf(text + length, sizeof(text) - length, "%s%s", length ? ", " : "", towards);
	}
	if (!count)
		return 0;
	front->calls = strdup(text);
	return front->calls ? 0 : -ENOMEM;
}

/* Look at the sockets that the processes of @front hold. */
static int name_calls(const struct reading *reading, const struct outgoing_list *outgoing,
		      struct run_service *front)
{
	autofree struct socket_owner *owners = calloc(outgoing->count, sizeof(*owners));
	unsigned int processes = 0;

	if (!owners)
		return -ENOMEM;
	for (size_t i = 0; i < outgoing->count; i++)
		owners[i].inode = outgoing->list[i].inode;
	for (size_t i = 0; i < reading->owners.count && processes < PROCESSES_MOST; i++) {
		if (reading->owners.list[i].service != front)
			continue;
		process_owned(reading->owners.list[i].key.pid, owners, outgoing->count);
		processes++;
	}
	return write_calls(reading, outgoing, owners, front);
}

/* Name what slow services are connected to now, beside the upstreams that are observed. */
static int name_all_calls(const struct reading *reading)
{
	struct run *run = reading->run;
	struct outgoing_list outgoing = {};
	bool read = false;
	int r = 0;

	for (size_t i = 0; !r && i < run->service_count; i++) {
		if (!is_slow(reading, &run->services[i]))
			continue;
		if (!read && outgoing_read(&outgoing))
			return 0; /* not looked for */
		read = true;
		if (outgoing.count)
			r = name_calls(reading, &outgoing, &run->services[i]);
	}
	free(outgoing.list);
	return r;
}

static int read_all(struct reading *reading, const struct loader *loader)
{
	int r = read_fronts(loader, &reading->now);

	loader_owners(loader, add_owner, &reading->owners);
	if (reading->owners.count)
		qsort(reading->owners.list, reading->owners.count, sizeof(*reading->owners.list),
		      upstreams_compare_processes);
	find_services(reading, &reading->now);
	find_services(reading, &reading->owners);
	if (!r)
		r = add_rows(reading);
	if (!r)
		r = complete_all(reading);
	if (!r)
		r = upstreams_name_places(reading, loader);
	return r ? r : name_all_calls(reading);
}

int upstreams_read(const struct upstreams *upstreams, const struct loader *loader,
		   const struct service_key *keys, size_t key_count, struct run *run)
{
	struct reading reading = {.upstreams = upstreams, .run = run};
	int r = 0;

	if (upstreams)
		r = timed_calls_read(upstreams->timed_before, loader, keys, key_count, run);
	if (r || !upstreams || !upstreams->looked)
		return r;
	r = open_places(loader, keys, key_count, &reading);
	if (!r)
		r = read_all(&reading, loader);
	free(reading.places);
	free(reading.by_port);
	free(reading.now.list);
	free(reading.owners.list);
	free(reading.calls);
	return r;
}
