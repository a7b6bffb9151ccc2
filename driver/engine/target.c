// SPDX-License-Identifier: MIT
/* The server to load. Neighbour: url.c splits URLs; getaddrinfo() resolves names. */
#include "target.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "engine.h"
#include "sojourn/cleanup.h"
#include "sojourn/refuse.h"
#include "sojourn/text.h"
#include "url.h"

#define PROBE_TIMEOUT_MS 1000

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

/* Copy the host for getaddrinfo(): "fe80::1%25eth0" names the zone eth0 (RFC 6874). */
static char *copy_host(const struct url *url)
{
	char *host = strndup(url->host.text, url->host.length);
	char *zone = host ? strstr(host, "%25") : NULL;

	if (zone)
		memmove(zone + 1, zone + 3, strlen(zone + 3) + 1);
	return host;
}

/* Omit the default port, and a zone, which means nothing to the server. */
static int fill_authority(const struct url *url, uint16_t default_port, struct target *target)
{
	char port[8] = "";
	int host = (int)strcspn(target->host, "%");

	if (target->port != default_port)
		snprintf(port, sizeof(port), ":%u", target->port);
	target->authority = text_format("%s%.*s%s%s", url->is_ipv6 ? "[" : "", host, target->host,
					url->is_ipv6 ? "]" : "", port);
	return target->authority ? 0 : -ENOMEM;
}

/* Accept "http://unix:/run/server.sock", as other tools write it. */
static bool names_socket(const struct url *url)
{
	return url->host.length == 4 && !strncmp(url->host.text, "unix", 4) && url->port.text &&
	       !url->port.length;
}

static int fill_address_parts(const struct url *url, const char *text, struct target *target,
			      char **ret_error)
{
	const struct engine *engine = target->engine;
	const bool has_port = url->port.length || engine->default_port;
	int err;

	if (url->has_user)
		return refuse(ret_error,
			      "'%s': a user name in the URL is not supported; use "
			      "-H 'Authorization: ...'",
			      text);
	if (names_socket(url))
		return refuse(ret_error,
			      "'%s': %s: over a unix socket is not supported; unix:PATH takes "
			      "requests of bytes (--payload, --framing)",
			      text, engine->scheme);
	if (!url->host.length || !has_port)
		return refuse(ret_error, "'%s' names no host%s; write it like %s", text,
			      has_port ? "" : " or no port", engine->form);
	target->host = copy_host(url);
	if (!target->host)
		return -ENOMEM;
	target->port = url->port.length ? (uint16_t)strtoul(url->port.text, NULL, 10)
					: engine->default_port;
	if (!target->port)
		return refuse(ret_error, "'%s': the port must be from 1 to 65535", text);
	err = fill_authority(url, engine->default_port, target);
	if (!err && asprintf(&target->path, "%s%.*s%s%.*s", url->path.length ? "" : "/",
			     (int)url->path.length, url->path.text, url->has_query ? "?" : "",
			     (int)url->query.length, url->query.text ? url->query.text : "") < 0)
		err = -ENOMEM;
	if (!err && engine_has(engine, ENGINE_PLAIN) && strcmp(target->path, "/") != 0)
		return refuse(ret_error, "'%s': %s:// has no path; write it like %s", text,
			      engine->scheme, engine->form);
	return err;
}

/* "unix:PATH" has no authority. */
static int fill_local(const struct engine *engine, const char *text, struct target *target,
		      char **ret_error)
{
	struct sockaddr_un *address = (struct sockaddr_un *)&target->address;
	const char *path = text + strlen(engine->scheme) + 1;

	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return refuse(ret_error,
			      "'%s': a path of 1 to %zu bytes is needed; write it like %s", text,
			      sizeof(address->sun_path) - 1, engine->form);
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path, path, strlen(path) + 1);
	target->engine = engine;
	target->authority = strdup(path);
	return target->authority ? 0 : -ENOMEM;
}

