// SPDX-License-Identifier: MIT
/* The clients of the HTTP endpoint; see room.h. */
#include "room.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "address.h"
#include "sojourn/clock.h"

/* Extra slots: a new connection is accepted while the one that makes room for it still closes. */
#define SPARE 16U

int http_room_open(struct http_room *room, const struct sink_http_limits *limits)
{
	room->slots = limits->connections + SPARE;
	room->clients = calloc(room->slots, sizeof(*room->clients));
	room->polls = calloc(room->slots, sizeof(*room->polls));
	if (!room->clients || !room->polls)
		return -ENOMEM;
	for (unsigned int i = 0; i < room->slots; i++)
		room->clients[i].fd = -1;
	return 0;
}

void http_room_close(struct http_room *room)
{
	free(room->clients);
	free(room->polls);
}

void http_room_set_deadline(struct http_client *client, unsigned int seconds)
{
	if (!client->leaving)
		client->deadline_ns = clock_now_ns() + seconds * NSEC_PER_SEC;
}

/* The descriptor belongs to libmicrohttpd. After the shutdown it reports the end of the connection. */
static void send_away(struct http_client *client)
{
	shutdown(client->fd, SHUT_RDWR);
	client->leaving = true;
	client->deadline_ns = UINT64_MAX;
}

/*
 * Return the order of removal: strangers, then connections that have their answer, then those that
 * wait for one. The newest connection comes last: its request may still be unread.
 */
static unsigned int rank_of(const struct http_room *room, const struct http_client *client)
{
	if (room->round - client->round < 2)
		return 3;
	return client->admitted ? 1U + client->asking : 0;
}

static bool goes_before(const struct http_room *room, const struct http_client *a,
			const struct http_client *b)
{
	if (rank_of(room, a) != rank_of(room, b))
		return rank_of(room, a) < rank_of(room, b);
	return a->number < b->number;
}

/* Count the clients of @newcomer's address, or @all, and find the one to remove first. */
static unsigned int count_clients(struct http_room *room, const struct http_client *newcomer,
				  bool all, struct http_client **ret_first)
{
	struct http_client *first = NULL;
	unsigned int count = 0;

	for (unsigned int i = 0; i < room->slots; i++) {
		struct http_client *client = &room->clients[i];

		if (client->fd < 0 || client->leaving ||
		    (!all && !IN6_ARE_ADDR_EQUAL(&client->peer, &newcomer->peer)))
			continue;
		count++;
		if (client != newcomer && (!first || goes_before(room, client, first)))
			first = client;
	}
	*ret_first = first;
	return count;
}

/* Clients with unread bytes that may be skipped: each costs a system call. */
#define PASSED_OVER 8

/* Remove one of the others if there are more than @most. */
static void make_room(struct http_room *room, const struct http_client *newcomer, bool all,
		      unsigned int most)
{
	struct http_client *first;
	char byte;

	for (unsigned int i = 0; i < PASSED_OVER; i++) {
		if (count_clients(room, newcomer, all, &first) <= most || !first)
			return;
		if (rank_of(room, first) || recv(first->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
			break;
		first->round = room->round;
	}
	send_away(first);
}

struct http_client *http_room_add(struct http_room *room, const struct sink_http_limits *limits,
				  int fd)
{
	for (unsigned int i = 0; i < room->slots; i++) {
		struct http_client *client = &room->clients[i];

		if (client->fd >= 0)
			continue;
		*client = (struct http_client){.fd = fd,
					       .peer = http_address_peer(fd),
					       .number = ++room->connections,
					       .round = room->round};
		http_room_set_deadline(client, limits->head_s);
		make_room(room, client, false, limits->per_peer);
		make_room(room, client, true, limits->connections);
		return client;
	}
	return NULL;
}

uint64_t http_room_deadline(const struct http_room *room)
{
	uint64_t next = UINT64_MAX;

	for (unsigned int i = 0; i < room->slots; i++) {
		if (room->clients[i].fd >= 0 && room->clients[i].deadline_ns < next)
			next = room->clients[i].deadline_ns;
	}
	return next;
}

/* A client that sends a byte now and then is never idle, nor is one that reads slowly. */
void http_room_expire(struct http_room *room)
{
	uint64_t now = clock_now_ns();

	for (unsigned int i = 0; i < room->slots; i++) {
		struct http_client *client = &room->clients[i];

		if (client->fd >= 0 && client->deadline_ns <= now)
			send_away(client);
	}
}

/*
 * libmicrohttpd (0.9.75) polls edge-triggered and takes a short read for the last one. It misses a client's FIN that
 * came together with its last bytes, and would keep the connection until it is idle for too long. Shutting down the
 * reading side, which has ended anyway, makes a new edge.
 */
void http_room_wake_ended(struct http_room *room)
{
	char byte;

	for (unsigned int i = 0; i < room->slots; i++) {
		const struct http_client *client = &room->clients[i];

		room->polls[i].fd = client->ended ? -1 : client->fd;
		room->polls[i].events = POLLRDHUP;
	}
	if (poll(room->polls, room->slots, 0) <= 0)
		return;
	for (unsigned int i = 0; i < room->slots; i++) {
		int fd = room->polls[i].fd;

		if (fd < 0 || !room->polls[i].revents)
			continue;
		/* With bytes before the end, libmicrohttpd has more to read and comes back itself. */
		if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
			continue;
		shutdown(fd, SHUT_RD);
		room->clients[i].ended = true;
	}
}
