// SPDX-License-Identifier: MIT
/* What is kept and what is forbidden, as tables; see confine.h. */
#include "confine.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

static const struct {
	unsigned int capability;
	bool other_netns; /* only there */
} kept[] = {
	{CAP_BPF, false},	      /* maps and iterators, before 6.0 and where sysctl says so */
	{CAP_PERFMON, false},	      /* the doctor's programs that begin later */
	{CAP_NET_ADMIN, false},	      /* sockets over netlink, with all they tell */
	{CAP_SYS_PTRACE, false},      /* descriptors of other users' processes */
	{CAP_DAC_READ_SEARCH, false}, /* likewise their /proc/PID/fd */
	{CAP_SYS_ADMIN, true},	      /* setns() */
};

/* Denied by name: what this architecture does not have is left out. */
static const char *const forbidden[] = {
	/* clang-format off */
	"execve", "execveat", "fork", "vfork",
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
	"mount", "umount2", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig", "pivot_root", "chroot",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid",
	"add_key", "keyctl", "request_key", "userfaultfd", "personality", "iopl", "ioperm", "acct",
	"swapon", "swapoff", "sethostname", "setdomainname", "settimeofday", "clock_settime", "adjtimex",
	"unshare", "open_by_handle_at", "name_to_handle_at", "quotactl", "syslog",
	"chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat",
	"mknod", "mknodat", "link", "linkat", "symlink", "symlinkat",
	/* clang-format on */
};

static int keep_capabilities(bool other_netns)
{
	bool keep[ARRAY_SIZE(kept)], bounds;

	if (capng_get_caps_process())
		return -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		keep[i] = (!kept[i].other_netns || other_netns) &&
			  capng_have_capability(CAPNG_EFFECTIVE, kept[i].capability);
	/* Without CAP_SETPCAP the bounding set stays; no_new_privs makes it harmless. */
	bounds = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
	capng_clear(CAPNG_SELECT_BOTH);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (keep[i])
			capng_update(CAPNG_ADD,
				     CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET,
				     kept[i].capability);
	}
	return capng_apply(bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

static void close_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

static int forbid_calls(bool other_netns)
{
	CLEANUP(close_filter) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < ARRAY_SIZE(forbidden); i++) {
		int number = seccomp_syscall_resolve_name(forbidden[i]);

		if (number >= 0)
			r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
	}
	if (!r && !other_netns)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setns), 0);
	return r ? r : seccomp_load(filter);
}

static int forbid_others(bool other_netns)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : forbid_calls(other_netns);
}

int confine(bool other_netns)
{
	int r = keep_capabilities(other_netns);

	return r ? r : forbid_others(other_netns);
}

/* Root without capabilities is still the owner of root's files. */
#define NOBODY 65534

int confine_all(void)
{
	bool bounds =
		!capng_get_caps_process() && capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);

	if (!geteuid() && setgroups(0, NULL) < 0)
		return -errno;
	capng_clear(CAPNG_SELECT_BOTH);
	if (geteuid() ? capng_apply(bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS)
		      : capng_change_id(NOBODY, NOBODY,
					bounds ? CAPNG_CLEAR_BOUNDING : CAPNG_NO_FLAG))
		return -EPERM;
	return forbid_others(false);
}
