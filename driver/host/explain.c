// SPDX-License-Identifier: MIT
/*
 * Explains failures, a function for each kind. Neighbours: run/result.c, transport/host_limits.c.
 */
#include "explain.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/engine.h"
#include "transport/host_limits.h"
#include "port_count.h"
#include "preflight.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "sojourn/units.h"

#define SENTENCE 256

static bool is_loopback(const struct target *target)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&target->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&target->address;

	if (target->address.ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

unsigned int explain_time_wait_s(const struct target *target)
{
	autofclose FILE *file = fopen("/proc/sys/net/ipv4/tcp_tw_reuse", "re");
	int reuse = 0;

	if (file && fscanf(file, "%d", &reuse) == 1 &&
	    (reuse == 1 || (reuse == 2 && is_loopback(target))))
		return 1;
	return PREFLIGHT_TIME_WAIT_S;
}

/* Count UDP sockets of this host: each has its own port. */
static uint64_t count_datagram_sockets(const struct target *target)
{
	bool v4 = target->address.ss_family == AF_INET;
	autofclose FILE *file = fopen(v4 ? "/proc/self/net/udp" : "/proc/self/net/udp6", "re");
	char line[256];
	uint64_t count = 0;

	while (file && fgets(line, sizeof(line), file))
		count++;
	return count ? count - 1 : 0; /* the heading */
}

static bool is_datagrams(const struct target *target)
{
	const struct engine *engine = target->engine;

	return engine && engine_has(engine, ENGINE_DATAGRAMS);
}

static char *explain_datagram_ports(uint64_t ports, const struct target *target)
{
	return text_format(
		"%s UDP sockets on this host, and %s ports: add source addresses (--source) or "
		"use fewer connections",
		as_count(count_datagram_sockets(target)), as_count(ports));
}

/* Write "501 of 501 ports towards 127.0.0.1:80 in use, 100 % TIME_WAIT", if known. */
static char *tell_use(const struct explain_run *run, uint32_t range, uint64_t ports)
{
	struct port_fullest now;

	if (port_count_towards(run->target, &run->link->sources, range, &now))
		return text_format("there are %s ports towards %s, and none was free",
				   as_count(ports), run->target->authority);
	return text_format("%s of %s ports towards %s in use, %.0f %% TIME_WAIT",
			   as_count(now.used), as_count(ports), run->target->authority,
			   now.used ? 100.0 * (double)now.time_wait / (double)now.used : 0);
}

static char *explain_ports(const struct explain_run *run)
{
	uint32_t range = limits_port_range();
	uint64_t ports = (uint64_t)limits_ports(range) * source_addresses(&run->link->sources);
	autofree char *use = NULL;

	if (range && is_datagrams(run->target))
		return explain_datagram_ports(ports, run->target);
	if (range)
		use = tell_use(run, range, ports);
	if (!use)
		return NULL;
	return text_format(
		"%s: add source addresses (--source), keep connections alive, or stay below "
		"%s/s",
		use, as_count(ports / explain_time_wait_s(run->target)));
}

static char *explain_files(const struct explain_run *run)
{
	struct rlimit limit = {0};
	getrlimit(RLIMIT_NOFILE, &limit);
	return text_format("%u connections, and %" PRIu64
			   " open files allowed to the driver (hard limit "
			   "%" PRIu64 "): raise ulimit -n, or fs.file-max if the whole host is out",
			   run->connections, (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max);
}

static char *explain_refused(const struct explain_run *run)
{
	if (run->target->address.ss_family == AF_UNIX)
		return NULL;
	return text_format("%s answered with %s: no process listens there", run->target->authority,
			   is_datagrams(run->target) ? "ICMP port unreachable" : "RST");
}

static char *explain_timeout(const struct explain_run *run)
{
	return text_format(is_datagrams(run->target)
				   ? "lost on the way there or back, or not answered within "
				     "%s (--timeout)"
				   : "the limit is %s (--timeout)",
			   as_setting((double)run->link->timeout_ns));
}

static char *explain_connect_timeout(const struct explain_run *run)
{
	if (run->target->address.ss_family == AF_UNIX)
		return NULL;
	return text_format(
		"%s did not answer the SYN within %s (--timeout): its accept queue is full, or "
		"packets are dropped on the way",
		run->target->authority, as_setting((double)run->link->timeout_ns));
}

static char *explain_tls_timeout(const struct explain_run *run)
{
	return text_format("%s accepted the connection and did not finish the handshake within %s "
			   "(--timeout)",
			   run->target->authority, as_setting((double)run->link->timeout_ns));
}

/* A TLS port closes on plain requests; some servers explain that, others say nothing. */
static char *explain_silence(const struct explain_run *run)
{
	const struct engine *engine = run->target->engine;

	if (!run->silent || strcmp(engine->scheme, "http") != 0)
		return NULL;
	return text_format(
		"%s closes without an answer to anything: if it speaks TLS, use https://",
		run->target->authority);
}

static const char *const advice[RUN_ERROR_COUNT] = {
	[RUN_ERROR_CERTIFICATE] =
		"give --ca=FILE or --server-name=NAME, or do without the check: --insecure",
};

/* Explanations from the state of this host. @alone: leave the first failure's detail out. */
static const struct {
	char *(*explain)(const struct explain_run *);
	bool alone;
} explanations[RUN_ERROR_COUNT] = {
	[RUN_ERROR_REFUSED] = {explain_refused, true},
	[RUN_ERROR_ADDRESS_UNAVAILABLE] = {explain_ports, true},
	[RUN_ERROR_TOO_MANY_FILES] = {explain_files, false},
	[RUN_ERROR_CONNECT_TIMEOUT] = {explain_connect_timeout, false},
	[RUN_ERROR_TIMEOUT] = {explain_timeout, false},
	[RUN_ERROR_TLS_TIMEOUT] = {explain_tls_timeout, false},
	[RUN_ERROR_RESET] = {explain_silence, false},
	[RUN_ERROR_CLOSED_EARLY] = {explain_silence, false},
};

/* Join the given parts, any of which may be NULL; @advice_ appears only with another part. */
static char *join(const char *general, const char *detail, const char *advice_)
{
	bool both = general && detail;

	if (!general && !detail)
		return NULL;
	return text_format("%s%s%s%s%s%s", general ? general : "", both ? "; " : "",
			   detail ? "first: " : "", detail ? detail : "", advice_ ? "; " : "",
			   advice_ ? advice_ : "");
}

char *explain_failure(enum run_error error, const char *detail, const struct explain_run *run)
{
	autofree char *general = NULL;
	bool told;

	if (explanations[error].explain && run->target->authority)
		general = explanations[error].explain(run);
	told = detail[0] && !(general && explanations[error].alone);
	return join(general, told ? detail : NULL, told ? advice[error] : NULL);
}

/* Write "127.0.0.1:80", with the port even if the URL has none. */
static char *tell_address(const struct target *target)
{
	bool v6 = target->address.ss_family == AF_INET6 && strchr(target->host, ':');

	if (target->address.ss_family == AF_UNIX)
		return strdup(target->authority);
	return text_format("%s%s%s:%u", v6 ? "[" : "", target->host, v6 ? "]" : "", target->port);
}

char *explain_unreached(const struct engine_result *failure, const struct explain_run *run)
{
	const char *what =
		failure->error == RUN_ERROR_REFUSED ? "nothing listens at" : "no connection to";
	const char *remedy = advice[failure->error];
	autofree char *address = tell_address(run->target);
	char why[SENTENCE] = "";

	engine_tell_result(failure, why, sizeof(why));
	return address ? text_format("%s %s%s%s%s%s", what, address, why[0] ? ": " : "", why,
				     remedy ? "; " : "", remedy ? remedy : "")
		       : NULL;
}
