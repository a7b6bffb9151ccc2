// SPDX-License-Identifier: MIT
/*
 * pingpong PORT FILE [ADDRESS]: exchanges over one loopback TCP connection (to 127.0.0.1), both ends of which belong
 * to this one thread. Their texts are heads of HTTP/1.1. Nothing waits and nothing is woken, so the time of an exchange is known to some
 * nanoseconds. Batches of them are timed and put into FILE, which tests/bench/observer.py reads.
 *
 * Prints "listening", and connects after a line on its standard input.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH	       100  /* exchanges */
#define BATCHES	       4096 /* in FILE, the latest */
#define REQUEST_BYTES  100
#define RESPONSE_BYTES 250

struct batches {
	uint64_t count;
	uint64_t exchange_ns[BATCHES]; /* mean of a batch */
};

static char request[REQUEST_BYTES + 1], response[RESPONSE_BYTES + 1];

/* Make a head of @length bytes: its last field, which has no value yet, gets zeros. */
static void fill(char *text, size_t length, const char *head)
{
	static const char end[] = "\r\n\r\n";
	int zeros = (int)(length - strlen(head) - strlen(end));

	snprintf(text, length + 1, "%s%0*d%s", head, zeros, 0, end);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int connect_both(uint16_t port, const char *to, int *ret_client, int *ret_server)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {inet_addr(to)}};
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int yes = 1;

	if (listener < 0 || client < 0 || bind(listener, (void *)&address, sizeof(address)) ||
	    listen(listener, 1))
		return -1;
	puts("listening");
	fflush(stdout);
	if (getchar() == EOF || connect(client, (void *)&address, sizeof(address)))
		return -1;
	*ret_client = client;
	*ret_server = accept(listener, NULL, NULL);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return *ret_server < 0
		       ? -1
		       : setsockopt(*ret_server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

/* Loopback delivers before send() returns: every recv() finds its data. */
static int exchange(int client, int server)
{
	static char buffer[4096];

	return send(client, request, REQUEST_BYTES, 0) == REQUEST_BYTES &&
	       recv(server, buffer, sizeof(buffer), 0) == REQUEST_BYTES &&
	       send(server, response, RESPONSE_BYTES, 0) == RESPONSE_BYTES &&
	       recv(client, buffer, sizeof(buffer), 0) == RESPONSE_BYTES;
}

static void run(struct batches *batches, int client, int server)
{
	for (;;) {
		uint64_t begin = now_ns();

		for (int i = 0; i < BATCH; i++) {
			if (!exchange(client, server))
				return;
		}
		batches->exchange_ns[batches->count % BATCHES] = (now_ns() - begin) / BATCH;
		__atomic_store_n(&batches->count, batches->count + 1, __ATOMIC_RELEASE);
	}
}

int main(int argc, char **argv)
{
	int client, server,
		file = argc == 3 || argc == 4 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	struct batches *batches;

	if (file < 0 || ftruncate(file, sizeof(*batches)))
		return EXIT_FAILURE;
	batches = mmap(NULL, sizeof(*batches), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (batches == MAP_FAILED ||
	    connect_both((uint16_t)strtoul(argv[1], NULL, 10), argc == 4 ? argv[3] : "127.0.0.1",
			 &client, &server))
		return EXIT_FAILURE;
	fill(request, REQUEST_BYTES,
	     "GET /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: pingpong-");
	fill(response, RESPONSE_BYTES,
	     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\nServer: pingpong-");
	puts("running");
	fflush(stdout);
	run(batches, client, server);
	return EXIT_FAILURE;
}
