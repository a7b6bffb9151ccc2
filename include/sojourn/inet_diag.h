/* SPDX-License-Identifier: MIT */
/*
 * The sockets of this network namespace, by sock_diag over netlink. Needs no privilege and no
 * library, and so works in the static driver.
 */
#ifndef SOJOURN_INET_DIAG_H
#define SOJOURN_INET_DIAG_H

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum of bytes that the kernel writes per read. */
#define INET_DIAG_ANSWER_MAX 32768

/* A question: which sockets to visit. */
struct inet_diag_question {
	/* Not for TCP: what is sent instead, and the least length of a message of the answer. */
	const struct nlmsghdr *request;
	size_t least;
	uint32_t states;     /* bits 1 << TCP_ESTABLISHED … */
	uint8_t extensions;  /* attributes: bits 1 << (INET_DIAG_INFO - 1) … */
	const void *filter;  /* bytecode that selects sockets (struct inet_diag_bc_op); NULL: all */
	size_t filter_bytes; /* size of @filter */
	/* Bytes per read, up to INET_DIAG_ANSWER_MAX; small reads leave the CPU to others. */
	size_t answer_bytes;
	/* @socket: struct inet_diag_msg, for TCP. @length: bytes of it and the attributes after it. */
	void (*visit)(void *context, const void *socket, size_t length);
	void *context;
};

/* Ask, and visit every socket of the answer. 0 or -errno. */
int inet_diag_ask(const struct inet_diag_question *question);

/* Ask for one socket, by its ends and cookie. 0, -ENOENT if it is gone, or -errno. */
int inet_diag_ask_one(const struct inet_diag_question *question, uint8_t family,
		      const struct inet_diag_sockid *id);

/* Return a socket's attribute INET_DIAG_…, or NULL without one of @least bytes. */
const void *inet_diag_attribute(const struct inet_diag_msg *socket, size_t length, uint16_t type,
				size_t least);

#endif
