// SPDX-License-Identifier: MIT
/* The fake observation, the thread that serves it, and a client without rules. */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <time.h>

#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/finding.h"

static int add_services(const struct server *server, struct run *run)
{
	if (server->services && run_make_services(run, server->services))
		return -ENOMEM;
	for (size_t i = 0; i < run->service_count; i++) {
		struct run_service *service = &run->services[i];

		memcpy(service->protocol, "tcp", sizeof("tcp"));
		service->listeners = calloc(SERVICE_LISTENERS, sizeof(*service->listeners));
		if (!service->listeners)
			return -ENOMEM;
		service->listener_count = SERVICE_LISTENERS;
	}
	return 0;
}

static int fake_run(struct server *server, uint64_t duration_ns, struct run **ret_run)
{
	autorun struct run *run = run_new("fake 1", NULL);

	if (!run)
		return -ENOMEM;
	run->duration_ns = duration_ns;
	if (server->padding) {
		free(run->tool);
		run->tool = malloc(server->padding + 1);
		if (!run->tool)
			return -ENOMEM;
		memset(run->tool, 'x', server->padding);
		run->tool[server->padding] = '\0';
	}
	if (add_services(server, run))
		return -ENOMEM;
	*ret_run = TAKE_PTR(run);
	return 0;
}

static void fake_meanwhile(void *context, void (*task)(void *context), void *task_context)
{
	struct server *server = context;

	meanwhile_set(&server->meanwhile, task, task_context);
}

/* Take a reading, during which somebody may request /healthz. */
static void fake_reading(struct server *server)
{
	int asker = atomic_exchange(&server->asker, 0);
	struct pollfd impatient = {.fd = atomic_exchange(&server->impatient, 0), .events = POLLIN};

	if (asker) {
		(void)client_send(asker, HEALTH, strlen(HEALTH));
		server->asked = asker;
	}
	if (!impatient.fd)
		return;
	(void)client_send(impatient.fd, HEALTH, strlen(HEALTH));
	for (int i = 0; i < IMPATIENCE_MS && !impatient.revents; i++) {
		meanwhile_run(&server->meanwhile);
		(void)poll(&impatient, 1, 1);
	}
	server->satisfied += impatient.revents == POLLIN;
}

static int fake_total(void *context, struct run **ret_run)
{
	struct server *server = context;
	uint64_t begin_ns = clock_thread_cpu_ns();

	server->made++;
	fake_reading(server);
	while (clock_thread_cpu_ns() - begin_ns < server->work_ms * NSEC_PER_MSEC)
		;
	return server->fail ? server->fail : fake_run(server, TOTAL_DURATION_NS, ret_run);
}

static int fake_past(void *context, const struct snapshot_past *past, struct run **ret_run)
{
	struct server *server = context;

	server->past = *past;
	return fake_total(context, ret_run);
}

/* Add owners: a process of the service, or another one. */
static int add_parties(struct run *run, struct run_finding *finding, bool others)
{
	struct run_service *service = ARRAY_APPEND(run->services, run->service_count);
	struct run_process *process =
		service ? ARRAY_APPEND(service->processes, service->process_count) : NULL;
	struct run_owner *owner =
		process ? ARRAY_APPEND(finding->owners, finding->owner_count) : NULL;

	if (!owner)
		return -ENOMEM;
	memcpy(service->protocol, "tcp", sizeof("tcp"));
	process->pid = 812;
	owner->pid = others ? 813 : 812;
	return 0;
}

/* Findings as from the doctor. */
static int fake_judge(void *context, struct run *run)
{
	struct server *server = context;
	struct run_finding *finding;

	server->looks++;
	if (!server->critical)
		return run_add_text(&run->not_seen, "nothing");
	finding = ARRAY_APPEND(run->findings, run->finding_count);
	if (!finding)
		return -ENOMEM;
	snprintf(finding->severity, sizeof(finding->severity), "critical");
	snprintf(finding->resource, sizeof(finding->resource), "descriptors");
	return add_parties(run, finding, server->critical_of_others);
}

static int fake_phase_begin(void *context, uint32_t lease_s, uint64_t *ret_id)
{
	struct server *server = context;
	size_t open = 0;

	fake_reading(server);
	if (server->fail)
		return server->fail;
	for (size_t i = 0; i < ARRAY_SIZE(server->open); i++)
		open += server->open[i];
	if (open == SNAPSHOT_PHASES || server->phases + 1 == ARRAY_SIZE(server->open))
		return -ENOSPC;
	server->lease_s = lease_s;
	*ret_id = ++server->phases;
	server->open[*ret_id] = true;
	return 0;
}

