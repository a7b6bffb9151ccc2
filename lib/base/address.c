// SPDX-License-Identifier: MIT
/* Numeric IP addresses as texts and back. */
#include "sojourn/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

int address_parse(const char *text, struct sockaddr_storage *ret_address)
{
	struct sockaddr_storage address = {0};

	if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&address)->sin_addr) == 1)
		address.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1)
		address.ss_family = AF_INET6;
	else
		return -EINVAL;
	*ret_address = address;
	return 0;
}

socklen_t address_length(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_UNIX)
		return sizeof(struct sockaddr_un);
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6);
}

const void *address_bytes(const struct sockaddr *address, size_t *ret_size)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	bool v4 = address->sa_family == AF_INET;

	*ret_size = v4 ? sizeof(in->sin_addr) : sizeof(in6->sin6_addr);
	return v4 ? (const void *)&in->sin_addr : &in6->sin6_addr;
}

bool address_is_loopback(int family, const void *bytes)
{
	const struct in6_addr *in6 = bytes;
	const uint8_t *first = bytes;

	if (family == AF_INET)
		return *first == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(in6) ||
	       (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET);
}

char *address_format(int family, const void *bytes, uint16_t port, char *buffer, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(family, bytes, text, sizeof(text));
	if (!port)
		snprintf(buffer, size, "%s", text);
	else
		snprintf(buffer, size, family == AF_INET6 ? "[%s]:%u" : "%s:%u", text, port);
	return buffer;
}
