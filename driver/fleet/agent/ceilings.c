// SPDX-License-Identifier: MIT
/* Checks of a plan against the agent's limits; see ceilings.h. */
#include "ceilings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/engine.h"
#include "scenario/engine.h"
#include "scenario/scenario.h"
#include "sojourn/address.h"
#include "sojourn/cleanup.h"
#include "sojourn/clock.h"
#include "sojourn/refuse.h"
#include "sojourn/units.h"

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

#define ADDRESS_BYTES 16

/* The agent of a run that was killed takes a moment to end. */
#define CLAIM_STEPS   20U
#define CLAIM_STEP_NS (100 * NSEC_PER_MSEC)

/* An address of either family, as bytes that can be compared with a network. */
struct address {
	int family;
	uint8_t bytes[ADDRESS_BYTES];
};

/* One entry of --allow: a network, or a host with an optional port. */
struct entry {
	bool network;
	struct address address; /* if it is a network */
	unsigned int bits;
	char host[256]; /* otherwise */
	uint16_t port;	/* 0: any */
};

#define MAPPED_BITS 96

/* ::ffff:10.0.0.1 is 10.0.0.1, and a connection to it is one of IPv4. */
static bool unmap(struct address *address)
{
	if (address->family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(address->bytes))
		return false;
	*address = (struct address){
		AF_INET,
		{address->bytes[12], address->bytes[13], address->bytes[14], address->bytes[15]}};
	return true;
}

static bool parse_address(const char *text, struct address *ret_address)
{
	*ret_address = (struct address){0};
	ret_address->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	return inet_pton(ret_address->family, text, ret_address->bytes) == 1;
}

static bool parse_network(char *text, char *slash, struct entry *ret_entry)
{
	uint64_t bits;

	*slash = '\0';
	if (!parse_address(text, &ret_entry->address) ||
	    units_parse_u64(slash + 1, 0, ret_entry->address.family == AF_INET ? 32 : 128, &bits))
		return false;
	if (bits >= MAPPED_BITS && unmap(&ret_entry->address))
		bits -= MAPPED_BITS;
	ret_entry->network = true;
	ret_entry->bits = (unsigned int)bits;
	return true;
}

/* "host", "host:80", "10.0.0.1:80", "[::1]:80", "::1" */
static bool parse_host(char *text, struct entry *ret_entry)
{
	char *colon = strrchr(text, ':'), *end = text + strlen(text);
	uint64_t port = 0;

	if (*text == '[') {
		end = strchr(text++, ']');
		if (!end || (end[1] && end[1] != ':'))
			return false;
		colon = end[1] ? end + 1 : NULL;
	} else if (colon && strchr(text, ':') != colon) {
		colon = NULL; /* IPv6 without a port */
	} else if (colon) {
		end = colon;
	}
	if (colon && units_parse_u64(colon + 1, 1, UINT16_MAX, &port))
		return false;
	*end = '\0';
	ret_entry->port = (uint16_t)port;
	return *text && snprintf(ret_entry->host, sizeof(ret_entry->host), "%s", text) <
				(int)sizeof(ret_entry->host);
}

/*
 * Take the next entry of the list at *@at, and advance *@at. -ENOENT: the list is empty; -EINVAL:
 * the entry is not valid.
 */
static int next_entry(const char **at, struct entry *ret_entry)
{
	size_t length = strcspn(*at, ",");
	autofree char *work = strndup(*at, length);
	char *slash = work ? strchr(work, '/') : NULL;

	if (!**at)
		return -ENOENT;
	if (!work)
		return -ENOMEM;
	*ret_entry = (struct entry){0};
	*at += length + ((*at)[length] == ',');
	return (slash ? parse_network(work, slash, ret_entry) : parse_host(work, ret_entry))
		       ? 0
		       : -EINVAL;
}

int ceilings_check_list(const char *option, const char *list, char **ret_error)
{
	const char *at = list, *text = list;
	struct entry entry;
	int err = 0;

	if (!*list)
		return refuse(ret_error,
			      "%s: '' names nothing; give a network or a host, e.g. 10.0.0.0/8 or "
			      "server:8080",
			      option);
	while (!err) {
		text = at;
		err = next_entry(&at, &entry);
	}
	if (err != -EINVAL)
		return err == -ENOENT ? 0 : err;
	return refuse(ret_error,
		      "%s: '%.*s' is neither a network nor a host; write it like 10.0.0.0/8, "
		      "server:8080 or [::1]:8080",
		      option, (int)strcspn(text, ","), text);
}

