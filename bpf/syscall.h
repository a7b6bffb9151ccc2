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
	unsigned long dx;
	unsigned long si;
	unsigned long r8;
	unsigned short cs;
};

struct user_pt_regs___syscall_arm64 {
	__u64 regs[31];
	__u64 pstate;
};

struct pt_regs___syscall_arm64 {
	struct user_pt_regs___syscall_arm64 user_regs;
	int syscallno;
};
#pragma clang attribute pop

/* The arguments of a system call that sends. */
struct system_call {
	long number;
	__u64 second;	 /* a buffer, an array of them, or a message */
	__u64 third;	 /* of sendmmsg(): how many messages */
	__u64 fifth;	 /* of sendto(): the receiver's address */
	bool of_32_bits; /* a 32-bit program's: numbers and structures differ */
};

#if defined(__TARGET_ARCH_x86)
#define NR_READ	    0
#define NR_WRITE    1
#define NR_READV    19
#define NR_WRITEV   20
#define NR_ACCEPT   43
#define NR_SENDTO   44
#define NR_RECVFROM 45
#define NR_SENDMSG  46
#define NR_RECVMSG  47
#define NR_BIND	    49
#define NR_ACCEPT4  288
#define NR_SENDMMSG 307

#define SYSCALL_REGISTERS struct pt_regs___syscall_x86
#define SYSCALL_NUMBER	  orig_ax
#define SYSCALL_SECOND	  si
#define SYSCALL_THIRD	  dx
#define SYSCALL_FIFTH	  r8

#define OF_32_BITS(registers) ((registers)->cs == 0x23) /* __USER32_CS */
#elif defined(__TARGET_ARCH_arm64)
#define NR_READ	    63
#define NR_WRITE    64
#define NR_READV    65
#define NR_WRITEV   66
#define NR_BIND	    200
#define NR_ACCEPT   202
#define NR_SENDTO   206
#define NR_RECVFROM 207
#define NR_SENDMSG  211
#define NR_RECVMSG  212
#define NR_ACCEPT4  242
#define NR_SENDMMSG 269

#define SYSCALL_REGISTERS struct pt_regs___syscall_arm64
#define SYSCALL_NUMBER	  syscallno
#define SYSCALL_SECOND	  user_regs.regs[1]
#define SYSCALL_THIRD	  user_regs.regs[2]
#define SYSCALL_FIFTH	  user_regs.regs[4]

#define OF_32_BITS(registers) ((registers)->user_regs.pstate & 0x10) /* PSR_MODE32_BIT */
#else
#error "the system call numbers of this architecture are not known"
#endif

static __always_inline long syscall_number(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const SYSCALL_REGISTERS *)regs, SYSCALL_NUMBER);
}

/* Return the second argument: a buffer, an iovec or a msghdr. */
static __always_inline __u64 syscall_second(const struct pt_regs *regs)
{
	return BPF_CORE_READ((const SYSCALL_REGISTERS *)regs, SYSCALL_SECOND);
}

/* @regs: the result of a helper, which programs may read directly. */
static __always_inline void syscall_read(const void *regs, struct system_call *ret)
{
	const SYSCALL_REGISTERS *r = regs;

	ret->number = r->SYSCALL_NUMBER;
	ret->second = r->SYSCALL_SECOND;
	ret->third = r->SYSCALL_THIRD;
	ret->fifth = r->SYSCALL_FIFTH;
	ret->of_32_bits = OF_32_BITS(r);
}

#endif
