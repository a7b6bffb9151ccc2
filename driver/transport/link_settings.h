/* SPDX-License-Identifier: MIT */
/* Settings for reaching the server: source addresses, kind of connections, time limit. */
#ifndef DRIVER_TRANSPORT_LINK_SETTINGS_H
#define DRIVER_TRANSPORT_LINK_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"
#include "source.h"
#include "tls.h"

/* Strings are borrowed; source_clear() frees the sources. */
struct link_settings {
	struct source_set sources;
	struct connection_policy policy;
	bool new_connections; /* sets policy.requests to 1 */
	struct tls_options tls;
	uint64_t timeout_ns; /* of connecting, and of each answer */
	uint32_t streams;    /* HTTP/2: requests at a time per connection, at least 1 */
	struct {
		bool given;		/* an option for datagrams was given */
		uint32_t outstanding;	/* requests at a time per socket, at least 1 */
		uint64_t retransmit_ns; /* 0: never */
	} datagrams;
	bool sampling; /* results name their flow */
};

#endif
