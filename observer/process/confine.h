/* SPDX-License-Identifier: MIT */
/* Gives up what an observation needs no longer once it runs. */
#ifndef OBSERVER_PROCESS_CONFINE_H
#define OBSERVER_PROCESS_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

struct confine_user {
	uid_t uid;
	gid_t gid;
};

/*
 * The user that a confined process is to be. Of root that is @name, or without a name `sojourn` if there is one, or
 * else `nobody`; without CAP_SETUID and CAP_SETGID, and of everybody else, it is the own. -ENOENT: there is no such
 * user; -EPERM: we cannot be it.
 */
int confine_find_user(const char *name, struct confine_user *ret_user);

struct confine_options {
	struct confine_user user;
	bool other_netns; /* goes on to enter another network namespace */
	bool files;	  /* goes on to make files that the user has named */
};

/*
 * Keeps, of the capabilities held, those that reading needs (docs/operation.md), and those that @options need;
 * becomes @options->user; sets no_new_privs; and allows the system calls of an observation alone (calls.h).
 * Irrevocable. 0 or -errno; then less than that was given up.
 */
int confine(const struct confine_options *options);

/* Keeps none, is nobody if it was root and may change, and is as strict besides. 0 or -errno, likewise. */
int confine_all(void);

#endif