static int parse_url(const struct engine *const *engines, const char *text, struct target *target,
		     char **ret_error)
{
	char forms[ENGINE_FORMS_SIZE];
	struct url url;
	const char *wrong = url_split(text, &url);

	if (wrong)
		return refuse(ret_error, "'%s' is not a usable URL (%s); write it like %s", text,
			      wrong, engine_forms(engines, forms, sizeof(forms)));
	target->engine = engine_find(engines, text);
	if (!target->engine)
		return refuse(ret_error, "'%s': %s:// is not supported; allowed: %s", text,
			      url.scheme, engine_forms(engines, forms, sizeof(forms)));
	if (!engine_has(target->engine, ENGINE_ADDRESSED))
		return 0;
	return fill_address_parts(&url, text, target, ret_error);
}

int target_parse(const struct engine *const *engines, const char *text, struct target *ret_target,
		 char **ret_error)
{
	const struct engine *engine = engine_find(engines, text);
	struct target target = {0};
	int err;

	err = engine && engine_has(engine, ENGINE_LOCAL)
		      ? fill_local(engine, text, &target, ret_error)
		      : parse_url(engines, text, &target, ret_error);
	if (err) {
		target_clear(&target);
		return err;
	}
	*ret_target = target;
	return 0;
}

static bool accepts(const struct addrinfo *info)
{
	autoclose int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t length = sizeof(int);
	int error = 0;

	if (fd < 0)
		return false;
	if (!connect(fd, info->ai_addr, info->ai_addrlen))
		return true;
	if (errno != EINPROGRESS || poll(&ready, 1, PROBE_TIMEOUT_MS) != 1)
		return false;
	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error;
}

/* A single address is not probed: the connection would show in the server's counters. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
	if (list->ai_next)
		for (const struct addrinfo *info = list; info; info = info->ai_next)
			if (accepts(info))
				return info;
	return list;
}

/*
 * RFC 6761, 6.3: localhost is both loopback addresses, though /etc/hosts may name one. Return true
 * if the server is at the other one, in @ret_other.
 */
static bool is_at_other_loopback(const struct target *target, const struct addrinfo *only,
				 const char *port, struct addrinfo **ret_other)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST};
	const char *other = only->ai_family == AF_INET ? "::1" : "127.0.0.1";

	if (only->ai_next || strcasecmp(target->host, "localhost") != 0 || accepts(only))
		return false;
	return !getaddrinfo(other, port, &hints, ret_other) && accepts(*ret_other);
}

/* connect() would only say EINVAL, of every connection. */
static bool lacks_interface(const struct addrinfo *info)
{
	const struct sockaddr_in6 *address = (const struct sockaddr_in6 *)info->ai_addr;

	return info->ai_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr) &&
	       !address->sin6_scope_id;
}

/* @probing: of several addresses, take the first that accepts connections; otherwise the first. */
static int resolve(struct target *target, bool probing, char **ret_error)
{
	const bool datagrams = engine_has(target->engine, ENGINE_DATAGRAMS);
	const struct addrinfo hints = {.ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV};
	CLEANUP(cleanup_freeaddrinfo) struct addrinfo *list = NULL, *other = NULL;
	const struct addrinfo *chosen;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", target->port);
	err = getaddrinfo(target->host, port, &hints, &list);
	if (err)
		return refuse(ret_error, "cannot resolve '%s': %s", target->host,
			      err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	chosen = datagrams || !probing ? list : choose(list); /* datagrams cannot be probed */
	if (!datagrams && probing && is_at_other_loopback(target, list, port, &other))
		chosen = other;
	if (lacks_interface(chosen))
		return refuse(ret_error,
			      "'%s' is link-local: name the interface, like [fe80::1%%eth0]",
			      target->host);
	memcpy(&target->address, chosen->ai_addr, chosen->ai_addrlen);
	return 0;
}

int target_resolve(struct target *target, char **ret_error)
{
	return resolve(target, true, ret_error);
}

int target_look_up(struct target *target, char **ret_error)
{
	return resolve(target, false, ret_error);
}

void target_clear(struct target *target)
{
	free(target->host);
	free(target->authority);
	free(target->path);
	*target = (struct target){0};
}
