// SPDX-License-Identifier: MIT
/* Whom to load. URLs are libcurl's work, names are getaddrinfo's. */
#include "target.h"

#include <curl/curl.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "engine.h"
#include "refuse.h"
#include "sojourn/cleanup.h"

#define PROBE_TIMEOUT_MS 1000

DEFINE_CLEANUP(CURLU *, curl_url_cleanup)
DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

/* A copy that free() takes; NULL if the URL lacks the part (or memory is out). */
static char *url_part(CURLU *url, CURLUPart part, unsigned int flags)
{
	char *value = NULL;
	char *copy;

	if (curl_url_get(url, part, &value, flags))
		return NULL;
	copy = strdup(value);
	curl_free(value);
	return copy;
}

static int fill_authority(CURLU *url, struct target *target)
{
	autofree char *port = url_part(url, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
	bool brackets = strchr(target->host, ':');
	int length;

	length = asprintf(&target->authority, "%s%s%s%s%s", brackets ? "[" : "", target->host,
			  brackets ? "]" : "", port ? ":" : "", port ? port : "");
	return length < 0 ? -ENOMEM : 0;
}

/* "[::1]" → "::1" */
static void strip_brackets(char *host)
{
	size_t length = strlen(host);

	if (host[0] != '[' || length < 2)
		return;
	memmove(host, host + 1, length - 2);
	host[length - 2] = '\0';
}

static int fill_path(CURLU *url, struct target *target)
{
	autofree char *path = url_part(url, CURLUPART_PATH, 0);
	autofree char *query = url_part(url, CURLUPART_QUERY, 0);
	int length;

	length = asprintf(&target->path, "%s%s%s", path ? path : "/", query ? "?" : "",
			  query ? query : "");
	return length < 0 ? -ENOMEM : 0;
}

static int fill_address_parts(CURLU *url, const char *text, struct target *target, char **ret_error)
{
	autofree char *user = url_part(url, CURLUPART_USER, 0);
	autofree char *port = url_part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	int err;

	if (user)
		return refuse(ret_error,
			      "'%s': a user name in the URL is not supported; use "
			      "-H 'Authorization: ...'",
			      text);
	target->host = url_part(url, CURLUPART_HOST, 0);
	if (!target->host || !*target->host || !port)
		return refuse(ret_error, "'%s' names no host%s; write it like %s", text,
			      port ? "" : " or no port", engine_find(target->scheme)->form);
	strip_brackets(target->host);
	target->port = (uint16_t)strtoul(port, NULL, 10);
	if (!target->port)
		return refuse(ret_error, "'%s': the port must be from 1 to 65535", text);
	err = fill_authority(url, target);
	if (!err)
		err = fill_path(url, target);
	if (!err && engine_find(target->scheme)->plain && strcmp(target->path, "/") != 0)
		return refuse(ret_error, "'%s': %s:// has no path; write it like %s", text,
			      target->scheme, engine_find(target->scheme)->form);
	return err;
}

/* "unix:PATH" is no URL to libcurl. */
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
	target->address_length = sizeof(*address);
	target->scheme = strdup(engine->scheme);
	target->authority = strdup(path);
	return target->scheme && target->authority ? 0 : -ENOMEM;
}

static const struct engine *find_local(const char *text)
{
	char scheme[16] = "";
	size_t length = strcspn(text, ":");
	const struct engine *engine;

	if (!text[length] || length >= sizeof(scheme))
		return NULL;
	memcpy(scheme, text, length);
	engine = engine_find(scheme);
	return engine && engine->local ? engine : NULL;
}

/* Whether @text is free of what would break the request line. */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text == 0x7f)
			return false;
	return true;
}

static int parse_url(CURLU *url, const char *text, struct target *target, char **ret_error)
{
	char forms[ENGINE_FORMS_SIZE];
	CURLUcode code;

	code = curl_url_set(url, CURLUPART_URL, text,
			    CURLU_NON_SUPPORT_SCHEME | CURLU_NO_AUTHORITY | CURLU_PATH_AS_IS);
	if (code || !is_printable(text))
		return refuse(ret_error, "'%s' is not a usable URL (%s); write it like %s", text,
			      code ? curl_url_strerror(code) : "it must be printable ASCII",
			      engine_forms(forms, sizeof(forms)));
	target->scheme = url_part(url, CURLUPART_SCHEME, 0);
	if (!target->scheme)
		return -ENOMEM;
	if (!engine_find(target->scheme))
		return refuse(ret_error, "'%s': %s:// is not supported; allowed: %s", text,
			      target->scheme, engine_forms(forms, sizeof(forms)));
	if (!engine_find(target->scheme)->addressed)
		return 0;
	return fill_address_parts(url, text, target, ret_error);
}

int target_parse(const char *text, struct target *ret_target, char **ret_error)
{
	CLEANUP(cleanup_curl_url_cleanup) CURLU *url = curl_url();
	const struct engine *local = find_local(text);
	struct target target = {0};
	int err;

	if (!url)
		return -ENOMEM;
	err = local ? fill_local(local, text, &target, ret_error)
		    : parse_url(url, text, &target, ret_error);
	if (err) {
		target_clear(&target);
		return err;
	}
	*ret_target = target;
	return 0;
}

/* Whether something accepts connections there. */
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

/* One address is taken as it is: a connection of ours would show in the server's counters. */
static const struct addrinfo *choose(const struct addrinfo *list)
{
	if (list->ai_next)
		for (const struct addrinfo *info = list; info; info = info->ai_next)
			if (accepts(info))
				return info;
	return list;
}

int target_resolve(struct target *target, char **ret_error)
{
	const bool datagrams = engine_find(target->scheme)->datagrams;
	const struct addrinfo hints = {.ai_socktype = datagrams ? SOCK_DGRAM : SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV};
	CLEANUP(cleanup_freeaddrinfo) struct addrinfo *list = NULL;
	const struct addrinfo *chosen;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", target->port);
	err = getaddrinfo(target->host, port, &hints, &list);
	if (err)
		return refuse(ret_error, "cannot resolve '%s': %s", target->host,
			      err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	chosen = datagrams ? list : choose(list); /* nothing accepts datagrams */
	memcpy(&target->address, chosen->ai_addr, chosen->ai_addrlen);
	target->address_length = chosen->ai_addrlen;
	return 0;
}

void target_clear(struct target *target)
{
	free(target->scheme);
	free(target->host);
	free(target->authority);
	free(target->path);
	*target = (struct target){0};
}
