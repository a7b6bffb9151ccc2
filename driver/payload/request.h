/* SPDX-License-Identifier: MIT */
/* A request, and which responses to it are good. Neighbour: message.h renders it. */
#ifndef DRIVER_PAYLOAD_REQUEST_H
#define DRIVER_PAYLOAD_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "expectation.h"
#include "framing/framing.h"
#include "match.h"
#include "template.h"

struct capture_list;

/* Several drivers of a run number their requests in turn, so that no number occurs twice. */
struct request_numbers {
	uint32_t driver;  /* which of them this is, from 0 */
	uint32_t drivers; /* 0 or 1: it is alone */
};

/* The messages of one call of gRPC. Zeroed: one. */
struct grpc_messages {
	uint32_t count;	      /* 0: one */
	uint64_t interval_ns; /* from one to the next; 0: as fast as the server takes them */
};

/*
 * Zeroed, it is empty and any response below 400 is good. Strings are borrowed. request_clear()
 * frees body, payload and the list of headers.
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
	struct grpc_messages grpc_messages;
	struct grpc_expectation grpc_expectation;

	/* Bytes: */
	const char *payload_option; /* the option given; NULL: none, or a default */
	char *payload;		    /* NULL: none */
	size_t payload_length;
	bool payload_literal; /* without fields */
	struct framing framing;
	struct match match; /* datagrams: which request a reply answers */

	struct template_rows rows;
	bool no_template;
	struct request_numbers numbers;

	/* From a scenario's step, borrowed: */
	struct template_variables variables;
	const struct capture_list *captures; /* NULL: none */
};

void request_clear(struct request *request);

#endif
