/* SPDX-License-Identifier: MIT */
/*
 * The agents of a run over NATS: calls for them, takes as many as there are members, and relays
 * the members' channels to them.
 */
#ifndef DRIVER_FLEET_MUSTER_H
#define DRIVER_FLEET_MUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "fleet/agent/fleet_options.h"
#include "kept.h"
#include "member.h"
#include "transport/loop.h"

struct muster;

/*
 * Call agents for the run of @kept, which store their results if it is kept. Wait until the wanted number of agents has accepted. -EINVAL with a sentence in @ret_error,
 * -ECANCELED if the patience is over, other -errno.
 */
int muster_call(uv_loop_t *loop, const struct fleet_options *options, const struct kept *kept,
		struct patience patience, struct muster **ret_muster, char **ret_error);
/* Return the name of the agent that is member @index. */
const char *muster_name(const struct muster *muster, uint32_t index);
/* Return its key. */
const char *muster_agent(const struct muster *muster, uint32_t index);
/* Connect @member to its agent. 0 or -errno. */
int muster_attach(struct muster *muster, uint32_t index, struct member *member);
/* Release all agents and close the connection, which takes turns of the loop. */
void muster_leave(struct muster *muster);
/* Free it, once its loop has closed all handles. Takes NULL. */
void muster_free(struct muster *muster);

#endif
