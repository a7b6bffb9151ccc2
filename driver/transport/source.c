// SPDX-License-Identifier: MIT
/*
 * Source addresses and ports. Neighbours: options/load.c (--source), link.c and engine/udp/socket.c
 * (connect).
 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sojourn/address.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"

#define DISCARD 9 /* the discard port, as any will do: nothing is sent */

#ifndef TCP_FASTOPEN_NO_COOKIE
#define TCP_FASTOPEN_NO_COOKIE 34 /* Linux 4.15 */
#endif

/* Return the last 32 bits of an address, in network order, which a range counts up. */
static uint32_t *tail_of(struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return &((struct sockaddr_in *)address)->sin_addr.s_addr;
	return &((struct sockaddr_in6 *)address)->sin6_addr.s6_addr32[3];
}

static int append(struct source_set *set, const struct sockaddr_storage *first, size_t count)
{
	struct sockaddr_storage *list;

	list = realloc(set->addresses, (set->count + count) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	set->addresses = list;
	for (size_t i = 0; i < count; i++) {
		list[set->count] = *first;
		*tail_of(&list[set->count]) =
			htonl(ntohl(*tail_of(&list[set->count])) + (uint32_t)i);
		set->count++;
	}
	return 0;
}

/* Return whether the addresses differ only in their last 32 bits, and @last is not below @first. */
static bool is_range(struct sockaddr_storage first, struct sockaddr_storage last)
{
	uint32_t low = ntohl(*tail_of(&first)), high = ntohl(*tail_of(&last));

	*tail_of(&first) = *tail_of(&last) = 0;
	return first.ss_family == last.ss_family && low <= high &&
	       !memcmp(&first, &last, sizeof(first));
}

static int parse_item(char *item, struct source_set *set, char **ret_error)
{
	struct sockaddr_storage first, last;
	char *dash = strchr(item, '-');
	uint64_t count;

	if (dash)
		*dash = '\0';
	if (address_parse(item, &first) || (dash && address_parse(dash + 1, &last)))
		return refuse(ret_error,
			      "--source: '%s%s%s' is not an address or a range of them; write "
			      "them like 127.0.0.2,127.0.0.10-127.0.0.40",
			      item, dash ? "-" : "", dash ? dash + 1 : "");
	if (!dash)
		return append(set, &first, 1);
	if (!is_range(first, last))
		return refuse(
			ret_error,
			"--source: the range '%s-%s' must go up and differ in the last 32 bits "
			"only",
			item, dash + 1);
	count = (uint64_t)ntohl(*tail_of(&last)) - ntohl(*tail_of(&first)) + 1;
	if (set->count + count > SOURCE_ADDRESSES_MAX)
		return refuse(ret_error, "--source: more than %d addresses", SOURCE_ADDRESSES_MAX);
	return append(set, &first, count);
}

static int compare_addresses(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct sockaddr_storage));
}

static void print_address(const struct sockaddr_storage *address,
			  char text[static INET6_ADDRSTRLEN])
{
	size_t size;

	address_format(address->ss_family, address_bytes((const struct sockaddr *)address, &size),
		       0, text, INET6_ADDRSTRLEN);
}

static bool is_next(const struct sockaddr_storage *address, const struct sockaddr_storage *next)
{
	struct sockaddr_storage follows = *address;
	uint32_t *tail = tail_of(&follows);

	*tail = htonl(ntohl(*tail) + 1);
	return *tail && !compare_addresses(&follows, next);
}

size_t source_print(const struct source_set *set, size_t index, char ret_text[static SOURCE_TEXT])
{
	size_t last = index;
	char text[INET6_ADDRSTRLEN];

	print_address(&set->addresses[index], text);
	while (last + 1 < set->count && is_next(&set->addresses[last], &set->addresses[last + 1]))
		last++;
	snprintf(ret_text, SOURCE_TEXT, "%s", text);
	if (last == index)
		return index + 1;
	print_address(&set->addresses[last], text);
	snprintf(ret_text + strlen(ret_text), SOURCE_TEXT - strlen(ret_text), "-%s", text);
	return last + 1;
}

