/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Commands of other protocols than HTTP, with --protocol. The kernel side knows the commands of a table, and gives a
 * row of counts to each one that comes. A service has the same counts by command as by route (wire/route.h).
 */
#ifndef WIRE_COMMAND_H
#define WIRE_COMMAND_H

#include <linux/types.h>

#include "wire/route.h"

enum command_protocol {
	COMMAND_NONE,
	COMMAND_RESP, /* of Redis and Valkey */
	COMMAND_POSTGRES,
	COMMAND_PROTOCOL_COUNT
};

/* Maximum of ports whose protocol is given. */
#define COMMAND_PORTS 8

/* Names end with zeros. Those of clients are in capitals, and those longer are not known. */
#define COMMAND_NAME 24

/* Maximum of commands that are known. */
#define COMMANDS_MOST 512

/* The rows of a service: [0] is that of commands without one, others are taken in the order in which commands come. */
#define COMMAND_ROWS	(ROUTES_MOST + 1)
#define COMMAND_CLAIMED 0xffffffffU /* in command_rows_of: another CPU is about to give it a row */

struct command_name {
	__u8 text[COMMAND_NAME];
};

struct command_known {
	__u32 id; /* its place in command_rows_of */
	__u16 protocol;
	__u16 leaves; /* after its reply the server writes what nobody asked for */
};

/* responses[] of struct service_route, which then has no statuses. */
#define COMMAND_REPLIES 0 /* all */
#define COMMAND_ERRORS	1 /* of these */

/* Why the exchanges of a connection have no command, and their number. */
struct service_unnamed {
	__u64 exchanges[ROUTE_UNKNOWN_COUNT]; /* by enum route_unknown */
};

#endif
