// SPDX-License-Identifier: MIT
/* Exchanges with ourselves; see exchanges.h. tests/bench/pingpong.c makes the same for longer measurements. */
#include "exchanges.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "sojourn/clock.h"
#include "spread.h"

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

/*
 * Our own namespace has no firewall and no other sockets. Without the right to make one the current
 * one is used.
 */
static int enter_namespace(void)
{
	struct ifreq request_up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	autoclose int fd = -1;

	if (unshare(CLONE_NEWNET) < 0)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request_up) < 0 ? -errno : 0;
}

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

static int listen_here(struct exchanges *exchanges)
{
	socklen_t size = sizeof(exchanges->address);

	exchanges->address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	exchanges->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (exchanges->listener < 0 ||
	    bind(exchanges->listener, (struct sockaddr *)&exchanges->address, size) < 0 ||
	    listen(exchanges->listener, 1) < 0 ||
	    getsockname(exchanges->listener, (struct sockaddr *)&exchanges->address, &size) < 0)
		return -errno;
	return 0;
}

int exchanges_open(struct exchanges **ret_exchanges)
{
	CLEANUP(cleanup_exchanges_close)
	struct exchanges *exchanges = calloc(1, sizeof(*exchanges));
	int r;

	if (!exchanges)
		return -ENOMEM;
	exchanges->listener = exchanges->client = exchanges->server = -1;
	r = enter_namespace();
	if (!r)
		r = listen_here(exchanges);
	if (r < 0)
		return r;
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
	const int yes = 1;

	exchanges->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (exchanges->client < 0 ||
	    connect(exchanges->client, (struct sockaddr *)&exchanges->address,
		    sizeof(exchanges->address)) < 0)
		return -errno;
	exchanges->server = accept4(exchanges->listener, NULL, NULL, SOCK_CLOEXEC);
	if (exchanges->server < 0 ||
	    setsockopt(exchanges->client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0 ||
	    setsockopt(exchanges->server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) < 0)
		return -errno;
	return 0;
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
