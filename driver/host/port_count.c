// SPDX-License-Identifier: MIT
/*
 * One look at the sockets towards the targets; see port_count.h. Neighbour: port_watch.c (when).
 */
#include "port_count.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "engine/engine.h"
#include "sojourn/array.h"
#include "sojourn/inet_diag.h"

/* All states with a destination: not TCP_LISTEN and TCP_CLOSE. */
#define STATES (0xfff & ~(1 << TCP_LISTEN) & ~(1 << TCP_CLOSE))
/* Small, so that a look is many short calls between which others get the CPU. */
#define ANSWER_SIZE 8192

struct address {
	uint32_t words[4]; /* as in struct flow */
};

struct goal {
	struct address address;
	uint16_t port; /* host order */
	uint64_t used; /* in the current look */
	uint64_t time_wait;
};

struct port_count {
	uint16_t low, high;
	struct address *sources; /* sorted */
	size_t source_count;
	bool routed; /* sources not given: those that reach the targets */
	struct goal goals[PORT_COUNT_TARGETS_MAX];
	size_t goal_count;
};

/* One condition of the kernel's filter: a destination, and what follows a match. */
struct condition {
	struct inet_diag_bc_op op;
	/*
	 * The fields of struct inet_diag_hostcond, which ends in an array and cannot be a member.
	 */
	uint8_t family;
	uint8_t prefix_length;
	int32_t port;
	uint32_t address[4];
	struct inet_diag_bc_op found;
};

_Static_assert(offsetof(struct condition, address) - offsetof(struct condition, family) ==
		       sizeof(struct inet_diag_hostcond),
	       "the address follows as it does there");

_Static_assert(sizeof(struct condition) == 32, "no hidden padding");

static struct address ipv4(uint32_t address)
{
	return (struct address){{0, 0, htonl(0xffff), address}};
}

static struct address address_of(const struct sockaddr_storage *address)
{
	struct address result;

	if (address->ss_family == AF_INET)
		return ipv4(((const struct sockaddr_in *)address)->sin_addr.s_addr);
	memcpy(&result, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(result));
	return result;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct address));
}

static int add_source(struct port_count *count, const struct sockaddr_storage *address)
{
	struct address source = address_of(address);
	struct address *added;

	if (count->source_count &&
	    bsearch(&source, count->sources, count->source_count, sizeof(source), compare))
		return 0;
	added = ARRAY_APPEND(count->sources, count->source_count);
	if (!added)
		return -ENOMEM;
	*added = source;
	qsort(count->sources, count->source_count, sizeof(*added), compare);
	return 0;
}

static int copy_sources(struct port_count *count, const struct source_set *sources)
{
	count->sources = calloc(sources->count, sizeof(*count->sources));
	if (!count->sources)
		return -ENOMEM;
	for (size_t i = 0; i < sources->count; i++)
		count->sources[i] = address_of(&sources->addresses[i]);
	count->source_count = sources->count;
	qsort(count->sources, count->source_count, sizeof(*count->sources), compare);
	return 0;
}

int port_count_new(const struct source_set *sources, uint32_t range, struct port_count **ret_count)
{
	struct port_count *count;
	int err = 0;

	if (!range)
		return -EINVAL;
	count = calloc(1, sizeof(*count));
	if (!count)
		return -ENOMEM;
	count->low = (uint16_t)range;
	count->high = (uint16_t)(range >> 16);
	count->routed = !sources->count;
	if (sources->count)
		err = copy_sources(count, sources);
	if (err)
		port_count_free(count);
	else
		*ret_count = count;
	return err;
}

void port_count_free(struct port_count *count)
{
	if (!count)
		return;
	free(count->sources);
	free(count);
}

static bool is_tcp(const struct target *target)
{
	const struct engine *engine = target->engine;

	return engine && !engine_has(engine, ENGINE_DATAGRAMS) &&
	       !engine_has(engine, ENGINE_LOCAL) &&
	       (target->address.ss_family == AF_INET || target->address.ss_family == AF_INET6);
}

static struct goal *goal_of(struct port_count *count, const struct address *address, uint16_t port)
{
	for (size_t i = 0; i < count->goal_count; i++)
		if (count->goals[i].port == port && !compare(&count->goals[i].address, address))
			return &count->goals[i];
	return NULL;
}