/* connect() of a datagram socket looks up the route, as that of a stream does. */
int source_route(const struct sockaddr_storage *server, struct sockaddr_storage *ret_own)
{
	socklen_t length = sizeof(*ret_own);
	autoclose int fd = socket(server->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*ret_own = (struct sockaddr_storage){0};
	if (fd < 0 || connect(fd, (const struct sockaddr *)server, address_length(server)) ||
	    getsockname(fd, (struct sockaddr *)ret_own, &length))
		return -errno;
	return 0;
}

int source_of_route(const struct sockaddr_storage *server, char ret_text[static SOURCE_TEXT])
{
	struct sockaddr_storage own;
	char text[INET6_ADDRSTRLEN];
	int err = source_route(server, &own);

	if (err)
		return err;
	print_address(&own, text);
	snprintf(ret_text, SOURCE_TEXT, "%s", text);
	return 0;
}

/* Ports of a repeated address would count twice. */
static int refuse_twice(const struct source_set *set, char **ret_error)
{
	autofree struct sockaddr_storage *sorted = calloc(set->count, sizeof(*sorted));
	char text[INET6_ADDRSTRLEN];

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, set->addresses, set->count * sizeof(*sorted));
	qsort(sorted, set->count, sizeof(*sorted), compare_addresses);
	for (size_t i = 1; i < set->count; i++) {
		if (compare_addresses(&sorted[i - 1], &sorted[i]))
			continue;
		print_address(&sorted[i], text);
		return refuse(ret_error, "--source: '%s' is named twice; each address once", text);
	}
	return 0;
}

int source_parse(const char *text, struct source_set *set, char **ret_error)
{
	autofree char *copy = strdup(text);
	char *rest = copy, *item;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (item = strsep(&rest, ",")))
		err = parse_item(item, set, ret_error);
	return err ? err : refuse_twice(set, ret_error);
}

void source_clear(struct source_set *set)
{
	free(set->addresses);
	*set = (struct source_set){0};
}

void source_keep_share(struct source_set *set, uint32_t index, uint32_t sharers)
{
	size_t begin = set->count * index / sharers, end = set->count * (index + 1) / sharers;

	if (!set->count)
		return;
	memmove(set->addresses, set->addresses + begin, (end - begin) * sizeof(*set->addresses));
	set->count = end - begin;
}

int source_check(const struct source_set *set, int family, char **ret_error)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < set->count; i++) {
		struct sockaddr_storage *address = &set->addresses[i];
		autoclose int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		bool same = address->ss_family == family;

		if (fd < 0)
			return -errno;
		if (same && !bind(fd, (struct sockaddr *)address, address_length(address)))
			continue;
		print_address(address, text);
		return refuse(ret_error, "--source: '%s' cannot be used: %s", text,
			      same ? strerror(errno) : "the target's address is of another family");
	}
	return 0;
}

/*
 * TCP Fast Open without a cookie: connect() chooses the source port, and the SYN waits for a first
 * write(), which never comes. No packet, no counter, no TIME_WAIT.
 */
static int prepare(int fd, uint32_t range)
{
	const int on = 1;

	if (setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof(on)))
		return -errno;
	return 0;
}

