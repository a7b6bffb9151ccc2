/* SPDX-License-Identifier: MIT */
/*
 * gRPC over HTTP/2: messages each way, after a prefix of 5 bytes, and a status in the trailers
 * (grpc.io's PROTOCOL-HTTP2).
 */
#ifndef DRIVER_ENGINE_HTTP2_GRPC_H
#define DRIVER_ENGINE_HTTP2_GRPC_H

#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "payload/expectation.h"

#define GRPC_PREFIX_SIZE 5U
#define GRPC_NO_STATUS	 UINT8_MAX

/* Write the prefix of an uncompressed message of @length bytes. */
void grpc_prefix(uint32_t length, unsigned char prefix[GRPC_PREFIX_SIZE]);

/* Add "0,5" or "ok,not_found". -EINVAL with @ret_error, -ENOMEM. */
int grpc_parse_expectation(const char *value, struct grpc_expectation *expectation,
			   char **ret_error);

#define GRPC_MESSAGES_MAX 100000000

/* Take "5" or "any". -EINVAL with @ret_error. */
int grpc_parse_replies(const char *value, struct grpc_expectation *expectation, char **ret_error);

/* A response so far; call grpc_response_begin() first. */
struct grpc_response {
	uint8_t status; /* GRPC_NO_STATUS: none yet; RUN_GRPC_STATUS_COUNT - 1: an unknown one */
	uint32_t messages;
	uint32_t prefix_length; /* bytes of the prefix seen */
	unsigned char prefix[GRPC_PREFIX_SIZE];
	uint64_t left; /* bytes of the message still to come */
};

void grpc_response_begin(struct grpc_response *response);
void grpc_response_feed(struct grpc_response *response, const char *data, size_t length);
/* Take the value of grpc-status; anything but a number counts as none. */
void grpc_response_status(struct grpc_response *response, const char *value, size_t length);
/* Judge a complete response with HTTP status 200. Return RUN_NO_ERROR or RUN_ERROR_MALFORMED. */
enum run_error grpc_judge(const struct grpc_expectation *expectation,
			  const struct grpc_response *response, enum verdict *ret_verdict);

#endif
