// SPDX-License-Identifier: MIT
/* Explanations, a function per kind of failure. Neighbours: result.c (asks), host_limits.c. */
#include "explain.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine.h"
#include "host_limits.h"
#include "port_count.h"
#include "preflight.h"
#include "sojourn/cleanup.h"
#include "sojourn/units.h"

#define TEXT 32

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

/* UDP sockets of this host: each has its port for itself, wherever it sends to. */
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
	const struct engine *engine = engine_find(target->scheme);

	return engine && engine->datagrams;
}

static char *explain_datagram_ports(uint64_t ports, const struct target *target)
{
	char used[TEXT], there[TEXT], *text;

	if (asprintf(
		    &text,
		    "%s UDP sockets on this host, and %s ports: add source addresses (--source) or "
		    "use fewer connections",
		    units_format_count(count_datagram_sockets(target), used, TEXT),
		    units_format_count(ports, there, TEXT)) < 0)
		return NULL;
	return text;
}

/* "501 of 501 ports towards 127.0.0.1:80 in use, 100 % TIME_WAIT", as far as the kernel tells. */
static int tell_use(const struct options *options, const struct target *target, uint32_t range,
		    uint64_t ports, char **ret_text)
{
	struct port_fullest now;
	char used[TEXT], there[TEXT];

	units_format_count(ports, there, TEXT);
	if (port_count_towards(target, &options->sources, range, &now))
		return asprintf(ret_text, "there are %s ports towards %s, and none was free", there,
				target->authority);
	return asprintf(ret_text, "%s of %s ports towards %s in use, %.0f %% TIME_WAIT",
			units_format_count(now.used, used, TEXT), there, target->authority,
			now.used ? 100.0 * (double)now.time_wait / (double)now.used : 0);
}

static char *explain_ports(const struct options *options, const struct target *target)
{
	uint32_t range = limits_port_range();
	uint64_t ports = (uint64_t)limits_ports(range) * source_addresses(&options->sources);
	autofree char *use = NULL;
	char limit[TEXT], *text;

	if (range && is_datagrams(target))
		return explain_datagram_ports(ports, target);
	if (!range || tell_use(options, target, range, ports, &use) < 0)
		return NULL;
	if (asprintf(&text,
		     "%s: add source addresses (--source), keep connections alive, or stay below "
		     "%s/s",
		     use, units_format_count(ports / explain_time_wait_s(target), limit, TEXT)) < 0)
		return NULL;
	return text;
}

static char *explain_files(const struct options *options, const struct target *target)
{
	struct rlimit limit = {0};
	char *text;

	(void)target;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (asprintf(&text,
		     "%u connections, and %" PRIu64 " open files allowed to the driver (hard limit "
		     "%" PRIu64 "): raise ulimit -n, or fs.file-max if the whole host is out",
		     options->connections, (uint64_t)limit.rlim_cur, (uint64_t)limit.rlim_max) < 0)
		return NULL;
	return text;
}

static char *explain_refused(const struct options *options, const struct target *target)
{
	char *text;

	(void)options;
	if (target->address.ss_family == AF_UNIX)
		return NULL;
	if (asprintf(&text, "%s answered with %s: no process listens there", target->authority,
		     is_datagrams(target) ? "ICMP port unreachable" : "RST") < 0)
		return NULL;
	return text;
}

static char *explain_timeout(const struct options *options, const struct target *target)
{
	char limit[TEXT], *text;

	if (asprintf(&text,
		     is_datagrams(target) ? "lost on the way there or back, or not answered within "
					    "%s (--timeout)"
					  : "the limit is %s (--timeout)",
		     units_format_duration((double)options->timeout_ns, limit, TEXT)) < 0)
		return NULL;
	return text;
}

static char *explain_connect_timeout(const struct options *options, const struct target *target)
{
	char limit[TEXT], *text;

	if (target->address.ss_family == AF_UNIX)
		return NULL;
	if (asprintf(
		    &text,
		    "%s did not answer the SYN within %s (--timeout): its accept queue is full, or "
		    "packets are dropped on the way",
		    target->authority,
		    units_format_duration((double)options->timeout_ns, limit, TEXT)) < 0)
		return NULL;
	return text;
}

static char *explain_tls_timeout(const struct options *options, const struct target *target)
{
	char limit[TEXT], *text;

	if (asprintf(&text,
		     "%s accepted the connection and did not finish the handshake within %s "
		     "(--timeout)",
		     target->authority,
		     units_format_duration((double)options->timeout_ns, limit, TEXT)) < 0)
		return NULL;
	return text;
}

/* What one may do about what TLS says. */
static const char *const advice[RUN_ERROR_COUNT] = {
	[RUN_ERROR_CERTIFICATE] =
		"give --ca=FILE or --server-name=NAME, or do without the check: --insecure",
};

/* The explanation by what is known of this host, and which of them the first one adds to. */
static const struct {
	char *(*explain)(const struct options *, const struct target *);
	bool alone;
} explanations[RUN_ERROR_COUNT] = {
	[RUN_ERROR_REFUSED] = {explain_refused, true},
	[RUN_ERROR_ADDRESS_UNAVAILABLE] = {explain_ports, true},
	[RUN_ERROR_TOO_MANY_FILES] = {explain_files, false},
	[RUN_ERROR_CONNECT_TIMEOUT] = {explain_connect_timeout, false},
	[RUN_ERROR_TIMEOUT] = {explain_timeout, false},
	[RUN_ERROR_TLS_TIMEOUT] = {explain_tls_timeout, false},
};

/* Any part may be missing; NULL if all are. */
static char *join(const char *general, const char *detail, const char *advice_)
{
	bool both = general && detail;
	char *text;

	if (!general && !detail)
		return NULL;
	if (asprintf(&text, "%s%s%s%s%s%s", general ? general : "", both ? "; " : "",
		     detail ? "first: " : "", detail ? detail : "", advice_ ? "; " : "",
		     advice_ ? advice_ : "") < 0)
		return NULL;
	return text;
}

char *explain_failure(enum run_error error, const char *detail, const struct options *options,
		      const struct target *target)
{
	autofree char *general = NULL;
	bool told;

	if (explanations[error].explain && target->authority)
		general = explanations[error].explain(options, target);
	told = detail[0] && !(general && explanations[error].alone);
	return join(general, told ? detail : NULL, told ? advice[error] : NULL);
}
