// SPDX-License-Identifier: MIT
/* Targets compared with the services of a host; see sight.h. */
#include "sight.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "engine/engine.h"
#include "engine/target.h"
#include "fleet/agent/ceilings.h"
#include "sojourn/address.h"
#include "sojourn/cleanup.h"
#include "sojourn/procfs.h"
#include "sojourn/refuse.h"
#include "sojourn/run.h"
#include "sojourn/text.h"

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

/* Of one name; a run connects to few of them. */
#define ADDRESSES_MAX 16U

#define DISCARD 9 /* the discard port, as any will do: nothing is sent */

_Static_assert(SIGHT_TARGETS <= 64, "a bit for each target");

void sight_place(char ret_place[static SIGHT_PLACE])
{
	struct stat status = {0};
	char boot[40] = "";

	(void)procfs_read(procfs_open("/proc/sys/kernel/random/boot_id"), boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	(void)stat("/proc/self/ns/net", &status);
	snprintf(ret_place, SIGHT_PLACE, "%s %ju %ju", boot, (uintmax_t)status.st_dev,
		 (uintmax_t)status.st_ino);
}

/* ---- the driver's side ---- */

static const char *format_address(const struct sockaddr *address, size_t size, char *ret_text)
{
	size_t length;
	const void *bytes = address_bytes(address, &length);

	if (!inet_ntop(address->sa_family, bytes, ret_text, (socklen_t)size))
		return NULL;
	/* A connection to the wildcard address is one to loopback. */
	if (!strcmp(ret_text, "0.0.0.0"))
		return "127.0.0.1";
	return strcmp(ret_text, "::") ? ret_text : "::1";
}

static int add_address(json_t *addresses, const struct sockaddr *address)
{
	char text[INET6_ADDRSTRLEN];
	const char *shown = format_address(address, sizeof(text), text);

	return shown ? json_array_append_new(addresses, json_string(shown)) : 0;
}

/* A fleet's members look the name up themselves, so any of its addresses may be theirs. */
static int look_up(const struct target *target, json_t *addresses, char **ret_error)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	CLEANUP(cleanup_freeaddrinfo) struct addrinfo *list = NULL;
	int err = getaddrinfo(target->host, NULL, &hints, &list);

	if (err)
		return refuse(ret_error,
			      "--observer: observers are found by the targets' addresses, and '%s' "
			      "cannot be resolved here: %s",
			      target->host,
			      err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	for (const struct addrinfo *info = list; info && json_array_size(addresses) < ADDRESSES_MAX;
	     info = info->ai_next)
		if (add_address(addresses, info->ai_addr))
			return -ENOMEM;
	return 0;
}

static int add_addresses(const struct target *target, json_t *addresses, char **ret_error)
{
	const struct sockaddr *address = (const struct sockaddr *)&target->address;

	if (address->sa_family == AF_UNSPEC)
		return look_up(target, addresses, ret_error);
	return add_address(addresses, address) ? -ENOMEM : 0;
}

static bool is_known(const struct sight_targets *targets, const char *name)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!strcmp(targets->names[i], name))
			return true;
	return false;
}

/* A name in --allow or --sees may be the target's. */
static int add_target(struct sight_targets *targets, const struct target *target, char **ret_error)
{
	autofree char *name = NULL;
	bool bare = strchr(target->host, ':');
	json_t *addresses, *message;
	if (asprintf(&name, "%s%s%s:%u", bare ? "[" : "", target->host, bare ? "]" : "",
		     target->port) < 0)
		return -ENOMEM;
	if (is_known(targets, name))
		return 0;
	message = json_pack("{s:s, s:s, s:i, s:[]}", "name", name, "host", target->host, "port",
			    target->port, "addresses");
	if (!message || json_array_append_new(targets->list, message))
		return -ENOMEM;
	addresses = json_object_get(message, "addresses");
	targets->names[targets->count++] = json_string_value(json_object_get(message, "name"));
	return add_addresses(target, addresses, ret_error);
}

int sight_describe(const struct drive_rows *rows, struct sight_targets *ret_targets,
		   char **ret_error)
{
	struct sight_targets targets = {.list = json_array()};
	int err = targets.list ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < rows->count && !err; i++)
		if (engine_has(rows->targets[i]->engine, ENGINE_ADDRESSED))
			err = add_target(&targets, rows->targets[i], ret_error);
	if (!err && !targets.count)
		err = refuse(ret_error,
			     "--observer: observers at a NATS server are found by address and "
			     "port, and '%s' has none; give the observer's URL",
			     rows->list[0].name);
	if (err)
		sight_targets_clear(&targets);
	else
		*ret_targets = targets;
	return err;
}

