/* SPDX-License-Identifier: MIT */
/* What is sent, and which answers to it are good. Neighbours: message.h makes the bytes of it. */
#ifndef DRIVER_PAYLOAD_REQUEST_H
#define DRIVER_PAYLOAD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "expectation.h"
#include "framing/framing.h"
#include "match.h"
#include "template.h"

struct capture_list;

/* Where several drivers send the requests of one run, the numbers of each are its own. */
struct request_numbers {
	uint32_t driver;  /* which of them this is, from 0 */
	uint32_t drivers; /* 0 or 1: it is alone */
};

/*
 * Zeroed: nothing is sent, and any answer below 400 is good. Strings are borrowed, except body and
 * payload, which request_clear() frees together with the list of headers.
 */
struct request {
	/* HTTP: */
	const char *method;
	bool method_given;
	const char **headers; /* "Name: value" */
	size_t header_count;
	char *body; /* NULL: none */
	size_t body_length;
	struct expectation expectation;
	bool grpc;
	struct grpc_expectation grpc_expectation;

	/* Bytes: */
	const char *payload_option; /* that gave it; NULL: none, or it is a default */
	char *payload;		    /* NULL: none */
	size_t payload_length;
	bool payload_literal; /* no template */
	struct framing framing;
	struct match match; /* datagrams: which request a reply answers */

	struct template_rows rows;
	bool no_template;
	struct request_numbers numbers;

	/* Of a scenario's step, borrowed: */
	struct template_variables variables;
	const struct capture_list *captures; /* NULL: none */
};

void request_clear(struct request *request);

#endif
