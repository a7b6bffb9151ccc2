/* SPDX-License-Identifier: MIT */
/*
 * Splits a URL (RFC 3986, those with an authority) without a library: libcurl's parser alone would
 * load 30 libraries. Neighbour: target.c interprets the parts.
 */
#ifndef DRIVER_ENGINE_URL_H
#define DRIVER_ENGINE_URL_H

#include <stdbool.h>
#include <stddef.h>

#define URL_SCHEME_MAX 16U

/* A piece of the text; length 0: missing or empty. */
struct url_part {
	const char *text;
	size_t length;
};

struct url {
	char scheme[URL_SCHEME_MAX + 1]; /* in lower case */
	bool has_user;
	bool has_query;
	struct url_part host; /* without brackets; an IPv6 zone follows '%' or "%25" */
	bool is_ipv6;
	struct url_part port;  /* digits */
	struct url_part path;  /* from '/' on */
	struct url_part query; /* after '?' */
};

/* Split @text; the parts point into it. Return NULL, or what is wrong with it, for people. */
const char *url_split(const char *text, struct url *ret_url);

#endif