int sight_again(json_t *list, struct sight_targets *ret_targets)
{
	struct sight_targets targets = {.count = json_array_size(list)};

	if (!targets.count || targets.count > SIGHT_TARGETS)
		return -EBADMSG;
	for (size_t i = 0; i < targets.count; i++) {
		targets.names[i] =
			json_string_value(json_object_get(json_array_get(list, i), "name"));
		if (!targets.names[i])
			return -EBADMSG;
	}
	targets.list = json_incref(list);
	*ret_targets = targets;
	return 0;
}

void sight_targets_clear(struct sight_targets *targets)
{
	json_decref(targets->list);
	*targets = (struct sight_targets){0};
}

/* ---- the agent's side ---- */

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strcmp(address, "::1") ||
	       !strncmp(address, "::ffff:127.", 11);
}

/*
 * An address is of this host if packets to it would leave from itself. This asks the routes, which
 * know more than the interfaces: whole networks may be local. Nothing is sent.
 */
static bool is_of_this_host(struct sockaddr_storage address)
{
	struct sockaddr_storage own;
	size_t size;
	const void *bytes = address_bytes((const struct sockaddr *)&address, &size);

	((struct sockaddr_in *)&address)->sin_port = htons(DISCARD); /* at the same place in IPv6 */
	return !source_route(&address, &own) && own.ss_family == address.ss_family &&
	       !memcmp(address_bytes((const struct sockaddr *)&own, &size), bytes, size);
}

/* Every host has loopback addresses, so they are compared within one network namespace only. */
static void compare_address(const char *host, const char *text, bool same_place,
			    const struct sight_limits *limits, struct sight_target *target)
{
	struct sockaddr_storage address;

	if (address_parse(text, &address))
		return;
	if (limits->sees &&
	    ceilings_list_has(limits->sees, host, target->port, (const struct sockaddr *)&address))
		target->sure = true;
	else if (is_loopback(text) ? same_place : is_of_this_host(address))
		target->here = true;
	else
		return;
	snprintf(target->address, sizeof(target->address), "%s", text);
}

static void check_allowed(const char *host, const struct sight_target *target,
			  const struct sight_limits *limits, struct sight *sight)
{
	struct sockaddr_storage address;

	if (!limits->allow || address_parse(target->address, &address) ||
	    ceilings_list_has(limits->allow, host, target->port, (const struct sockaddr *)&address))
		return;
	snprintf(sight->refused, sizeof(sight->refused),
		 "'%s' is not among the targets of its --allow %s", target->name, limits->allow);
}

static int compare(const json_t *message, bool same_place, const struct sight_limits *limits,
		   struct sight *sight)
{
	struct sight_target *target = &sight->targets[sight->count++];
	const char *name = json_string_value(json_object_get(message, "name"));
	const char *host = json_string_value(json_object_get(message, "host"));
	json_int_t port = json_integer_value(json_object_get(message, "port"));
	const json_t *addresses = json_object_get(message, "addresses");

	if (!name || !host || port < 1 || port > UINT16_MAX ||
	    json_array_size(addresses) > ADDRESSES_MAX)
		return -EINVAL;
	target->port = (uint16_t)port;
	snprintf(target->name, sizeof(target->name), "%s", name);
	text_make_printable(target->name, ' ');
	for (size_t i = 0; i < json_array_size(addresses) && !target->here && !target->sure; i++) {
		const char *text = json_string_value(json_array_get(addresses, i));

		if (text)
			compare_address(host, text, same_place, limits, target);
	}
	if (!target->here && !target->sure)
		return 0;
	sight->any = true;
	check_allowed(host, target, limits, sight);
	return 0;
}

int sight_compare(const json_t *list, const char *place, const struct sight_limits *limits,
		  struct sight *ret_sight)
{
	char own[SIGHT_PLACE];
	int err = json_array_size(list) && json_array_size(list) <= SIGHT_TARGETS ? 0 : -EINVAL;

	*ret_sight = (struct sight){0};
	sight_place(own);
	for (size_t i = 0; i < json_array_size(list) && !err; i++)
		err = compare(json_array_get(list, i), place && !strcmp(place, own), limits,
			      ret_sight);
	return err;
}

/* Compare with the address that a service is bound to. */
static bool is_at(const struct run_service *service, const struct sight_target *target)
{
	static const char *const any[] = {"", "*", "0.0.0.0", "::"};

	if (service->port != target->port)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(any); i++)
		if (!strcmp(service->address, any[i]))
			return true;
	return !strcmp(service->address, target->address);
}

/* Listeners that nobody has used yet may be in no row: then the port may be one of theirs. */
static bool is_observed(const struct sight_target *target, const struct run *run)
{
	if (target->sure || run->listeners_idle)
		return true;
	for (size_t i = 0; i < run->service_count; i++)
		if (is_at(&run->services[i], target))
			return true;
	return false;
}

uint64_t sight_of(const struct sight *sight, const struct run *run)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < sight->count; i++)
		if ((sight->targets[i].here || sight->targets[i].sure) &&
		    is_observed(&sight->targets[i], run))
			bits |= 1ULL << i;
	return bits;
}
