// SPDX-License-Identifier: MIT
/*
 * A simulated member of a fleet, without load. It speaks the agent's protocol
 * (driver/fleet/channel/channel.h), and sends documents that fleet.py has recorded from real agents.
 * Usage: fleet_member FOLDER NUMBER, then the agent's command, which is ignored.
 *
 * Or fleet_member --fleet URL FOLDER MEMBERS, for so many that wait at a NATS server. Each is the real
 * agent of driver/fleet/agent/standby.c, which starts this program as its process that drives.
 *
 * FOLDER/K.lines is recording K, a message per line: the hello, documents, the final document. The
 * member puts the start of its run into each. FOLDER/run has the number of recordings and the
 * length of the run in ns. At its end the member appends a line to FOLDER/log.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fleet/agent/fleet_options.h"
#include "fleet/agent/waiting.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/write_all.h"

#define BEAT_NS (NSEC_PER_SEC / 2) /* as driver/fleet/agent/agent.c */

/* fleet.py has put these in place of the start, whose digits are as many. */
#define MARK	   "@@@@@@@@@@@@@@@@@@@"
#define MARK_BYTES (sizeof(MARK) - 1)

struct member {
	const char *folder;
	uint64_t number;
	char *at, *final, *end; /* the next recorded line; the final document; the end */
	char input[1 << 16];
	size_t held;
	uint64_t hello_ns, begin_ns, document_ns, beat_ns, duration_ns;
	uint64_t received, sent, sent_before; /* the last: without the final document */
	bool over;
};

