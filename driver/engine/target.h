/* SPDX-License-Identifier: MIT */
/* The server to load: its URL split, and its address. */
#ifndef DRIVER_ENGINE_TARGET_H
#define DRIVER_ENGINE_TARGET_H

#include <stdint.h>
#include <sys/socket.h>

struct engine;

struct target {
	const struct engine *engine; /* for the scheme */
	char *host;		     /* without the brackets of an IPv6 address */
	char *authority; /* for the Host header: "[::1]:8080", no default port or zone; or a path */
	char *path;	 /* with the query: "/a?b" */
	uint16_t port;	 /* host order; 0 if the scheme has none */
	struct sockaddr_storage address;
};

/*
 * Split @url for one of @engines (driver/engines.h). -EINVAL with @ret_error that quotes the URL
 * and says what is allowed; -ENOMEM.
 */
int target_parse(const struct engine *const *engines, const char *url, struct target *ret_target,
		 char **ret_error);

/*
 * Look the host up, once. Of several addresses take the first that accepts a connection:
 * "localhost" then works where only one family is served. For datagrams take the first. Errors as
 * above.
 */
int target_resolve(struct target *target, char **ret_error);

/* Look the host up without connecting, and take the first address. */
int target_look_up(struct target *target, char **ret_error);

void target_clear(struct target *target);

#endif