static int fake_phase_renew(void *context, uint64_t id, uint32_t *ret_lease_s)
{
	struct server *server = context;

	*ret_lease_s = server->lease_s;
	return id < ARRAY_SIZE(server->open) && server->open[id] ? server->fail : -ENOENT;
}

static int fake_phase_end(void *context, uint64_t id, struct run **ret_run)
{
	struct server *server = context;

	fake_reading(server);
	if (server->fail)
		return server->fail;
	if (id >= ARRAY_SIZE(server->open) || !server->open[id])
		return -ENOENT;
	server->open[id] = false;
	return fake_run(server, PHASE_DURATION_NS(id), ret_run);
}

/* Note whether a request that came within sink_run() is answered by its end: the observer's loop may do more then. */
static void note_answer(struct server *server)
{
	struct pollfd pollfd = {.fd = atomic_exchange(&server->asked, 0), .events = POLLIN};

	if (!pollfd.fd)
		return;
	/* The kernel may deliver it a moment later; the thread that would answer waits here. */
	if (poll(&pollfd, 1, 1000) == 1)
		server->in_time++;
	else
		server->late++;
}

static void *loop(void *context)
{
	struct server *server = context;
	struct pollfd fds[] = {
		{.fd = sink_fd(server->sink), .events = POLLIN},
		{.fd = server->stop_fd, .events = POLLIN},
	};

	while (!fds[1].revents) {
		poll(fds, ARRAY_SIZE(fds), sink_timeout_ms(server->sink));
		(void)sink_run(server->sink, 0);
		note_answer(server);
		server->runs++;
	}
	return NULL;
}

/* Only the sink's URL has its real address. */
static void read_address(struct server *server)
{
	const char *url = server->sink->url;

	assert_int_equal(strncmp(url, "http://", strlen("http://")), 0);
	assert_int_equal(sink_http_parse_address(url + strlen("http://"), &server->address), 0);
}

int server_start(struct server *server, const char *text, const struct sink_http_limits *limits)
{
	return server_start_for(server, text, NULL, limits);
}

int server_start_for(struct server *server, const char *text, const struct sink_http_access *access,
		     const struct sink_http_limits *limits)
{
	struct snapshot_source source = {.context = server,
					 .meanwhile = fake_meanwhile,
					 .total = fake_total,
					 .brief = fake_total,
					 .past = fake_past,
					 .judge = fake_judge,
					 .phase_begin = fake_phase_begin,
					 .phase_renew = fake_phase_renew,
					 .phase_end = fake_phase_end};
	struct sockaddr_storage address;
	int err;

	*server = (struct server){0};
	assert_int_equal(sink_http_parse_address(text, &address), 0);
	if (limits)
		err = sink_http_open_limited(&address, &source, access, limits, &server->sink);
	else
		err = sink_http_open(&address, &source, access, &server->sink);
	if (err)
		return err;
	read_address(server);
	server->stop_fd = eventfd(0, EFD_CLOEXEC);
	assert_true(server->stop_fd >= 0);
	assert_int_equal(pthread_create(&server->thread, NULL, loop, server), 0);
	return 0;
}

void server_stop(struct server *server)
{
	uint64_t one = 1;

	assert_int_equal(write(server->stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(server->thread, NULL);
	close(server->stop_fd);
	sink_close(server->sink);
}

unsigned int server_port(const struct server *server)
{
	return ntohs(((const struct sockaddr_in *)&server->address)->sin_port);
}

int client_connect(const struct server *server, const char *address)
{
	struct sockaddr_storage to = server->address;
	char text[64];
	int fd;

	if (address) {
		snprintf(text, sizeof(text), "%s:%u", address, server_port(server));
		assert_int_equal(sink_http_parse_address(text, &to), 0);
	}
	fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(struct sockaddr_in6))) {
		fail_msg("cannot connect: %m");
		abort(); /* not reached; a static analyser does not know that of cmocka's fail() */
	}
	return fd;
}

int client_send(int fd, const void *data, size_t length)
{
	const char *c = data;

	while (length) {
		ssize_t sent = send(fd, c, length, MSG_NOSIGNAL);

		if (sent < 0)
			return -errno;
		c += sent;
		length -= (size_t)sent;
	}
	return 0;
}

/* Like recv(); -ETIMEDOUT after @timeout_ms. */
static ssize_t receive(int fd, void *data, size_t size, int timeout_ms)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	ssize_t got;

	if (poll(&pollfd, 1, timeout_ms) != 1)
		return -ETIMEDOUT;
	got = recv(fd, data, size, 0);
	return got < 0 ? -errno : got;
}