static bool is_inside(const struct entry *entry, const struct address *address)
{
	unsigned int whole = entry->bits / 8, rest = entry->bits % 8;
	unsigned int mask = 0xff00U >> rest & 0xff;

	if (entry->address.family != address->family ||
	    memcmp(entry->address.bytes, address->bytes, whole) != 0)
		return false;
	return !rest || !((entry->address.bytes[whole] ^ address->bytes[whole]) & mask);
}

static struct address address_of(const struct sockaddr *socket)
{
	struct address address = {.family = socket->sa_family};

	size_t size;
	const void *bytes = address_bytes(socket, &size);

	memcpy(address.bytes, bytes, size);
	(void)unmap(&address);
	return address;
}

/* A host's name is compared as text: an allowed name allows every address that it resolves to. */
static bool is_named(const struct entry *entry, const struct target *target)
{
	return !entry->network && !strcasecmp(entry->host, target->host) &&
	       (!entry->port || entry->port == target->port);
}

static bool matches(const struct entry *entry, const struct target *target,
		    const struct address *address)
{
	struct address own;

	if (entry->network)
		return is_inside(entry, address);
	if (entry->port && entry->port != target->port)
		return false;
	if (!parse_address(entry->host, &own))
		return false;
	(void)unmap(&own);
	return own.family == address->family &&
	       !memcmp(own.bytes, address->bytes, sizeof(own.bytes));
}

/* @address: NULL compares the host's name only. */
static bool is_allowed(const char *allow, const struct target *target,
		       const struct address *address)
{
	struct entry entry;

	while (!next_entry(&allow, &entry))
		if (address ? matches(&entry, target, address) : is_named(&entry, target))
			return true;
	return false;
}

bool ceilings_list_has(const char *list, const char *host, uint16_t port,
		       const struct sockaddr *address)
{
	const struct target target = {.host = (char *)host, .port = port};
	const struct address bytes = address_of(address);

	return is_allowed(list, &target, NULL) || is_allowed(list, &target, &bytes);
}

static int refuse_target(const struct ceilings *ceilings, const struct target *target,
			 char **ret_error)
{
	return refuse(ret_error, "'%s' is not among the targets of its --allow %s",
		      target->authority, ceilings->allow);
}

static int check_target(const struct ceilings *ceilings, const struct target *target,
			char **ret_error)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	CLEANUP(cleanup_freeaddrinfo) struct addrinfo *list = NULL;
	int err;

	if (engine_has(target->engine, ENGINE_LOCAL))
		return refuse_target(ceilings, target, ret_error);
	if (!engine_has(target->engine, ENGINE_ADDRESSED) ||
	    is_allowed(ceilings->allow, target, NULL))
		return 0;
	err = getaddrinfo(target->host, NULL, &hints, &list);
	if (err)
		return refuse(ret_error, "cannot resolve '%s': %s", target->host,
			      err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	for (const struct addrinfo *info = list; info; info = info->ai_next) {
		const struct address address = address_of(info->ai_addr);

		if (!is_allowed(ceilings->allow, target, &address))
			return refuse_target(ceilings, target, ret_error);
	}
	return 0;
}

int ceilings_check_targets(const struct ceilings *ceilings, const struct scenario *scenario,
			   char **ret_error)
{
	int err = 0;

	for (size_t i = 0; i < scenario->step_count && ceilings->allow && !err; i++)
		err = check_target(ceilings, &scenario->steps[i].target, ret_error);
	return err;
}

static bool leads_astray(const struct ceilings *ceilings, const struct target *target)
{
	struct address address;

	if (!engine_has(target->engine, ENGINE_ADDRESSED) ||
	    is_allowed(ceilings->allow, target, NULL))
		return false;
	address = address_of((const struct sockaddr *)&target->address);
	return !is_allowed(ceilings->allow, target, &address);
}

int ceilings_check_addresses(const struct ceilings *ceilings, const struct scenario *scenario,
			     char **ret_error)
{
	for (size_t i = 0; i < scenario->step_count && ceilings->allow; i++)
		if (leads_astray(ceilings, &scenario->steps[i].target))
			return refuse_target(ceilings, &scenario->steps[i].target, ret_error);
	return 0;
}

