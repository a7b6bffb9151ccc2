/* SPDX-License-Identifier: MIT */
/*
 * All observers at a NATS server that see the targets of a run, as one group behind
 * run/observers.h. lookout.c has the agents beside them.
 */
#ifndef DRIVER_FLEET_OBSERVERS_LOOKOUTS_H
#define DRIVER_FLEET_OBSERVERS_LOOKOUTS_H

#include "nats/nats.h"
#include "run/observer.h"

struct fleet_options;

struct lookouts_settings {
	struct nats_settings nats;
	bool own;	    /* not the fleet's */
	uint64_t gather_ns; /* how long to wait for observers */
	struct observer_source source;
};

/*
 * Settle --observer of a NATS server: its address and login, or those of @fleet, which is NULL without
 * one. @access then has the source. The settings stay where they are, until lookouts_clear(). Nothing
 * is done if the run has no such observer. -EINVAL with a sentence in @ret_error; -ENOMEM.
 */
int lookouts_settle(struct observer_access *access, const struct fleet_options *fleet,
		    struct lookouts_settings *settings, char **ret_error);
void lookouts_clear(struct lookouts_settings *settings);

/*
 * The group of a coordinator that is gone, by its record (observer.h): its phase is under way. The
 * agents are not released before that has been ended, as the coordinator may still be there. -EBADMSG: the
 * record is not valid; other -errno.
 */
int lookouts_adopt(const struct lookouts_settings *settings, const json_t *record,
		   struct patience patience, struct observer_group **ret_group);
/* The document that an agent has stored, unless it has sent one. It is copied. -ENOMEM. */
int lookouts_give(struct observer_group *group, const char *agent, const char *text, size_t length);

#endif
