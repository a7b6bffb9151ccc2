/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The stages of an exchange, in the order in which a request passes through them. Their definitions
 * are in docs/measurement.md; their names as users see them in lib/names.c.
 */
#ifndef WIRE_STAGE_H
#define WIRE_STAGE_H

enum stage {
	STAGE_ACCEPT_QUEUE, /* per connection: ESTABLISHED → accept() returned it */
	STAGE_SOCKET_QUEUE, /* request readable → first read that returned bytes */
	STAGE_RECEIVE,	    /* first read → last read before the response */
	STAGE_SERVICE,	    /* last read → first write */
	STAGE_RESPOND,	    /* first write → last write */
	STAGE_COUNT
};

#endif
