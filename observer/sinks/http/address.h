/* SPDX-License-Identifier: MIT */
/*
 * The address of an HTTP endpoint, as text and as a socket address, and whether a request's Host
 * header names it. Used only by http.c.
 */
#ifndef OBSERVER_SINKS_HTTP_ADDRESS_H
#define OBSERVER_SINKS_HTTP_ADDRESS_H

#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Enough for "https://[" + an IPv6 address + "]:65535". */
#define HTTP_ADDRESS_URL_MAX 64

/* See sink_http_parse_address(). */
int http_address_parse(const char *text, struct sockaddr_storage *ret_address);

/* Return its port, in host order. */
in_port_t http_address_port(const struct sockaddr_storage *address);

/* Print its URL: "http://127.0.0.1:9180", "http://[::1]:9180", or with https. */
void http_address_url(const struct sockaddr_storage *address, bool tls,
		      char url[HTTP_ADDRESS_URL_MAX]);

/*
 * Return whether @host, a Host header's value, is a name of this machine that no foreign DNS can give out. Such are
 * localhost, 127.0.0.1, [::1], @listened, and @local, the address that the client reached (it differs from @listened
 * if that is the wildcard). The port is missing or that of @listened.
 */
bool http_address_is_host(const char *host, const struct sockaddr_storage *listened,
			  const struct sockaddr_storage *local);

/* Return the address of a connected socket's other end, as IPv6. Of IPv6 only the network counts: its owner has 2^64 addresses. */
struct in6_addr http_address_peer(int fd);

#endif
