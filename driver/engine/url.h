/* SPDX-License-Identifier: MIT */
/*
 * A URL taken apart (RFC 3986, what of it has an authority), without a library: libcurl's parser alone
 * would keep its 30 libraries in memory. Neighbour: target.c, which knows what the parts mean.
 */
#ifndef DRIVER_ENGINE_URL_H
#define DRIVER_ENGINE_URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_SCHEME_MAX 16U

/* A piece of the text; length 0: there is none, or it is empty. */
struct url_part {
	const char *text;
	size_t length;
};

struct url {
	char scheme[URL_SCHEME_MAX + 1]; /* in lower case */
	bool has_user;
	bool has_query;
	struct url_part
		host; /* without brackets; with the zone of an IPv6 address, after '%' or "%25" */
	bool is_ipv6;
	struct url_part port;  /* digits */
	struct url_part path;  /* from its '/' on */
	struct url_part query; /* behind the '?' */
};

/* Takes @text apart, which the parts point into. NULL, or what is wrong with it, for people. */
const char *url_split(const char *text, struct url *ret_url);

#endif