static void fail(const char *what)
{
	fprintf(stderr, "fleet_member: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void send_bytes(struct member *member, const char *bytes, size_t length)
{
	member->sent += length;
	if (write_all(STDOUT_FILENO, bytes, length, NULL) < 0)
		exit(EXIT_FAILURE); /* the coordinator has ended */
}

static void send_text(struct member *member, const char *text)
{
	send_bytes(member, text, strlen(text));
}

static char *path_of(const struct member *member, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", member->folder, name) < 0)
		fail("no memory");
	return path;
}

/* Return the number of recordings. */
static uint64_t read_run(struct member *member)
{
	char *path = path_of(member, "run");
	FILE *file = fopen(path, "re");
	uint64_t count = 0;

	if (!file || fscanf(file, "%" SCNu64 " %" SCNu64, &count, &member->duration_ns) != 2 ||
	    !count)
		fail(path);
	fclose(file);
	free(path);
	return count;
}

/* Map the recording privately: members share its pages, except those with a start. */
static void open_recording(struct member *member)
{
	char name[32], *path;
	struct stat status;
	int fd;

	snprintf(name, sizeof(name), "%" PRIu64 ".lines", member->number % read_run(member));
	path = path_of(member, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		fail(path);
	member->at = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (member->at == MAP_FAILED)
		fail(path);
	member->end = member->at + status.st_size;
	close(fd);
	free(path);
}

/* Each line ends with a newline. */
static size_t line_length(const struct member *member, const char *line)
{
	const char *newline = memchr(line, '\n', (size_t)(member->end - line));

	if (!newline)
		fail("a recorded line has no end");
	return (size_t)(newline + 1 - line);
}

static bool has(const char *line, size_t length, const char *text)
{
	return memmem(line, length, text, strlen(text)) != NULL;
}

static void find_final(struct member *member)
{
	member->final = member->at;
	while (member->final < member->end) {
		size_t length = line_length(member, member->final);

		if (has(member->final, length, "\"final\":true"))
			return;
		member->final += length;
	}
	fail("the recording has no final document");
}

static void send_line(struct member *member)
{
	size_t length = line_length(member, member->at);
	char begin[MARK_BYTES + 1], *mark;

	snprintf(begin, sizeof(begin), "%019" PRIu64, member->begin_ns);
	while ((mark = memmem(member->at, length, MARK, MARK_BYTES)))
		memcpy(mark, begin, MARK_BYTES);
	send_bytes(member, member->at, length);
	member->at += length;
}

/* Send the parts of one document, if there is another one before @end. */
static void send_document(struct member *member, const char *end)
{
	bool last = false;

	while (!last && member->at < end) {
		last = has(member->at, line_length(member, member->at), "\"last\":true");
		send_line(member);
	}
}

/* The script counts from these lines; a short append is atomic. */
static void write_log(const struct member *member)
{
	char text[256], *path = path_of(member, "log");
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	int length = snprintf(text, sizeof(text),
			      "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			      "\n",
			      member->hello_ns, member->begin_ns, clock_wall_ns(), member->received,
			      member->sent_before, member->sent);

	if (fd < 0 || write(fd, text, (size_t)length) != length)
		fail(path);
	close(fd);
	free(path);
}

static uint64_t number_in(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void take_line(struct member *member, const char *line)
{
	char text[128];

	if (strstr(line, "\"type\":\"plan\"")) {
		send_text(member, "{\"type\":\"ready\",\"max_rate\":0}\n");
	} else if (strstr(line, "\"type\":\"ping\"")) {
		snprintf(text, sizeof(text),
			 "{\"type\":\"pong\",\"number\":%" PRIu64 ",\"wall_ns\":%" PRIu64 "}\n",
			 number_in(line, "\"number\":"), clock_wall_ns());
		send_text(member, text);
	} else if (strstr(line, "\"type\":\"start\"")) {
		/* The members begin some microseconds apart, as real ones do. */
		member->begin_ns = number_in(line, "\"at_ns\":") + member->number % 997 * 1000;
		member->document_ns = member->begin_ns + NSEC_PER_SEC;
	}
}

static void take_lines(struct member *member)
{
	char *line = member->input, *newline;

	while ((newline = memchr(line, '\n', member->held - (size_t)(line - member->input)))) {
		*newline = '\0';
		take_line(member, line);
		line = newline + 1;
	}
	member->held -= (size_t)(line - member->input);
	memmove(member->input, line, member->held);
}

/* Exit when the channel ends: the coordinator has the result, or is gone. */
static void receive(struct member *member, uint64_t until_ns)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now = clock_wall_ns(), left_ns = until_ns > now ? until_ns - now : 0;
	struct timespec wait = {(time_t)(left_ns / NSEC_PER_SEC), (long)(left_ns % NSEC_PER_SEC)};
	ssize_t length;

	if (ppoll(&input, 1, &wait, NULL) <= 0)
		return;
	length = read(STDIN_FILENO, member->input + member->held,
		      sizeof(member->input) - member->held);
	if (length <= 0)
		exit(EXIT_SUCCESS);
	member->received += (uint64_t)length;
	member->held += (size_t)length;
	take_lines(member);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void send_due_document(struct member *member)
{
	if (!member->begin_ns || member->over || clock_wall_ns() < member->document_ns)
		return;
	member->over = member->document_ns == member->begin_ns + member->duration_ns;
	if (member->over) {
		member->sent_before = member->sent;
		member->at = member->final;
	}
	send_document(member, member->over ? member->end : member->final);
	member->document_ns =
		earlier(member->document_ns + NSEC_PER_SEC, member->begin_ns + member->duration_ns);
	if (member->over)
		write_log(member);
}

static void send_due_beat(struct member *member)
{
	uint64_t now = clock_wall_ns();

	if (now < member->beat_ns)
		return;
	send_text(member, "{\"type\":\"beat\"}\n");
	member->beat_ns = now + BEAT_NS;
}

/* Send what an agent sends: a document each second, the final one at the end, and beats. */
static void serve(struct member *member)
{
	for (;;) {
		bool runs = member->begin_ns && !member->over;

		receive(member,
			runs ? earlier(member->beat_ns, member->document_ns) : member->beat_ns);
		send_due_document(member);
		send_due_beat(member);
	}
}

static void run(const char *folder, const char *number)
{
	static struct member member;

	member.folder = folder;
	member.number = strtoull(number, NULL, 10);
	open_recording(&member);
	member.hello_ns = clock_wall_ns();
	member.beat_ns = member.hello_ns + BEAT_NS;
	send_line(&member);
	find_final(&member);
	serve(&member);
}

/* ---- over NATS ---- */

#define FOLDER_VARIABLE "FLEET_MEMBER_FOLDER"
#define NUMBER_VARIABLE "FLEET_MEMBER_NUMBER"

/* Wait for a run as the agent with this number, until SIGTERM. */
static int wait_at(char *url, const char *folder, unsigned long number)
{
	struct agent_options options = {0};
	autofree char *error = NULL;
	char name[24];
	char *words[] = {"agent", "--fleet", url, "--name", name, NULL};
	int err;

	snprintf(name, sizeof(name), "%lu", number);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (setenv(FOLDER_VARIABLE, folder, 1) || setenv(NUMBER_VARIABLE, name, 1))
		fail("no memory");
	err = agent_options_parse((int)(sizeof(words) / sizeof(*words)) - 1, words, &options,
				  &error);
	if (!err)
		err = standby_run(&options, &error);
	if (err)
		fprintf(stderr, "fleet_member: %s\n", error ? error : strerror(-err));
	agent_options_clear(&options);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int wait_all(char *url, const char *folder, unsigned long members)
{
	for (unsigned long number = 0; number < members; number++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (!pid)
			exit(wait_at(url, folder, number));
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "--fleet"))
		return wait_all(argv[2], argv[3], strtoul(argv[4], NULL, 10));
	if (argc > 1 && !strcmp(argv[1], "agent") && getenv(FOLDER_VARIABLE)) {
		run(getenv(FOLDER_VARIABLE), getenv(NUMBER_VARIABLE));
	} else if (argc > 2) {
		run(argv[1], argv[2]);
	} else {
		fputs("usage: fleet_member FOLDER NUMBER ...\n", stderr);
		return 2;
	}
}
