/* SPDX-License-Identifier: MIT */
/*
 * The state of the observed services: readings of the kernel's counters, made into run documents, and the measured
 * phases between readings. Sources fill it (observer/sources), sinks read run documents through snapshot.h.
 */
#ifndef OBSERVER_MODEL_MODEL_H
#define OBSERVER_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/loader.h"
#include "kernel/plan.h"
#include "snapshot.h"
#include "sojourn/run.h"

struct budget;
struct model;

struct model_options {
	int netns_fd; /* the namespace that findings are about, owned by the caller; -1: our own */
	uint32_t netns; /* its inode */
	char **command; /* the command that runs meanwhile, for the document; may be NULL */
	bool run_statistics;
	uint32_t samples;	     /* samples per service and period; 0: none */
	const struct budget *budget; /* the caller's, which outlives the model */
	bool findings;		     /* look for findings at the begin and the end of each period */
	bool every_user; /* findings on ordinary users' own services may be critical, too */
	bool every_netns; /* those in other network namespaces, unless such a user owns the namespace */
	bool past;	  /* keep the past for snapshot_source.past() */
	/* With --tls; called for each library of TLS that was found. @error: why it is not looked into; 0: it is. */
	void (*library)(const char *path, int error);
	void (*expired)(uint64_t phase,
			uint32_t lease_s); /* called when a lease ends; may be NULL */
};

/* Begin the observation: everything from now on counts. 0 or -errno. */
int model_new(struct loader *loader, const struct plan *plan, const struct model_options *options,
	      struct model **ret_model);
void model_free(struct model *model);
DEFINE_CLEANUP(struct model *, model_free)

/* Visit the sockets and read everything since the observation began. 0 or -errno. */
int model_read(struct model *model, struct run **ret_run);

/*
 * Sampled exchanges wait in the kernel until model_drain() takes them. The descriptor says when;
 * -1: none are sampled. 0 or -errno.
 */
int model_fd(const struct model *model);
int model_drain(struct model *model);

/* Add a point to every series. Call it every MODEL_POINT_NS. */
#define MODEL_POINT_NS 1000000000ULL
void model_point(struct model *model);

/* Return the sinks' view of the model, which also has phases. */
struct snapshot_source model_snapshots(struct model *model);

#endif
