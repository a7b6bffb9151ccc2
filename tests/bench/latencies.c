// SPDX-License-Identifier: MIT
/*
 * latencies PORT SOCKETS CPU FILE: keeps one request in flight on each of SOCKETS connections to an
 * HTTP server on loopback. A request counts in the histogram of the window in which it began.
 * tests/bench/paired.py maps FILE too, sets the window and reads the histograms.
 *
 * It can slow the server down, to show that the method finds a real difference. A real-time thread
 * then takes burden_ns of the server's CPU after each pause of a millisecond.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS_MAX   10000
#define RESPONSE_MAX  4096    /* a response is shorter, and arrives in one piece */
#define WINDOW_NONE   0	      /* requests that begin now are not counted */
#define BURDEN_PERIOD 1000000 /* ns */

/* Buckets per doubling of the time, each at most 0.8 % wide, from 16 µs to 4 s. As in paired.py. */
#define STEPS	   128
#define OCTAVE_MIN 14
#define OCTAVES	   18
#define BUCKETS	   (STEPS * OCTAVES)

struct shared {
	uint32_t window; /* from 1 on */
	uint32_t burden_ns;
	uint32_t answered;
	uint32_t open; /* requests under way that began in a window */
	uint32_t counts[][BUCKETS];
};

struct asked {
	int fd;
	uint32_t window; /* in which it began */
	uint64_t begin_ns;
};

struct load {
	struct shared *shared;
	struct asked asked[SOCKETS_MAX];
	int count;
	int cpu; /* the server's */
	char request[128];
	size_t length;
	ssize_t response; /* the length of each */
};

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < 1ULL << OCTAVE_MIN)
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(ns);
	if (octave >= OCTAVE_MIN + OCTAVES)
		return BUCKETS - 1;
	return (octave - OCTAVE_MIN) * STEPS +
	       (unsigned int)((ns - (1ULL << octave)) * STEPS >> octave);
}

static void ask(struct load *load, struct asked *asked, uint64_t ns)
{
	asked->begin_ns = ns;
	asked->window = __atomic_load_n(&load->shared->window, __ATOMIC_ACQUIRE);
	if (asked->window != WINDOW_NONE)
		__atomic_store_n(&load->shared->open, load->shared->open + 1, __ATOMIC_RELEASE);
	if (send(asked->fd, load->request, load->length, MSG_NOSIGNAL) < 0)
		fail("send");
}

static void answered(struct load *load, struct asked *asked)
{
	char response[RESPONSE_MAX];
	ssize_t length = recv(asked->fd, response, sizeof(response), MSG_DONTWAIT);
	uint64_t ns = now_ns();

	if (length <= 0 || (load->response && length != load->response)) {
		fputs("latencies: a response is not as long as the first one\n", stderr);
		exit(EXIT_FAILURE);
	}
	load->response = length;
	if (asked->window != WINDOW_NONE) {
		load->shared->counts[asked->window][bucket_of(ns - asked->begin_ns)]++;
		__atomic_store_n(&load->shared->open, load->shared->open - 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&load->shared->answered, load->shared->answered + 1, __ATOMIC_RELEASE);
	ask(load, asked, ns);
}

static int open_sockets(struct load *load, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	int epoll = epoll_create1(EPOLL_CLOEXEC), yes = 1;

	for (int i = 0; i < load->count; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0 || connect(fd, (void *)&address, sizeof(address)) ||
		    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) ||
		    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			fail("connect");
		load->asked[i].fd = fd;
	}
	return epoll;
}

static _Noreturn void run(struct load *load, int epoll)
{
	static struct epoll_event events[SOCKETS_MAX];

	for (int i = 0; i < load->count; i++)
		ask(load, &load->asked[i], now_ns());
	for (;;) {
		int ready = epoll_wait(epoll, events, load->count, -1);

		for (int i = 0; i < ready; i++)
			answered(load, &load->asked[events[i].data.u32]);
	}
}

/* Take burden_ns of the server's CPU, pause for a millisecond, and start again. */
static void *burden(void *argument)
{
	const struct load *load = argument;
	struct timespec pause = {.tv_nsec = BURDEN_PERIOD};

	for (;;) {
		uint32_t ns = __atomic_load_n(&load->shared->burden_ns, __ATOMIC_ACQUIRE);
		uint64_t end = now_ns() + ns;

		while (ns && now_ns() < end)
			;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void start_burden(struct load *load)
{
	struct sched_param param = {.sched_priority =
					    2}; /* common.py's Priority gives the server 1 */
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)load->cpu, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	if (pthread_create(&thread, &attr, burden, load)) {
		fputs("latencies: cannot start a real-time thread: run as root\n", stderr);
		exit(EXIT_FAILURE);
	}
	pthread_attr_destroy(&attr);
}

static struct shared *map_shared(const char *path)
{
	int file = open(path, O_RDWR | O_CLOEXEC);
	off_t size = file < 0 ? -1 : lseek(file, 0, SEEK_END);
	void *shared =
		size < (off_t)sizeof(struct shared)
			? MAP_FAILED
			: mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (shared == MAP_FAILED)
		fail(path);
	return shared;
}

int main(int argc, char **argv)
{
	static struct load load;
	int epoll;

	if (argc != 5) {
		fputs("Usage: latencies PORT SOCKETS CPU FILE\n", stderr);
		return 2;
	}
	load.count = atoi(argv[2]);
	load.cpu = atoi(argv[3]);
	if (load.count < 1 || load.count > SOCKETS_MAX) {
		fprintf(stderr, "latencies: '%s' sockets: 1 to %d are allowed\n", argv[2],
			SOCKETS_MAX);
		return 2;
	}
	load.length = (size_t)snprintf(load.request, sizeof(load.request),
				       "GET / HTTP/1.1\r\nHost: 127.0.0.1:%s\r\n\r\n", argv[1]);
	load.shared = map_shared(argv[4]);
	epoll = open_sockets(&load, (uint16_t)strtoul(argv[1], NULL, 10));
	start_burden(&load);
	run(&load, epoll);
}
