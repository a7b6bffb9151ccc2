/* SPDX-License-Identifier: MIT */
/*
 * The TCP sockets of this network namespace as the kernel tells them (inet_diag over netlink). Needs no
 * privilege and no library: the static driver asks, too.
 */
#ifndef SOJOURN_INET_DIAG_H
#define SOJOURN_INET_DIAG_H

#include <linux/inet_diag.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel fills at most so many bytes per read, if the reader has room for them. */
#define INET_DIAG_ANSWER_MAX 32768

/* A question: which sockets, and who is told of each. */
struct inet_diag_question {
	uint32_t states;    /* bits 1 << TCP_ESTABLISHED … */
	uint8_t extensions; /* attributes: bits 1 << (INET_DIAG_INFO - 1) … */
	const void *filter; /* bytecode that selects (struct inet_diag_bc_op); NULL: every socket */
	size_t filter_bytes; /* of it */
	/* Bytes per read, up to INET_DIAG_ANSWER_MAX: with few, others get the CPU in between. */
	size_t answer_bytes;
	/* @length: bytes of @socket and the attributes after it. */
	void (*visit)(void *context, const struct inet_diag_msg *socket, size_t length);
	void *context;
};

/* Asks, and visits every socket of the answer. 0 or -errno. */
int inet_diag_ask(const struct inet_diag_question *question);

/* Asks for one socket alone, by its ends and cookie. 0, -ENOENT if it is gone, or -errno. */
int inet_diag_ask_one(const struct inet_diag_question *question, uint8_t family,
		      const struct inet_diag_sockid *id);

/* The content of the attribute INET_DIAG_… of a socket; NULL if there is none of @least bytes or more. */
const void *inet_diag_attribute(const struct inet_diag_msg *socket, size_t length, uint16_t type,
				size_t least);

#endif
