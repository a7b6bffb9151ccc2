/* SPDX-License-Identifier: MIT */
/* How long connections live, how fast they are opened, how they are closed, how sockets are set. */
#ifndef DRIVER_TRANSPORT_POLICY_H
#define DRIVER_TRANSPORT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: connections live on, are opened as needed and closed by FIN; TCP_NODELAY is on. */
struct connection_policy {
	uint64_t requests;	 /* per connection; 0: no limit */
	uint64_t lifetime_ns;	 /* 0: no limit; requests under way are not cut off */
	uint64_t connect_rate;	 /* per second, over all threads; 0: no limit */
	bool reset;		 /* close by RST */
	bool delay;		 /* Nagle's algorithm: TCP_NODELAY off */
	uint32_t send_buffer;	 /* SO_SNDBUF in bytes; 0: as the kernel has it */
	uint32_t receive_buffer; /* SO_RCVBUF likewise */
};

/*
 * Whether this host grants the buffers: the kernel would cut them short without a word. -EINVAL with a
 * sentence in @ret_error (freed by the caller) that names the limit.
 */
int policy_check(const struct connection_policy *policy, char **ret_error);

/* Whether a connection that has @served requests and lives since @opened_ns has to go. */
static inline bool policy_is_over(const struct connection_policy *policy, uint64_t served,
				  uint64_t opened_ns, uint64_t now_ns)
{
	return (policy->requests && served >= policy->requests) ||
	       (policy->lifetime_ns && now_ns - opened_ns >= policy->lifetime_ns);
}

/* Sets the options of a socket that is not connected yet: buffers decide the window scale. */
void policy_apply(const struct connection_policy *policy, int fd);

/* Makes the close() of @fd send RST, if that is the policy. */
void policy_apply_close(const struct connection_policy *policy, int fd);

#endif
