// SPDX-License-Identifier: MIT
/* Parsing and formatting addresses, and binding the server's socket. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "sojourn/cleanup.h"

static int parse_host(const char *text, size_t length, bool v6, union address *ret_address)
{
	char host[INET6_ADDRSTRLEN];

	if (length >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = 0;
	if (v6)
		return inet_pton(AF_INET6, host, &ret_address->v6.sin6_addr) == 1 ? 0 : -EINVAL;
	return inet_pton(AF_INET, host, &ret_address->v4.sin_addr) == 1 ? 0 : -EINVAL;
}

int address_parse(const char *text, union address *ret_address)
{
	const char *colon = strrchr(text, ':');
	bool v6 = text[0] == '[';
	union address address = {0};
	uint64_t port;

	if (!colon || number_parse(colon + 1, strlen(colon + 1), UINT16_MAX, &port))
		return -EINVAL;
	if (v6 && (colon - text < 2 || colon[-1] != ']'))
		return -EINVAL;
	if (parse_host(text + v6, (size_t)(colon - text) - (v6 ? 2 : 0), v6, &address))
		return -EINVAL;
	address.any.sa_family = v6 ? AF_INET6 : AF_INET;
	/* The port is at the same place in both families' structures. */
	address.v4.sin_port = htons((uint16_t)port);
	*ret_address = address;
	return 0;
}

void address_format(const union address *address, char *buffer)
{
	char host[INET6_ADDRSTRLEN] = "?";
	bool v6 = address->any.sa_family == AF_INET6;

	if (v6)
		inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
	else
		inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
	snprintf(buffer, ADDRESS_TEXT, v6 ? "[%s]:%u" : "%s:%u", host, address_port(address));
}

uint16_t address_port(const union address *address)
{
	return ntohs(address->v4.sin_port);
}

int address_listen(union address *address, const struct address_socket *how, int *ret_fd)
{
	int type = (how->datagram ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC;
	socklen_t length = sizeof(*address);
	const int on = 1;
	autoclose int fd =
		socket(address->any.sa_family, type | (how->nonblocking ? SOCK_NONBLOCK : 0), 0);

	if (fd < 0)
		return -errno;
	if (!how->datagram && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return -errno;
	if (bind(fd, &address->any, sizeof(*address)))
		return -errno;
	if (!how->datagram && listen(fd, how->backlog))
		return -errno;
	if (getsockname(fd, &address->any, &length))
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
