// SPDX-License-Identifier: MIT
/*
 * The allowed system calls, as tables; see calls.h. All others fail with ENOSYS.
 *
 * A call that is not listed does not kill the process: a newer library may try one that nobody
 * foresaw. The error is ENOSYS, not EPERM. At ENOSYS a C library tries the older call, which is
 * listed, but EPERM is its final answer (clone3 in containers). So the tables leave out clone3,
 * openat2 and io_uring: their arguments are in memory, which no filter can read.
 *
 * Landlock is not used. The kernel lets no process in a Landlock domain look at processes outside
 * of it (hook_ptrace_access_check()). Even for root, readlink() of /proc/PID/fd and /proc/PID/ns
 * would fail with EACCES, and sockets would have no owners. The filter reads the flags of open()
 * instead, and refuses to open files for writing.
 */
#include "calls.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* By name; names that this architecture lacks are skipped. */
static const char *const always[] = {
	/* clang-format off */
	"read", "readv", "pread64", "write", "writev", "lseek", "_llseek", "close", "close_range", "fcntl64",
	"dup", "dup2", "dup3", "pipe", "pipe2", "eventfd", "eventfd2", "memfd_create",
	"stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat64", "newfstatat", "statx", "statfs", "statfs64",
	"fstatfs", "fstatfs64", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents", "getdents64",
	"getcwd", "unlink", "unlinkat", "ftruncate", "ftruncate64", "fsync", "fdatasync",
	"poll", "ppoll", "ppoll_time64", "select", "_newselect", "pselect6", "pselect6_time64",
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"recv", "recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64", "send", "sendfile", "sendfile64", "accept", "accept4",
	"shutdown", "getsockname", "getpeername", "getsockopt", "setsockopt",
	"timerfd_create", "timerfd_settime", "timerfd_settime64", "timerfd_gettime", "signalfd4",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_sigpending",
	"rt_sigsuspend", "sigaltstack", "sigreturn", "restart_syscall", "wait4", "waitid",
	"brk", "mmap", "mmap2", "mremap", "munmap", "mprotect", "madvise",
	"futex", "futex_time64", "futex_waitv", "set_robust_list", "set_tid_address", "rseq", "membarrier",
	"sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getcpu",
	"nanosleep", "clock_nanosleep", "clock_nanosleep_time64", "clock_gettime", "clock_gettime64", "clock_getres",
	"clock_getres_time64", "gettimeofday", "time", "times",
	"getpid", "getppid", "gettid", "getpgrp", "getpgid", "getsid", "getuid", "getuid32", "geteuid", "geteuid32", "getgid",
	"getgid32", "getegid", "getegid32", "getresuid", "getresuid32", "getresgid", "getresgid32", "getgroups",
	"getgroups32", "capget", "getrlimit", "ugetrlimit", "getrusage", "getrandom", "sysinfo", "uname",
	"exit", "exit_group",
	/* clang-format on */
};

/* Calls that CALLS_FILES adds: its process makes new files, which replace old ones. */
static const char *const writing[] = {
	/* clang-format off */
	"open", "openat", "rename", "renameat", "renameat2", "fchmod", "flock", "pwrite64", "umask",
	/* clang-format on */
};

/* Calls that CALLS_SEND adds. An observer lacks them: it could connect a caller's socket to another host. */
static const char *const sending[] = {
	"bind", "connect", "sendmmsg", "sendmsg", "sendto", "socketpair",
};

