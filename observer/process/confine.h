/* SPDX-License-Identifier: MIT */
/* Gives up privileges that a running observation no longer needs. */
#ifndef OBSERVER_PROCESS_CONFINE_H
#define OBSERVER_PROCESS_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

struct confine_user {
	uid_t uid;
	gid_t gid;
};

/*
 * Find the user that a confined process changes to. Root changes to @name, or without a name to
 * `sojourn` if that user exists, otherwise to `nobody`. Other users, and root without CAP_SETUID
 * and CAP_SETGID, stay themselves. -ENOENT: there is no such user; -EPERM: we may not change to it.
 */
int confine_find_user(const char *name, struct confine_user *ret_user);

struct confine_options {
	struct confine_user user;
	bool other_netns; /* will enter another network namespace */
};

/*
 * Give up all capabilities except those that reading (docs/operation.md) and @options need, and
 * become @options->user. Set no_new_privs, and allow only the system calls of an observation
 * (calls.h). Irrevocable. 0, or -errno: then a part of it may be done.
 */
int confine(const struct confine_options *options);

/* Give up all capabilities but those for making files, and allow only CALLS_FILES. 0 or -errno, as confine(). */
int confine_files(void);

/* Give up all capabilities, become nobody if allowed, and allow only CALLS_SEND. 0 or -errno, as confine(). */
int confine_all(void);

#endif
