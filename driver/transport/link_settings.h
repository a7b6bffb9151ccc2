/* SPDX-License-Identifier: MIT */
/* How the server is reached: from where, over what kind of connections, and how long it may take. */
#ifndef DRIVER_TRANSPORT_LINK_SETTINGS_H
#define DRIVER_TRANSPORT_LINK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"
#include "source.h"
#include "tls.h"

/* Strings are borrowed; source_clear() frees what sources have. */
struct link_settings {
	struct source_set sources;
	struct connection_policy policy;
	bool new_connections; /* policy.requests is 1 */
	struct tls_options tls;
	uint64_t timeout_ns; /* of connecting, and of waiting for an answer */
	uint32_t streams;    /* HTTP/2: requests at a time on a connection, at least 1 */
	struct {
		bool given;		/* an option of datagrams */
		uint32_t outstanding;	/* requests at a time on a socket, at least 1 */
		uint64_t retransmit_ns; /* 0: never */
	} datagrams;
	bool sampling; /* results name their flow */
};

#endif
