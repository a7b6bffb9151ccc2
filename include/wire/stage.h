/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The stages of an exchange, in the order in which a request passes through them. Their definitions
 * are in docs/measurement.md; their names as users see them in lib/run/names.c. Those before
 * STAGE_RESIDENCE_END make up the residence, and are timed for every exchange; those behind it follow
 * the response on its way, of a sample of the exchanges and only when asked for.
 */
#ifndef WIRE_STAGE_H
#define WIRE_STAGE_H

enum stage {
	STAGE_ACCEPT_QUEUE, /* per connection: ESTABLISHED → accept() returned it */
	STAGE_SOCKET_QUEUE, /* request readable → first read that returned bytes */
	STAGE_RECEIVE,	    /* first read → last read before the response */
	STAGE_SERVICE,	    /* last read → first write */
	STAGE_RESPOND,	    /* first write → last write */
	STAGE_RESIDENCE_END,
	STAGE_TRANSMIT_QUEUE = STAGE_RESIDENCE_END, /* last write → last byte given to the driver */
	STAGE_ACK,				    /* from there → the peer has acknowledged it */
	STAGE_COUNT
};

#endif