/* Append byte by byte until the blank line: the rest is not ours. */
static int receive_head(int fd, struct response *response)
{
	FILE *file = open_memstream(&response->text, &response->length);
	char last[5] = "", c;
	ssize_t got;

	assert_non_null(file);
	while (strcmp(last, "\r\n\r\n")) {
		got = receive(fd, &c, 1, PATIENCE_MS);
		if (got != 1) {
			fclose(file);
			return got ? (int)got : -ECONNRESET;
		}
		memmove(last, last + 1, 3);
		last[3] = c;
		fputc(c, file);
	}
	return fclose(file);
}

static int receive_body(int fd, struct response *response)
{
	autofree char *text = response_header(response, "Content-Length");
	size_t head = response->length, length = text ? strtoul(text, NULL, 10) : 0;
	char *grown = realloc(response->text, head + length + 1);
	ssize_t got;

	assert_non_null(text);
	assert_non_null(grown);
	response->text = grown;
	while (response->length < head + length) {
		got = receive(fd, response->text + response->length,
			      head + length - response->length, PATIENCE_MS);
		if (got <= 0)
			return got ? (int)got : -ECONNRESET;
		response->length += (size_t)got;
	}
	response->text[response->length] = '\0';
	response->body = response->text + head;
	return 0;
}

int client_receive(int fd, bool head, struct response *ret_response)
{
	struct response response = {0};
	int err = receive_head(fd, &response);

	if (!err && sscanf(response.text, "HTTP/1.%*1[01] %3d ", &response.status) != 1)
		err = -EPROTO;
	if (!err && !head)
		err = receive_body(fd, &response);
	if (err) {
		free(response.text);
		return err;
	}
	*ret_response = response;
	return 0;
}

void response_free(struct response *response)
{
	free(response->text);
	response->text = NULL;
}

char *response_header(const struct response *response, const char *name)
{
	const char *line = strstr(response->text, "\r\n");
	size_t length = strlen(name);

	for (; line && strncmp(line, "\r\n\r\n", 4); line = strstr(line + 2, "\r\n")) {
		const char *value = line + 2 + length + 1;

		if (strncasecmp(line + 2, name, length) || line[2 + length] != ':')
			continue;
		value += strspn(value, " ");
		return strndup(value, strcspn(value, "\r"));
	}
	return NULL;
}

ssize_t client_drain(int fd, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	ssize_t total = 0, got;
	char buffer[4096];

	for (;;) {
		uint64_t now = clock_now_ns();

		if (now >= end)
			return -ETIMEDOUT;
		got = receive(fd, buffer, sizeof(buffer), (int)((end - now) / NSEC_PER_MSEC) + 1);
		if (got <= 0)
			return got ? got : total;
		total += got;
	}
}

struct response ask(const struct server *server, const char *format, ...)
{
	autoclose int fd = client_connect(server, NULL);
	autofree char *text = NULL;
	struct response response;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	assert_true(length >= 0);
	assert_int_equal(client_send(fd, text, (size_t)length), 0);
	assert_int_equal(client_receive(fd, !strncmp(text, "HEAD ", 5), &response), 0);
	return response;
}

struct response ask_route(const struct server *server, const char *method, const char *path)
{
	return ask(server, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method, path);
}

void assert_header(const struct response *response, const char *name, const char *value)
{
	autofree char *actual = response_header(response, name);

	assert_non_null(actual);
	assert_string_equal(actual, value);
}

/* No answer may be framed, or send forms; none but a page runs scripts. */
static void assert_policy(const struct response *response)
{
	static const char *const parts[] = {
		"default-src 'none'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	};
	autofree char *policy = response_header(response, "Content-Security-Policy");
	autofree char *type = response_header(response, "Content-Type");

	assert_non_null(policy);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!strstr(policy, parts[i]))
			fail_msg("'%s' lacks %s", policy, parts[i]);
	assert_null(strstr(policy, "unsafe"));
	if (!strstr(type, "text/html"))
		assert_null(strstr(policy, "script-src"));
}

void assert_answer(const struct response *response, int status, const char *type)
{
	if (response->status != status)
		fail_msg("%d expected: %s", status, response->text);
	assert_header(response, "Content-Type", type);
	assert_header(response, "Cache-Control", "no-store");
	assert_header(response, "X-Content-Type-Options", "nosniff");
	assert_policy(response);
}

int group_start(void **state)
{
	static struct server server;

	*state = &server;
	return server_start(&server, "127.0.0.1:0", NULL);
}

int group_stop(void **state)
{
	server_stop(*state);
	return 0;
}