int port_count_add(struct port_count *count, const struct target *target)
{
	struct sockaddr_storage own;
	struct address address;
	int err;

	if (!is_tcp(target))
		return -EPROTONOSUPPORT;
	address = address_of(&target->address);
	if (goal_of(count, &address, target->port))
		return 0;
	if (count->goal_count == PORT_COUNT_TARGETS_MAX)
		return -E2BIG;
	count->goals[count->goal_count++] = (struct goal){.address = address, .port = target->port};
	if (!count->routed)
		return 0;
	err = source_route(&target->address, &own);
	return err ? err : add_source(count, &own);
}

uint64_t port_count_sources(const struct port_count *count)
{
	return count->routed ? 1 : count->source_count;
}

/* ---- queries ---- */

/*
 * Write a chain of conditions. After a match comes a jump to the end: yes. Without one, the next
 * condition follows; the last one leads beyond the end: no (inet_diag_bc_run()).
 */
static size_t write_conditions(const struct port_count *count, struct condition *conditions)
{
	const size_t size = sizeof(*conditions), op = sizeof(struct inet_diag_bc_op);

	for (size_t i = 0; i < count->goal_count; i++) {
		const struct goal *goal = &count->goals[i];
		bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)&goal->address);
		size_t left = (count->goal_count - i) * size;

		conditions[i] = (struct condition){
			.op = {INET_DIAG_BC_D_COND, (unsigned char)(size - op),
			       (unsigned short)(left > size ? size : size + op)},
			.family = mapped ? AF_INET : AF_INET6,
			.prefix_length = mapped ? 32 : 128,
			.port = goal->port,
			.found = {INET_DIAG_BC_JMP, (unsigned char)op,
				  (unsigned short)(left - size + op)},
		};
		memcpy(conditions[i].address, goal->address.words + (mapped ? 3 : 0),
		       mapped ? 4 : 16);
	}
	return count->goal_count * size;
}

static struct address end_of(uint8_t family, const __be32 *words)
{
	struct address result;

	if (family == AF_INET)
		return ipv4(words[0]);
	memcpy(&result, words, sizeof(result));
	return result;
}

static void count_socket(void *context, const void *socket, size_t length)
{
	const struct inet_diag_msg *m = socket;
	struct port_count *count = context;
	struct address from = end_of(m->idiag_family, m->id.idiag_src);
	struct address to = end_of(m->idiag_family, m->id.idiag_dst);
	uint16_t port = ntohs(m->id.idiag_sport);
	struct goal *goal = goal_of(count, &to, ntohs(m->id.idiag_dport));

	(void)length;
	if (!goal || port < count->low || port > count->high ||
	    !bsearch(&from, count->sources, count->source_count, sizeof(from), compare))
		return;
	goal->used++;
	goal->time_wait += m->idiag_state == TCP_TIME_WAIT;
}

static void find_fullest(const struct port_count *count, struct port_fullest *ret_fullest)
{
	const struct goal *fullest = &count->goals[0];

	for (size_t i = 1; i < count->goal_count; i++)
		if (count->goals[i].used > fullest->used)
			fullest = &count->goals[i];
	*ret_fullest =
		(struct port_fullest){.used = fullest->used, .time_wait = fullest->time_wait};
	memcpy(ret_fullest->towards.server, &fullest->address, sizeof(fullest->address));
	ret_fullest->towards.server_port = fullest->port;
}

int port_count_look(struct port_count *count, struct port_fullest *ret_fullest)
{
	struct condition conditions[PORT_COUNT_TARGETS_MAX];
	struct inet_diag_question question = {
		.states = STATES,
		.filter = conditions,
		.filter_bytes = write_conditions(count, conditions),
		.answer_bytes = ANSWER_SIZE,
		.visit = count_socket,
		.context = count,
	};
	int err;

	for (size_t i = 0; i < count->goal_count; i++)
		count->goals[i].used = count->goals[i].time_wait = 0;
	err = inet_diag_ask(&question);
	if (!err)
		find_fullest(count, ret_fullest);
	return err;
}

int port_count_towards(const struct target *target, const struct source_set *sources,
		       uint32_t range, struct port_fullest *ret_fullest)
{
	struct port_count *count;
	int err = port_count_new(sources, range, &count);

	if (err)
		return err;
	err = port_count_add(count, target);
	if (!err)
		err = port_count_look(count, ret_fullest);
	port_count_free(count);
	return err;
}
