// SPDX-License-Identifier: MIT
/* Code shared by all models: opening and closing, signals, records, and error messages. */
#include "server.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "address.h"

static int (*const models[MODEL_COUNT])(struct server *) = {
	[MODEL_EVENT] = model_event,
	[MODEL_THREADS] = model_threads,
	[MODEL_PREFORK] = model_prefork,
};

int server_run(struct server *server)
{
	return models[server->options->model](server);
}

/* Return whether the socket must not block, as its thread also watches or waits for other things. */
static bool is_nonblocking(const struct options *options)
{
	bool udp = !strcmp(options->protocol, "udp");

	return options->model == MODEL_EVENT || options->accept_delay_ns ||
	       (udp && options->read_delay_ns) ||
	       (options->model == MODEL_PREFORK && !options->blocking_workers);
}

static int open_socket(struct server *server)
{
	const struct options *options = server->options;
	const struct address_socket how = {
		.datagram = !server->protocol,
		.nonblocking = is_nonblocking(options),
		.backlog = (int)options->backlog,
	};
	char text[ADDRESS_TEXT];
	int err;

	server->address = options->listen;
	err = address_listen(&server->address, &how, &server->fd);
	if (!err)
		return 0;
	address_format(&options->listen, text);
	warnx("--listen: %s: %s", text, strerror(-err));
	return err;
}

static int open_truth(struct server *server)
{
	const char *path = server->options->truth;

	if (!path)
		return 0;
	server->truth = truth_new(server->options->truth_limit);
	server->truth_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (server->truth && server->truth_fd >= 0)
		return 0;
	warn("--truth: %s", path);
	return -EIO;
}

static int open_shared(struct server *server)
{
	const struct options *options = server->options;
	uint64_t slots = options->model == MODEL_PREFORK ? options->workers : 1;
	void *shared;

	server->shared_size = sizeof(struct shared) + slots * sizeof(struct counters);
	shared = mmap(NULL, server->shared_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED) {
		warn("counters");
		return -ENOMEM;
	}
	server->shared = shared;
	server->counters = &server->shared->counters[0];
	return 0;
}

/* Make `control` report signals. Called before any thread starts: each inherits the blocked mask. */
static int open_signals(struct server *server)
{
	const int by_descriptor[] = {SIGTERM, SIGINT, SIGUSR1, SIGCHLD};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(by_descriptor) / sizeof(by_descriptor[0]); i++)
		sigaddset(&set, by_descriptor[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Sleeps end on time, not up to 50 µs later. */
	prctl(PR_SET_TIMERSLACK, 1);
	server->control = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (server->control >= 0)
		return 0;
	warn("signalfd");
	return -EIO;
}

int server_open(struct server *server, const struct options *options)
{
	int err;

	*server = (struct server){
		.options = options,
		.protocol = protocol_find(options->protocol),
		.fd = -1,
		.control = -1,
		.truth_fd = -1,
	};
	err = open_socket(server);
	if (!err)
		err = open_truth(server);
	if (!err)
		err = open_shared(server);
	if (!err)
		err = open_signals(server);
	return err;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void server_close(struct server *server)
{
	close_fd(server->fd);
	close_fd(server->control);
	close_fd(server->truth_fd);
	truth_free(server->truth);
	if (server->shared)
		munmap(server->shared, server->shared_size);
}

static int write_summary(struct server *server)
{
	const struct options *options = server->options;
	const struct summary summary = {
		.protocol = options->protocol,
		.model = model_names[options->model],
		.pid = getpid(),
		.workers = options->model == MODEL_PREFORK ? (unsigned int)options->workers : 1,
		.counters = server->shared->counters,
	};
	int err = options->summary ? counters_write_summary(&summary, options->summary) : 0;

	if (err)
		warnx("--summary: %s: %s", options->summary, strerror(-err));
	return err;
}

/* Write the CSV; the prefork model has already written the header and its workers' parts. */
static int write_truth(struct server *server)
{
	int fd = server->truth_fd, err;

	if (fd < 0 || server->options->model == MODEL_PREFORK)
		return 0;
	server->truth_fd = -1;
	err = truth_write_header(fd);
	if (err)
		close(fd);
	else
		err = truth_write(server->truth, address_port(&server->address), getpid(), fd);
	if (err)
		warnx("--truth: %s: %s", server->options->truth, strerror(-err));
	return err;
}

int server_finish(struct server *server)
{
	int truth_err = write_truth(server), summary_err = write_summary(server);

	return truth_err ? truth_err : summary_err;
}

bool server_control(struct server *server)
{
	struct signalfd_siginfo info;
	bool stop = server->worker;

	while (!server->worker && read(server->control, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGUSR1)
			write_summary(server);
		else if (info.ssi_signo != SIGCHLD)
			stop = true;
	}
	return stop;
}

void server_announce(struct server *server)
{
	char text[ADDRESS_TEXT];

	if (server->worker) {
		if (write(server->ready, "", 1) != 1)
			server_complain(server, -errno, "ready");
		return;
	}
	address_format(&server->address, text);
	printf("listening on %s\n", text);
	fflush(stdout);
}

void server_complain(struct server *server, int err, const char *what)
{
	uint64_t now = clock_now_ns(), last = atomic_load(&server->complained_ns);

	if (last && now - last < NSEC_PER_SEC)
		return;
	if (atomic_compare_exchange_strong(&server->complained_ns, &last, now))
		warnx("%s: %s", what, strerror(-err));
}

struct turn_wait server_take_turn(struct server *server, uint64_t delay_ns)
{
	struct turn_wait turn = turn_take(&server->shared->turn, delay_ns);
	struct pollfd socket = {.fd = server->fd, .events = POLLIN};

	/* Another worker may have taken it since this one saw it and asked for the turn. */
	if (!turn.mine || poll(&socket, 1, 0) > 0)
		return turn;
	turn_end(&server->shared->turn, turn.mine);
	return (struct turn_wait){0};
}

uint64_t server_delay(struct server *server, enum delay which, uint64_t delay_ns)
{
	if (!delay_ns)
		return 0;
	return (atomic_fetch_add(&server->delays[which], 1) + 1) % server->options->one_in
		       ? 0
		       : delay_ns;
}

void server_leak(struct server *server)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		server_complain(server, -errno, "leak");
	else
		counters_add(server->counters, COUNTER_LEAKED, 1);
}

static void count_exchange(struct counters *counters, const struct exchange *exchange,
			   const struct request *request, bool answered)
{
	if (!exchange->response_bytes && !answered) {
		counters_add(counters, COUNTER_UNANSWERED, 1);
		return;
	}
	counters_add(counters, COUNTER_EXCHANGES, 1);
	if (!answered)
		counters_add(counters, COUNTER_INCOMPLETE, 1);
	if (request->bad)
		counters_add(counters, COUNTER_BAD_REQUESTS, 1);
}

void server_record(struct server *server, struct truth_writer *writer, struct exchange *exchange,
		   const struct request *request, bool answered)
{
	exchange->error = !answered || request->bad;
	count_exchange(server->counters, exchange, request, answered);
	if (!truth_record(writer, exchange))
		counters_add(server->counters, COUNTER_TRUTH_DROPPED, 1);
}

void server_sleep(uint64_t ns, bool spin)
{
	uint64_t deadline = clock_now_ns() + ns;

	if (!spin)
		clock_sleep_until(deadline);
	while (clock_now_ns() < deadline)
		;
}
