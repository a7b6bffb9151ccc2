// SPDX-License-Identifier: MIT
/* Reads /proc/net/{tcp,tcp6,udp,udp6}: what inet_diag would say, where it does not answer. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "resource_sockets.h"
#include "sojourn/cleanup.h"

#define TIMER_TIME_WAIT 3
#define USER_HZ_MS	10 /* /proc counts time in hundredths of a second on every architecture */

struct line {
	char source[40], destination[40];
	unsigned int source_port, destination_port, state, send, receive, timer, drops;
	unsigned long long when, inode;
};

/* Eight hexadecimal digits per word, each word as the machine stores it. */
static uint8_t parse_address(const char *text, struct socket_address *ret_address)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	size_t words = strlen(text) / 8;

	for (size_t i = 0; i < words && i < 4; i++) {
		unsigned int word = 0;

		(void)sscanf(text + 8 * i, "%8x", &word);
		memcpy(ret_address->bytes + 4 * i, &word, sizeof(word));
	}
	if (words == 4 && !memcmp(ret_address->bytes, prefix, sizeof(prefix))) {
		memmove(ret_address->bytes, ret_address->bytes + 12, 4);
		memset(ret_address->bytes + 4, 0, 12);
		return AF_INET;
	}
	return words == 4 ? AF_INET6 : AF_INET;
}

static bool parse_line(const char *text, struct line *line)
{
	*line = (struct line){};
	return sscanf(text,
		      " %*d: %39[0-9A-F]:%x %39[0-9A-F]:%x %x %x:%x %x:%llx %*x %*u %*u %llu "
		      "%*d %*x %u",
		      line->source, &line->source_port, line->destination, &line->destination_port,
		      &line->state, &line->send, &line->receive, &line->timer, &line->when,
		      &line->inode, &line->drops) >= 10;
}

static void to_socket(const struct line *line, bool udp, struct resource_socket *s)
{
	*s = (struct resource_socket){
		.state = (uint8_t)line->state,
		.time_wait = !udp && line->timer == TIMER_TIME_WAIT,
		.source_port = (uint16_t)line->source_port,
		.destination_port = (uint16_t)line->destination_port,
		.expires_ms = (uint32_t)line->when * USER_HZ_MS,
		.receive_queue = line->receive,
		.send_queue = line->send,
		.drops = udp ? line->drops : 0, /* for TCP the column is another one */
		.inode = line->inode,
	};
	s->family = parse_address(line->source, &s->source);
	if (parse_address(line->destination, &s->destination) != s->family)
		s->family = AF_INET6;
}

int resource_sockets_table(const char *name, uint32_t states, socket_visit visit, void *context)
{
	autofclose FILE *file = NULL;
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/net/%s", name);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT && strchr(name, '6') ? 0 : -errno;
	while (fgets(text, sizeof(text), file)) {
		struct resource_socket s;
		struct line line;

		if (!parse_line(text, &line) || !(states >> (line.state & 31) & 1))
			continue;
		to_socket(&line, name[0] == 'u', &s);
		visit(context, &s);
	}
	return 0;
}