#define WRITES	 (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
#define WHOLE	 UINT32_MAX
#define ANYTHING (CALLS_OBSERVE | CALLS_FILES | CALLS_SEND)
/* Added for each process without CALLS_FILES: it may open files, but only to read them. */
#define ONLY_READS (1U << 31)
/* A thread may be created, a process or a namespace may not. */
#define NEW_SPACE                                                                      \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/* Allow @call for @tasks if the masked argument has this value. Several rows of a call are alternatives. */
static const struct conditional {
	const char *call;
	unsigned int argument;
	uint64_t mask, value;
	unsigned int tasks;
} conditionals[] = {
	{"open", 1, WRITES, O_RDONLY, ONLY_READS},
	{"openat", 2, WRITES, O_RDONLY, ONLY_READS},
	{"fcntl", 1, WHOLE, F_DUPFD, ANYTHING}, /* others send signals */
	{"fcntl", 1, WHOLE, F_DUPFD_CLOEXEC, ANYTHING},
	{"fcntl", 1, WHOLE, F_GETFD, ANYTHING},
	{"fcntl", 1, WHOLE, F_SETFD, ANYTHING},
	{"fcntl", 1, WHOLE, F_GETFL, ANYTHING},
	{"fcntl", 1, WHOLE, F_SETFL, ANYTHING},
	{"bpf", 0, WHOLE, BPF_MAP_LOOKUP_ELEM, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_MAP_UPDATE_ELEM, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_MAP_DELETE_ELEM, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_MAP_GET_NEXT_KEY, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_MAP_LOOKUP_BATCH, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_OBJ_GET_INFO_BY_FD, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_ITER_CREATE, CALLS_OBSERVE},
	{"bpf", 0, WHOLE, BPF_LINK_CREATE, CALLS_OBSERVE}, /* of programs that are loaded already */
	{"setns", 1, WHOLE, CLONE_NEWNET, CALLS_NETNS},
	{"sendto", 3, MSG_FASTOPEN, 0, CALLS_OBSERVE}, /* it would connect */
	{"sendmsg", 2, MSG_FASTOPEN, 0, CALLS_OBSERVE | CALLS_FILES},
	{"socket", 0, WHOLE, AF_UNIX, CALLS_SEND}, /* the resolver uses these two, too */
	{"socket", 0, WHOLE, AF_NETLINK, CALLS_SEND},
	{"socket", 0, WHOLE, AF_INET, CALLS_SEND},
	{"socket", 0, WHOLE, AF_INET6, CALLS_SEND},
	{"clone", 0, CLONE_THREAD | NEW_SPACE, CLONE_THREAD, CALLS_SEND},
	{"ioctl", 1, WHOLE, TCGETS, ANYTHING},
	{"ioctl", 1, WHOLE, TIOCGWINSZ, ANYTHING},
	{"ioctl", 1, WHOLE, FIONBIO, ANYTHING},
	{"ioctl", 1, WHOLE, FIONREAD, ANYTHING},
	{"ioctl", 1, WHOLE, PERF_EVENT_IOC_DISABLE, CALLS_OBSERVE},
	{"ioctl", 1, WHOLE, NS_GET_USERNS, CALLS_NETNS}, /* who owns a namespace */
	{"ioctl", 1, WHOLE, NS_GET_OWNER_UID, CALLS_NETNS},
	{"prctl", 0, WHOLE, PR_SET_NAME, ANYTHING},
	{"prctl", 0, WHOLE, PR_SET_VMA, ANYTHING},
	{"prctl", 0, WHOLE, PR_SET_PDEATHSIG, CALLS_SEND},
	{"prlimit64", 2, UINT64_MAX, 0, ANYTHING},
	{"kill", 1, WHOLE, 0, CALLS_OBSERVE}, /* whether a process exists */
};

static void close_filter(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

static int allow_names(scmp_filter_ctx filter, const char *const *names, size_t count)
{
	int r = 0;

	for (size_t i = 0; !r && i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		/* A negative number is unknown, or one of another architecture. */
		if (number >= 0)
			r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
	}
	return r;
}

static struct scmp_arg_cmp argument_is(unsigned int argument, uint64_t mask, uint64_t value)
{
	return (struct scmp_arg_cmp){
		.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

static int allow_if(scmp_filter_ctx filter, const char *name, unsigned int count,
		    const struct scmp_arg_cmp *conditions)
{
	int number = seccomp_syscall_resolve_name(name);

	return number < 0
		       ? 0
		       : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count, conditions);
}

/* Other netlink protocols could configure the network. */
static int allow_inet_diag(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp conditions[] = {argument_is(0, WHOLE, AF_NETLINK),
						  argument_is(2, WHOLE, NETLINK_SOCK_DIAG)};

	return allow_if(filter, "socket", ARRAY_SIZE(conditions), conditions);
}

/* Allow abort(), which a library's assertion calls. */
static int allow_own_signals(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp condition = argument_is(0, WHOLE, (uint64_t)getpid());

	return allow_if(filter, "tgkill", 1, &condition);
}

int calls_allow(unsigned int tasks)
{
	CLEANUP(close_filter) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = filter ? allow_names(filter, always, ARRAY_SIZE(always)) : -ENOMEM;

	if (!r && tasks & CALLS_SEND)
		r = allow_names(filter, sending, ARRAY_SIZE(sending));
	if (!r && tasks & CALLS_FILES)
		r = allow_names(filter, writing, ARRAY_SIZE(writing));
	else
		tasks |= ONLY_READS;
	for (size_t i = 0; !r && i < ARRAY_SIZE(conditionals); i++) {
		const struct conditional *row = &conditionals[i];
		const struct scmp_arg_cmp condition =
			argument_is(row->argument, row->mask, row->value);

		if (row->tasks & tasks)
			r = allow_if(filter, row->call, 1, &condition);
	}
	if (!r && tasks & CALLS_OBSERVE)
		r = allow_inet_diag(filter);
	if (!r)
		r = allow_own_signals(filter);
	if (!r && !(tasks & CALLS_SEND))
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	return r ? r : seccomp_load(filter);
}
