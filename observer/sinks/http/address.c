// SPDX-License-Identifier: MIT
/*
 * The endpoint's address: parsing what the user typed, printing it, and recognising it in a Host
 * header. Numeric addresses only, so that nothing here asks DNS.
 */
#include "address.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sojourn/address.h"
#include "sojourn/units.h"

/* HOST, HOST:PORT, [ADDR6] or [ADDR6]:PORT, as in RFC 3986's authority. */
struct authority {
	char host[INET6_ADDRSTRLEN];
	bool bracketed;
	bool has_port;
	in_port_t port; /* host order */
};

static int parse_port(const char *text, in_port_t *ret_port)
{
	uint64_t port;

	if (units_parse_u64(text, 0, UINT16_MAX, &port))
		return -EINVAL;
	*ret_port = (in_port_t)port;
	return 0;
}

static int parse_authority(const char *text, struct authority *ret_authority)
{
	struct authority authority = {.bracketed = *text == '['};
	const char *host = text + authority.bracketed;
	const char *end = host + strcspn(host, authority.bracketed ? "]" : ":");
	const char *rest = end + authority.bracketed;
	size_t length = (size_t)(end - host);

	if (!length || length >= sizeof(authority.host) || (authority.bracketed && *end != ']'))
		return -EINVAL;
	if (*rest && *rest != ':')
		return -EINVAL;
	memcpy(authority.host, host, length);
	authority.has_port = *rest;
	if (authority.has_port && parse_port(rest + 1, &authority.port))
		return -EINVAL;
	*ret_authority = authority;
	return 0;
}

/* Brackets are for IPv6, and IPv6 is in brackets: anything else is a typing error. */
static int to_sockaddr(const struct authority *authority, struct sockaddr_storage *ret_address)
{
	struct sockaddr_storage address;

	if (address_parse(authority->host, &address) ||
	    authority->bracketed != (address.ss_family == AF_INET6))
		return -EINVAL;
	/* sin_port and sin6_port lie at the same offset. */
	((struct sockaddr_in *)&address)->sin_port = htons(authority->port);
	*ret_address = address;
	return 0;
}

int http_address_parse(const char *text, struct sockaddr_storage *ret_address)
{
	struct authority authority = {.host = "127.0.0.1", .has_port = true};

	if (parse_port(text, &authority.port) && parse_authority(text, &authority))
		return -EINVAL;
	if (!authority.has_port)
		return -EINVAL;
	return to_sockaddr(&authority, ret_address);
}

in_port_t http_address_port(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void http_address_url(const struct sockaddr_storage *address, bool tls,
		      char url[HTTP_ADDRESS_URL_MAX])
{
	char text[INET6_ADDRSTRLEN];
	size_t size;

	address_format(address->ss_family, address_bytes((const struct sockaddr *)address, &size),
		       0, text, sizeof(text));
	snprintf(url, HTTP_ADDRESS_URL_MAX,
		 address->ss_family == AF_INET6 ? "http%s://[%s]:%u" : "http%s://%s:%u",
		 tls ? "s" : "", text, http_address_port(address));
}

/* One form for both families, IPv4 as ::ffff:a.b.c.d: a dual-stack socket reports it so anyway. */
static struct in6_addr canonical(const struct sockaddr_storage *address)
{
	struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

	if (address->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)address)->sin6_addr;
	memcpy(&mapped.s6_addr[12], &((const struct sockaddr_in *)address)->sin_addr, 4);
	return mapped;
}

static bool same_address(const struct in6_addr *address, const struct sockaddr_storage *other)
{
	struct in6_addr form = canonical(other);

	return IN6_ARE_ADDR_EQUAL(address, &form);
}

static bool is_loopback(const struct in6_addr *address)
{
	static const struct in6_addr v4 = {
		.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

	return IN6_IS_ADDR_LOOPBACK(address) || IN6_ARE_ADDR_EQUAL(address, &v4);
}

bool http_address_is_host(const char *host, const struct sockaddr_storage *listened,
			  const struct sockaddr_storage *local)
{
	struct sockaddr_storage named;
	struct authority authority;
	struct in6_addr address;

	if (parse_authority(host, &authority))
		return false;
	if (authority.has_port && authority.port != http_address_port(listened))
		return false;
	if (!authority.bracketed && !strcasecmp(authority.host, "localhost"))
		return true;
	if (to_sockaddr(&authority, &named))
		return false;
	address = canonical(&named);
	return is_loopback(&address) || same_address(&address, listened) ||
	       same_address(&address, local);
}

struct in6_addr http_address_peer(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof(address);
	struct in6_addr peer;

	if (getpeername(fd, (struct sockaddr *)&address, &length))
		return in6addr_any;
	peer = canonical(&address);
	if (!IN6_IS_ADDR_V4MAPPED(&peer))
		memset(&peer.s6_addr[8], 0, 8);
	return peer;
}
