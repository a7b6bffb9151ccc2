/* SPDX-License-Identifier: MIT */
/* Whether an exhausted resource harms others than the one who exhausts it; see diagnose_soften(). */
#ifndef OBSERVER_RESOURCES_HARM_H
#define OBSERVER_RESOURCES_HARM_H

#include "resource.h"

struct look_target;

/* The findings that stay critical in any case. */
struct harm {
	const struct run *run; /* processes of its services serve others */
	uint32_t pid;	       /* a process that was named; 0: none */
	uint16_t port;	       /* a port that was named; 0: none */
	bool every_user;       /* resources of ordinary users, too */
	bool every_netns; /* those in other network namespaces, too, unless such a user owns the namespace */
	const struct look_target *targets; /* the namespaces of resources */
	size_t target_count;
	uint32_t user; /* who runs this program: those of this one, too, unless it is nobody */
};

/*
 * Return a clause on why exhausting @resource harms nobody else; NULL: it may. @context: a struct
 * harm.
 */
const char *harm_excuse(const void *context, const struct resource *resource);

#endif
