// SPDX-License-Identifier: MIT
/* Splits a URL: see url.h. */
#include "url.h"

#include <ctype.h>
#include <string.h>

/* Characters that no host contains: delimiters of URLs and HTTP, and '%', an escape. */
static const char no_host[] = " \"#$%&'()*+,/:;<=>?@[\\]^`{|}";

static bool is_in(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Return whether nothing in @text would break the request line. */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

/* Split "HTTP://…": scheme "http". Return the rest, or NULL without a scheme. */
static const char *split_scheme(const char *text, struct url *url)
{
	size_t length = strcspn(text, ":");

	if (!length || length > URL_SCHEME_MAX || !isalpha((unsigned char)text[0]) ||
	    strncmp(text + length, "://", 3) != 0)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && !is_in(text[i], "+-."))
			return NULL;
		url->scheme[i] = (char)tolower((unsigned char)text[i]);
	}
	return text + length + 3;
}

/* A zone may be any interface name; getaddrinfo() judges the address. */
static const char *check_ipv6(struct url_part host)
{
	size_t length = strnlen(host.text, host.length);
	const char *zone = memchr(host.text, '%', length);
	size_t address = zone ? (size_t)(zone - host.text) : length;

	if (!address || strspn(host.text, "0123456789abcdefABCDEF:.") < address)
		return "the text in brackets is not an IPv6 address";
	return NULL;
}

static const char *check_name(struct url_part host)
{
	for (size_t i = 0; i < host.length; i++)
		if (is_in(host.text[i], no_host))
			return "the host has a character that no host has";
	return NULL;
}

/* Split "name", "name:80" or "[::1]:80" between @begin and @end. */
static const char *split_host(const char *begin, const char *end, struct url *url)
{
	const char *colon;

	if (begin < end && *begin == '[') {
		const char *close = memchr(begin, ']', (size_t)(end - begin));

		if (!close || (close + 1 < end && close[1] != ':'))
			return "a bracket is not closed";
		url->is_ipv6 = true;
		url->host = (struct url_part){begin + 1, (size_t)(close - begin - 1)};
		begin = close + 1;
	} else {
		colon = memchr(begin, ':', (size_t)(end - begin));
		colon = colon ? colon : end;
		url->host = (struct url_part){begin, (size_t)(colon - begin)};
		begin = colon;
	}
	if (begin < end)
		url->port = (struct url_part){begin + 1, (size_t)(end - begin - 1)};
	return url->is_ipv6 ? check_ipv6(url->host) : check_name(url->host);
}

static const char *check_port(struct url_part port)
{
	unsigned int value = 0;

	for (size_t i = 0; i < port.length; i++) {
		if (!isdigit((unsigned char)port.text[i]))
			return "the port is no number";
		value = value * 10 + (unsigned int)(port.text[i] - '0');
		if (value > 65535)
			return "the port is above 65535";
	}
	return NULL;
}

static const char *split_authority(const char *begin, const char *end, struct url *url)
{
	const char *at = memrchr(begin, '@', (size_t)(end - begin));
	const char *wrong;

	url->has_user = at;
	wrong = split_host(at ? at + 1 : begin, end, url);
	return wrong ? wrong : check_port(url->port);
}

/* The part after '#' stays with the client. */
static void split_path(const char *text, struct url *url)
{
	size_t all = strcspn(text, "#"), length = strcspn(text, "?#");

	url->path = (struct url_part){text, length};
	url->has_query = length < all;
	if (url->has_query)
		url->query = (struct url_part){text + length + 1, all - length - 1};
}

const char *url_split(const char *text, struct url *ret_url)
{
	struct url url = {0};
	const char *rest, *wrong;
	size_t length;

	if (!is_printable(text))
		return "it must be printable ASCII without spaces; write a space as %20";
	rest = split_scheme(text, &url);
	if (!rest)
		return "it does not begin with a scheme and ://";
	length = strcspn(rest, "/?#");
	wrong = split_authority(rest, rest + length, &url);
	if (wrong)
		return wrong;
	split_path(rest + length, &url);
	*ret_url = url;
	return NULL;
}
