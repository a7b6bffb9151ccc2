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
		return refuse(ret_error, "'%s' names no host; write it like %s", text,
			      engine_find(target->scheme)->form);
	strip_brackets(target->host);
	target->port = (uint16_t)strtoul(port, NULL, 10);
	if (!target->port)
		return refuse(ret_error, "'%s': the port must be from 1 to 65535", text);
	err = fill_authority(url, target);
	if (err)
		return err;
	return fill_path(url, target);
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
	char forms[128];
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
	struct target target = {0};
	int err;

	if (!url)
		return -ENOMEM;
	err = parse_url(url, text, &target, ret_error);
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
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	CLEANUP(cleanup_freeaddrinfo) struct addrinfo *list = NULL;
	const struct addrinfo *chosen;
	char port[8];
	int err;

	snprintf(port, sizeof(port), "%u", target->port);
	err = getaddrinfo(target->host, port, &hints, &list);
	if (err)
		return refuse(ret_error, "cannot resolve '%s': %s", target->host,
			      err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err));
	chosen = choose(list);
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
