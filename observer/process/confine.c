// SPDX-License-Identifier: MIT
/* Keeps some capabilities and changes the user; see confine.h. */
#include "confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "calls.h"
#include "sojourn/cleanup.h"

static const struct {
	unsigned int capability;
	unsigned int tasks; /* tasks that it is kept for */
} kept[] = {
	{CAP_BPF, CALLS_OBSERVE},	 /* maps and iterators: before 6.0, where sysctl says so */
	{CAP_PERFMON, CALLS_OBSERVE},	 /* iterators read the kernel's memory */
	{CAP_SYS_PTRACE, CALLS_OBSERVE}, /* descriptors of other users' processes */
	{CAP_DAC_READ_SEARCH, CALLS_OBSERVE}, /* their /proc/PID/fd; root's files of tokens */
	{CAP_SYS_ADMIN, CALLS_NETNS},	      /* setns() */
	{CAP_DAC_OVERRIDE, CALLS_FILES},      /* root writes to users' folders */
	{CAP_FOWNER, CALLS_FILES},	      /* and replaces their files in /tmp */
};

/* The id of the user `nobody`, also on hosts where no user has that name. */
#define NOBODY 65534

/* ---- the user ---- */

static int find_name(const char *name, struct confine_user *ret_user)
{
	const struct passwd *entry;

	errno = 0;
	entry = getpwnam(name);
	if (!entry)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -ENOENT;
	*ret_user = (struct confine_user){entry->pw_uid, entry->pw_gid};
	return 0;
}

static bool held(unsigned int capability)
{
	return capng_have_capability(CAPNG_EFFECTIVE, capability);
}

static bool may_change(void)
{
	return !geteuid() && !capng_get_caps_process() && held(CAP_SETUID) && held(CAP_SETGID);
}

int confine_find_user(const char *name, struct confine_user *ret_user)
{
	const struct confine_user own = {geteuid(), getegid()};
	struct confine_user found = own;
	int r = 0;

	if (name)
		r = find_name(name, &found);
	else if (may_change() && find_name("sojourn", &found) < 0 &&
		 find_name("nobody", &found) < 0)
		found = (struct confine_user){NOBODY, NOBODY};
	if (r < 0)
		return r;
	if (found.uid != own.uid && !may_change())
		return -EPERM;
	*ret_user = found;
	return 0;
}

/* ---- capabilities ---- */

/* Select the held capabilities to keep. *@ret_bounds: whether the bounding set can be changed. */
static int choose(unsigned int tasks, bool *ret_bounds)
{
	bool keep[ARRAY_SIZE(kept)];

	if (capng_get_caps_process())
		return -EIO;
	/* Without CAP_SETPCAP the bounding set stays; no_new_privs makes it harmless. */
	*ret_bounds = held(CAP_SETPCAP);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		keep[i] = kept[i].tasks & tasks && held(kept[i].capability);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (keep[i])
			capng_update(CAPNG_ADD,
				     CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET,
				     kept[i].capability);
	}
	return 0;
}

static int give_up(unsigned int tasks, const struct confine_user *user)
{
	bool bounds;
	int r = choose(tasks, &bounds);

	if (r < 0)
		return r;
	if (bounds && capng_apply(CAPNG_SELECT_BOUNDS))
		return -EPERM;
	if (user->uid != geteuid())
		r = capng_change_id((int)user->uid, (int)user->gid, CAPNG_DROP_SUPP_GRP);
	else
		r = capng_apply(CAPNG_SELECT_CAPS);
	return r ? -EPERM : 0;
}

/* ---- all of it ---- */

static int allow_only(unsigned int tasks)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : calls_allow(tasks);
}

int confine(const struct confine_options *options)
{
	unsigned int tasks = CALLS_OBSERVE | (options->other_netns ? CALLS_NETNS : 0U);
	int r = give_up(tasks, &options->user);

	return r ? r : allow_only(tasks);
}

int confine_files(void)
{
	const struct confine_user own = {geteuid(), getegid()};
	int r = give_up(CALLS_FILES, &own);

	return r ? r : allow_only(CALLS_FILES);
}

int confine_all(void)
{
	const struct confine_user own = {geteuid(), getegid()}, nobody = {NOBODY, NOBODY};
	int r = give_up(CALLS_SEND, may_change() ? &nobody : &own);

	return r ? r : allow_only(CALLS_SEND);
}
