// SPDX-License-Identifier: MIT
/* Exchanges with ourselves; see exchanges.h. tests/bench/pingpong.c makes the same for longer measurements. */
#include "exchanges.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "spread.h"
#include "host/net/loopback.h"
#include "sojourn/clock.h"

#define BATCH	32   /* exchanges: long enough for the clock's own time to vanish in them */
#define BATCHES 1024 /* maximum of batches in a window, at which it ends */

/* The most frequent protocol, HTTP, recognised by its first bytes. */
static const char request[] =
	"GET /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: sojourn-probe\r\n"
	"Accept: */*\r\n\r\n";
static const char response[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
	"Connection: keep-alive\r\n\r\nok\n";

struct exchanges {
	int listener;
	int client;
	int server;
	struct sockaddr_in address;
	uint64_t count;
	double batches[BATCHES];
};

/* A thread that moves to another CPU leaves its data in the former one's cache. */
static void stay_here(void)
{
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	if (cpu >= 0 && cpu < CPU_SETSIZE) {
		CPU_SET(cpu, &cpus);
		(void)sched_setaffinity(0, sizeof(cpus), &cpus);
	}
}

int exchanges_open(struct exchanges **ret_exchanges)
{
	CLEANUP(cleanup_exchanges_close)
	struct exchanges *exchanges = calloc(1, sizeof(*exchanges));
	int r;

	if (!exchanges)
		return -ENOMEM;
	exchanges->listener = exchanges->client = exchanges->server = -1;
	/* Without the right to make a namespace the current one is used. */
	r = loopback_enter();
	if (!r || r == -EPERM)
		r = loopback_listen(&exchanges->address);
	if (r < 0)
		return r;
	exchanges->listener = r;
	stay_here();
	*ret_exchanges = TAKE_PTR(exchanges);
	return 0;
}

void exchanges_close(struct exchanges *exchanges)
{
	if (!exchanges)
		return;
	cleanup_close(&exchanges->client);
	cleanup_close(&exchanges->server);
	cleanup_close(&exchanges->listener);
	free(exchanges);
}

uint16_t exchanges_port(const struct exchanges *exchanges)
{
	return ntohs(exchanges->address.sin_port);
}

uint64_t exchanges_count(const struct exchanges *exchanges)
{
	return exchanges->count;
}

int exchanges_connect(struct exchanges *exchanges)
{
	return loopback_connect(exchanges->listener, &exchanges->address, &exchanges->client,
				&exchanges->server);
}

/* Loopback has delivered when send() returns; where a softirq is late, the read waits for it. */
static int pass(int from, int to, const char *text, size_t length)
{
	char buffer[sizeof(request) + sizeof(response)];
	ssize_t n = send(from, text, length, MSG_NOSIGNAL);

	if (n == (ssize_t)length)
		n = recv(to, buffer, sizeof(buffer), 0);
	if (n < 0)
		return -errno;
	return n == (ssize_t)length ? 0 : -EPROTO;
}

static int run_batch(struct exchanges *exchanges, double *ret_ns)
{
	uint64_t begin_ns = clock_now_ns();
	int r = 0;

	for (size_t i = 0; !r && i < BATCH; i++) {
		r = pass(exchanges->client, exchanges->server, request, strlen(request));
		if (!r)
			r = pass(exchanges->server, exchanges->client, response, strlen(response));
		exchanges->count += !r;
	}
	*ret_ns = (double)(clock_now_ns() - begin_ns) / BATCH;
	return r;
}

int exchanges_run(struct exchanges *exchanges, uint64_t window_ns, double *ret_ns)
{
	uint64_t end_ns = clock_now_ns() + window_ns;
	size_t batches = 0;
	int r;

	do {
		r = run_batch(exchanges, &exchanges->batches[batches++]);
	} while (!r && batches < BATCHES && clock_now_ns() < end_ns);
	if (!r)
		*ret_ns = median_of(exchanges->batches, batches);
	return r;
}
