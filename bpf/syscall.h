/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The system call that the current task is in: its number and arguments, by architecture. */
#ifndef BPF_SYSCALL_H
#define BPF_SYSCALL_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___syscall_x86 {
	unsigned long orig_ax;
	unsigned long si;
};

struct user_pt_regs___syscall_arm64 {
	__u64 regs[31];
};

struct pt_regs___syscall_arm64 {
	struct user_pt_regs___syscall_arm64 user_regs;
	__u64 syscallno;
};
#pragma clang attribute pop

#if defined(__TARGET_ARCH_x86)
#define NR_READ	    0
#define NR_READV    19
#define NR_ACCEPT   43
#define NR_RECVFROM 45
#define NR_RECVMSG  47
#define NR_BIND	    49
#define NR_ACCEPT4  288

#define SYSCALL_REGISTERS_BYTES bpf_core_type_size(struct pt_regs___syscall_x86)

static __always_inline long syscall_number(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const struct pt_regs___syscall_x86 *)regs, orig_ax);
}

/* The second argument: a buffer, an iovec or a msghdr. */
static __always_inline __u64 syscall_second(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const struct pt_regs___syscall_x86 *)regs, si);
}
#elif defined(__TARGET_ARCH_arm64)
#define NR_READ	    63
#define NR_READV    65
#define NR_BIND	    200
#define NR_ACCEPT   202
#define NR_RECVFROM 207
#define NR_RECVMSG  212
#define NR_ACCEPT4  242

#define SYSCALL_REGISTERS_BYTES bpf_core_type_size(struct pt_regs___syscall_arm64)

static __always_inline long syscall_number(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const struct pt_regs___syscall_arm64 *)regs, syscallno);
}

static __always_inline __u64 syscall_second(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const struct pt_regs___syscall_arm64 *)regs, user_regs.regs[1]);
}
#else
#error "the system call numbers of this architecture are not known"
#endif

#endif
