/* SPDX-License-Identifier: MIT */
/*
 * A look: two readings of some network namespaces, a sample apart, and the resulting findings for a run document.
 * Independent of command line and output.
 */
#ifndef OBSERVER_RESOURCES_LOOK_H
#define OBSERVER_RESOURCES_LOOK_H

#include <signal.h>

#include "diagnose.h"
#include "sojourn/cleanup.h"
#include "sojourn/run.h"

/* A network namespace that is looked at. */
struct look_target {
	int fd; /* -1: our own */
	uint32_t inode;
	char name[64]; /* as the user calls it; "" for our own */
};

/* The scope of a look. */
struct look_options {
	const struct look_target *targets; /* the caller's, which outlive the look */
	size_t target_count;
	size_t refused; /* namespaces that may not be opened */
	uint32_t pid;	/* only this process's resources; 0: everybody's */
	uint16_t port;	/* only resources of this port; 0: any */
	bool procfs;	/* sockets from /proc although inet_diag would answer */
	/* Counts failures, and names processes that connect or close. NULL: not watched; events_error says why. */
	struct resource_events *events;
	int events_error; /* 0: not requested */
	bool resources;	  /* the document gets all resources, too */
	bool every_user;  /* findings on ordinary users' own resources may be critical, too */
	bool every_netns; /* those in other network namespaces, unless such a user owns the namespace */
};

struct look;

int look_new(const struct look_options *options, struct look **ret_look);
void look_free(struct look *look);
DEFINE_CLEANUP(struct look *, look_free)

/*
 * A look whose sample the caller decides. look_begin() takes the first reading. look_end() takes the second, and adds
 * findings and everything that could not be seen to @run. It may be called again, and then covers all the time since
 * look_begin(). Meanwhile look_point(), called every @interval_ns, makes the trend of processes' descriptors. @past: the
 * findings are of the whole time, and not only of its end.
 * @ret_worst may be NULL. Return 0, -ENODATA if no namespace may be entered, or another -errno.
 */
int look_begin(struct look *look);
/* Return the memory in bytes between look_begin() and look_end(). */
size_t look_bytes(const struct look *look);
void look_point(struct look *look, uint64_t interval_ns);
int look_end(struct look *look, bool past, struct run *run, enum severity *ret_worst);

/*
 * Look for @sample_ns into a new document, which covers the sample. A second look begins where the first
 * ended. 0, -EINTR when one of @stop, which are blocked, asked to end, or -errno.
 */
int look_once(struct look *look, uint64_t sample_ns, const sigset_t *stop, struct run **ret_run,
	      enum severity *ret_worst);

/* document.c: adds all of @findings, or all of @resources, to @run. 0 or -ENOMEM. */
int document_findings(const struct finding_list *findings, struct run *run);
int document_resources(const struct resource_list *resources, struct run *run);

#endif
