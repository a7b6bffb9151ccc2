/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Old and new shapes of the same kernel structure or function, each with the commit that changed it. Fields are
 * distinguished by BTF when a program is loaded. Abilities that the verifier or a helper lacks are in config.plain.
 * Functions and tracepoints whose arguments have changed have one program for each shape, and observer/kernel/plan.c
 * chooses by BTF: tcp/exchange_fexit.bpf.c, tcp/connection/accept_fexit.bpf.c, tcp/connection/accept.bpf.c.
 */
#ifndef BPF_COMPAT_H
#define BPF_COMPAT_H

#include "kernel.h"
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "syscall.h"
#include "wire/config.h"

extern const volatile struct observer_config config;

/*
 * ---- atomic operations whose result is wanted ----
 *
 * The verifier knows them since 5.12 (5ca419f2864a). On an older kernel config.plain is set, and
 * observer/kernel/skeleton.c takes the instructions out of the branches that are then dead. A read and a write
 * replace them; each place says why that is enough.
 */
#define PLAIN(place) (*(volatile typeof(*(place)) *)(place))

/*
 * Read back what was just stored in a map. To the verifier the value is a new one. It then follows the code that uses
 * the value once, and not again for each way that led to the old one. The instruction replaces that of a spilled
 * register.
 */
#define REREAD(place) PLAIN(place)

/*
 * The same for a number @x that is in no map, by two instructions. @unknown is any number that the verifier does not
 * know, such as one in a map. The verifier still knows whether the highest bits are 0, if @unknown has 32 bits.
 */
#define FORGET(x, unknown)                                                                     \
	({                                                                                     \
		__u64 forgotten_ = (x);                                                        \
		asm volatile("%0 ^= %1\n%0 ^= %1" : "+r"(forgotten_) : "r"((__u64)(unknown))); \
		(x) = (typeof(x))forgotten_;                                                   \
	})

/* Take the value and leave 0. While it is not 0, no other program writes it. */
#define atomic_take(place)                                           \
	({                                                           \
		typeof(*(place)) taken_;                             \
		if (config.plain) {                                  \
			taken_ = PLAIN(place);                       \
			if (taken_)                                  \
				PLAIN(place) = 0;                    \
		} else {                                             \
			taken_ = __sync_lock_test_and_set(place, 0); \
		}                                                    \
		taken_;                                              \
	})

/* Write @value so that all earlier writes are seen before it. x86 keeps their order anyway. */
#define atomic_publish(place, value)                            \
	do {                                                    \
		if (!config.plain)                              \
			__sync_lock_test_and_set(place, value); \
		else                                            \
			PLAIN(place) = value;                   \
	} while (0)

/* Keep later reads after all earlier accesses. x86 keeps that order for reads anyway. */
#define atomic_fence(place)                                       \
	do {                                                      \
		if (config.plain)                                 \
			barrier();                                \
		else                                              \
			__sync_val_compare_and_swap(place, 0, 0); \
	} while (0)

/*
 * Keep the order of two reads, or two writes, around this. x86 does so anyway, but the compiler
 * does not.
 */
#ifdef __TARGET_ARCH_x86
#define READS_IN_ORDER	    1
#define atomic_order(place) barrier()
#else
#define READS_IN_ORDER	    0
#define atomic_order(place) atomic_fence(place)
#endif

/* ---- a system call's registers ---- */

/* THREAD_SIZE, of x86-64 and of arm64 with pages of 4 KiB; read only where config.plain. */
#define STACK_BYTES 16384

/*
 * Return what the current system call is. Its registers are at the end of the stack. Since 5.15 a helper finds them
 * (dd6e10fbd9fb), and programs read its result without another one.
 */
static __always_inline void system_call_now(struct system_call *ret)
{
	const struct pt_regs *regs;
	struct task_struct *task;

	if (!config.plain) {
		syscall_read((void *)bpf_task_pt_regs(bpf_get_current_task_btf()), ret);
		return;
	}
	task = (void *)bpf_get_current_task();
	regs = BPF_CORE_READ(task, stack) + STACK_BYTES - SYSCALL_REGISTERS_BYTES;
	ret->number = syscall_number(regs);
	ret->second = syscall_second(regs);
	ret->third = syscall_third(regs);
}

/* ---- a thread's state ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___sched {
	int pid; /* the thread's number */
	unsigned int __state;
};

struct task_struct___before_5_14 {
	long state;
};
#pragma clang attribute pop

/* 2f064a59a11f, "sched: Change task_struct::state", renamed it in 5.14. */
static __always_inline unsigned int state_of(const struct task_struct___sched *task)
{
	const struct task_struct___before_5_14 *old = (const void *)task;

	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return old->state;
}

#endif
