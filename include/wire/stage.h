/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The stages of an exchange, in a request's order. docs/measurement.md defines them;
 * lib/run/names.c has their names for users. Stages before STAGE_RESIDENCE_END make up the
 * residence and are timed for every exchange. The others follow the response of a sample of
 * exchanges, on request only.
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
	STAGE_TRANSMIT_QUEUE = STAGE_RESIDENCE_END, /* last write → last byte given to the device */
	STAGE_ACK,				    /* from there → acknowledged by the peer */
	STAGE_COUNT
};

#endif
