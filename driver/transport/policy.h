/* SPDX-License-Identifier: MIT */
/* Policy of connections: how long they live, how fast they open, how they close, socket options. */
#ifndef DRIVER_TRANSPORT_POLICY_H
#define DRIVER_TRANSPORT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: connections stay open, open as needed and close by FIN; TCP_NODELAY is on. */
struct connection_policy {
	uint64_t requests;	 /* per connection; 0: no limit */
	uint64_t lifetime_ns;	 /* 0: no limit; requests in flight end first */
	uint64_t connect_rate;	 /* per second, of all threads; 0: no limit */
	bool reset;		 /* close by RST */
	bool delay;		 /* TCP_NODELAY off: Nagle's algorithm */
	uint32_t send_buffer;	 /* SO_SNDBUF in bytes; 0: the kernel's default */
	uint32_t receive_buffer; /* SO_RCVBUF likewise */
};

/*
 * Check that this host grants the buffers, which the kernel would silently reduce. -EINVAL with
 * @ret_error that names the limit.
 */
int policy_check(const struct connection_policy *policy, char **ret_error);

/* As policy_is_over(), where there is a limit. */
bool policy_limit_is_over(const struct connection_policy *policy, uint64_t served,
			  uint64_t opened_ns);

/* Return whether to close a connection after @served requests, open since @opened_ns. */
static inline bool policy_is_over(const struct connection_policy *policy, uint64_t served,
				  uint64_t opened_ns)
{
	return (policy->requests || policy->lifetime_ns) &&
	       policy_limit_is_over(policy, served, opened_ns);
}

/* Set options before connecting, as buffers decide the window scale. */
void policy_apply(const struct connection_policy *policy, int fd);

#endif