static double peak_rate(const struct schedule_spec *spec)
{
	return fmax((double)spec->rate, shape_most(&spec->shape));
}

/* Bind an abstract name: unique in the network namespace, and free when its process ends. */
static int bind_place(int fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
			      "sojourn-drive-agent-%u", (unsigned int)geteuid());
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);

	return bind(fd, (const struct sockaddr *)&address, size) ? -errno : 0;
}

int ceilings_claim(const struct ceilings *ceilings, int *ret_fd, char **ret_error)
{
	autoclose int fd = -1;
	int err;

	*ret_fd = -1;
	if (!ceilings->rate && !ceilings->connections)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	err = bind_place(fd);
	for (unsigned int i = 0; err == -EADDRINUSE && i < CLAIM_STEPS; i++) {
		clock_sleep_until(clock_now_ns() + CLAIM_STEP_NS);
		err = bind_place(fd);
	}
	if (err == -EADDRINUSE)
		return refuse(ret_error,
			      "another agent of its user runs on this host, and its %s is of all "
			      "of them; wait for the other run to end",
			      ceilings->rate ? "--max-rate" : "--max-connections");
	*ret_fd = err ? -1 : TAKE_FD(fd);
	return err;
}

/* A client has a connection to each server. */
static int check_connections(const struct ceilings *ceilings, const struct options *options,
			     const struct scenario *scenario, char **ret_error)
{
	uint64_t connections = (uint64_t)options->load.connections * scenario_servers(scenario);

	if (connections <= ceilings->connections)
		return 0;
	return refuse(ret_error, "%" PRIu64 " connections are above its --max-connections %u",
		      connections, ceilings->connections);
}

bool ceilings_allow_rate(const struct ceilings *ceilings, const struct load_settings *load,
			 uint32_t members)
{
	return !ceilings->rate || peak_rate(&load->schedule) / members <= (double)ceilings->rate;
}

static int check_rate(const struct ceilings *ceilings, const struct options *options,
		      char **ret_error)
{
	const struct load_settings *load = &options->load;
	uint32_t members = load->member.count ? load->member.count : 1;
	double own = peak_rate(&load->schedule) / members;

	if (!load->schedule.rate)
		return refuse(ret_error,
			      "its --max-rate %" PRIu64
			      " needs a rate: a closed loop sends as fast "
			      "as the server answers; add --rate",
			      ceilings->rate);
	if (options->link.datagrams.retransmit_ns)
		return refuse(ret_error,
			      "its --max-rate %" PRIu64 " allows no --retransmit, which sends "
			      "more than the rate says; leave it out",
			      ceilings->rate);
	if (ceilings_allow_rate(ceilings, load, members))
		return 0;
	return refuse(ret_error, "a rate of %.10g is above its --max-rate %" PRIu64, own,
		      ceilings->rate);
}

/* Return the whole length of a run; UINT64_MAX if the sum overflows. */
static uint64_t whole_ns(const struct load_settings *load)
{
	uint64_t all_ns;

	if (__builtin_add_overflow(load->warmup_ns, load->duration_ns, &all_ns) ||
	    __builtin_add_overflow(all_ns, load->cooldown_ns, &all_ns))
		return UINT64_MAX;
	return all_ns;
}

static int check_duration(const struct ceilings *ceilings, const struct load_settings *load,
			  char **ret_error)
{
	uint64_t all_ns = whole_ns(load);
	char asked[32], most[32];

	units_format_duration((double)ceilings->duration_ns, most, sizeof(most));
	if (!load->duration_ns)
		return refuse(ret_error,
			      "its --max-duration %s needs a duration: a number of requests may "
			      "take any time; add --duration, and the run ends with the first of "
			      "both",
			      most);
	if (all_ns <= ceilings->duration_ns)
		return 0;
	return refuse(ret_error, "%s with warm-up and cool-down are above its --max-duration %s",
		      units_format_duration((double)all_ns, asked, sizeof(asked)), most);
}

int ceilings_check_load(const struct ceilings *ceilings, const struct options *options,
			const struct scenario *scenario, char **ret_error)
{
	int err = 0;

	if (ceilings->connections)
		err = check_connections(ceilings, options, scenario, ret_error);
	if (!err && ceilings->rate)
		err = check_rate(ceilings, options, ret_error);
	if (!err && ceilings->duration_ns)
		err = check_duration(ceilings, &options->load, ret_error);
	return err;
}
