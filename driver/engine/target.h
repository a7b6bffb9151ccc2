/* SPDX-License-Identifier: MIT */
/* Whom to load: the URL taken apart, and its address. */
#ifndef DRIVER_ENGINE_TARGET_H
#define DRIVER_ENGINE_TARGET_H

#include <stdint.h>
#include <sys/socket.h>

struct engine;

struct target {
	const struct engine *engine; /* that speaks the scheme */
	char *host;		     /* without the brackets of an IPv6 address */
	char *authority; /* for the Host header: "[::1]:8080", without a default port or zone; a path */
	char *path;	 /* with the query: "/a?b" */
	uint16_t port; /* host order; 0 if the scheme has none */
	struct sockaddr_storage address;
};

/*
 * Takes @url, of one of @engines (see driver/engines.h), apart. 0, or -EINVAL with a sentence in @ret_error (freed by the caller) that quotes the
 * URL and says what is allowed; -ENOMEM.
 */
int target_parse(const struct engine *const *engines, const char *url, struct target *ret_target,
		 char **ret_error);

/*
 * Looks the host up, once. Of several addresses it takes the first that accepts a connection, so
 * that "localhost" works where only one family is served; for datagrams the first. -EINVAL and @ret_error
 * as above.
 */
int target_resolve(struct target *target, char **ret_error);

/* The same without connecting to any: of several addresses the first. */
int target_look_up(struct target *target, char **ret_error);

void target_clear(struct target *target);

#endif