static int choose_port(uint32_t range, uint16_t *ret_port)
{
	const struct sockaddr_in goal = {
		.sin_family = AF_INET,
		.sin_port = htons(DISCARD),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	struct sockaddr_in own = {0};
	socklen_t length = sizeof(own);
	autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : prepare(fd, range);

	if (err)
		return err;
	/* EINPROGRESS: a SYN left, as the kernel has suspended Fast Open; it is refused. */
	if ((connect(fd, (const struct sockaddr *)&goal, sizeof(goal)) && errno != EINPROGRESS) ||
	    getsockname(fd, (struct sockaddr *)&own, &length))
		return -errno;
	*ret_port = ntohs(own.sin_port);
	return 0;
}

static bool is_mixed(const uint16_t *ports, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if ((ports[i] ^ ports[0]) & 1)
			return true;
	return false;
}

enum source_choice source_probe_judge(int err, const uint16_t *ports, size_t count)
{
	return !err && is_mixed(ports, count) ? SOURCE_RANGE : SOURCE_OWN;
}

int source_probe(uint32_t range, uint16_t ports[static SOURCE_PROBE_PORTS], size_t *ret_count)
{
	size_t count = 0;
	int err = 0;

	while (!err && count < SOURCE_PROBE_PORTS && !is_mixed(ports, count)) {
		err = choose_port(range, &ports[count]);
		count++;
	}
	if (!err)
		*ret_count = count;
	return err;
}

void source_settle(struct source_set *set, uint32_t port_range)
{
	uint16_t ports[SOURCE_PROBE_PORTS];
	size_t count = 0;
	int err;

	if (set->choice != SOURCE_RANGE || !port_range)
		return;
	err = source_probe(port_range, ports, &count);
	set->choice = source_probe_judge(err, ports, count);
}

void source_begin(struct source_cursor *cursor, uint32_t port_range, uint64_t random)
{
	*cursor = (struct source_cursor){
		.next = random >> 16, .port_range = port_range, .own_ports = port_range};
}

uint32_t source_divide(uint32_t range, uint32_t first, uint32_t count, uint32_t all)
{
	uint64_t low = range & 0xffff, ports = (range >> 16) - low + 1;
	uint64_t begin, end;

	if (!range || all <= count || ports < all)
		return range;
	begin = low + ports * first / all;
	end = low + ports * (first + count) / all;
	return (uint32_t)(begin | (end - 1) << 16);
}

bool source_chooses_ports(const struct source_set *set, const struct source_cursor *cursor)
{
	return cursor->port_range && set->choice == SOURCE_OWN;
}

static int family_of(int fd)
{
	int family = AF_INET;
	socklen_t length = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	return family;
}

/* Use every address before the next port. */
static int bind_port(const struct source_set *set, struct source_cursor *cursor, int fd)
{
	uint32_t low = cursor->own_ports & 0xffff, high = cursor->own_ports >> 16;
	size_t addresses = source_addresses(set);
	struct sockaddr_storage address = {.ss_family = (sa_family_t)family_of(fd)};
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	for (uint32_t tries = 0; tries <= high - low; tries++) {
		uint64_t next = cursor->next++;

		if (set->count)
			address = set->addresses[next % addresses];
		/* The port is at the same place in both families. */
		((struct sockaddr_in *)&address)->sin_port =
			htons((uint16_t)(low + next / addresses % (high - low + 1)));
		if (!bind(fd, (struct sockaddr *)&address, address_length(&address)))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRNOTAVAIL;
}

static int bind_address(const struct source_set *set, struct source_cursor *cursor, int fd)
{
	const struct sockaddr_storage *address;
	const int on = 1;

	if (!set->count)
		return 0;
	address = &set->addresses[cursor->next++ % set->count];
	/* Otherwise bind() chooses a port for exclusive use, and half of the range is lost. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	return bind(fd, (const struct sockaddr *)address, address_length(address)) ? -errno : 0;
}

int source_bind(const struct source_set *set, struct source_cursor *cursor, int fd)
{
	if (set->choice == SOURCE_RANGE && cursor->port_range)
		setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &cursor->port_range,
			   sizeof(cursor->port_range));
	if (source_chooses_ports(set, cursor))
		return bind_port(set, cursor, fd);
	return bind_address(set, cursor, fd);
}

int source_replace(const struct source_set *set, struct source_cursor *cursor, int fd)
{
	autoclose int fresh = socket(family_of(fd), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fresh < 0)
		return -errno;
	err = source_bind(set, cursor, fresh);
	if (err)
		return err;
	return dup3(fresh, fd, O_CLOEXEC) < 0 ? -errno : 0;
}

/* Use wire/flow.h's form: IPv4 as ::ffff:a.b.c.d. */
static void fill_end(const struct sockaddr_storage *from, __u32 address[static 4], __u16 *ret_port)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (from->ss_family == AF_INET6) {
		memcpy(&v6, from, sizeof(v6));
		memcpy(address, &v6.sin6_addr, sizeof(v6.sin6_addr));
		*ret_port = ntohs(v6.sin6_port);
		return;
	}
	memcpy(&v4, from, sizeof(v4));
	address[0] = address[1] = 0;
	address[2] = htonl(0xffff);
	address[3] = v4.sin_addr.s_addr;
	*ret_port = ntohs(v4.sin_port);
}

static bool is_unspecified(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;

	if (address->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr);
	return v4->sin_addr.s_addr == htonl(INADDR_ANY);
}

int source_flow(int fd, const struct sockaddr_storage *server, struct flow *ret_flow)
{
	struct sockaddr_storage local = {0}, peer = *server;
	socklen_t length = sizeof(local);

	if (getsockname(fd, (struct sockaddr *)&local, &length))
		return -errno;
	length = sizeof(peer);
	if (is_unspecified(&peer) && getpeername(fd, (struct sockaddr *)&peer, &length))
		return -errno;
	fill_end(&local, ret_flow->client, &ret_flow->client_port);
	fill_end(&peer, ret_flow->server, &ret_flow->server_port);
	return 0;
}
