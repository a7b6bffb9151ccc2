// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * When the threads that serve run. Only with --cpu, because these programs run at every switch and wake-up of the
 * host. For threads that serve nothing they mostly test one bit. See thread.h.
 *
 *   sched_switch   a thread leaves a CPU, another one gets it
 *   sched_wakeup   a thread is put into a run queue
 *
 * Only the arguments that every kernel has in these places are used. The previous thread's next state is read from
 * its task.
 */
#include "thread.h"

#define STATE_DEAD 0x80 /* TASK_DEAD */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___sched {
	int pid; /* the thread's number */
	unsigned int __state;
};
#pragma clang attribute pop

static __always_inline void left(bool preempted, const struct task_struct___sched *task, __u64 now)
{
	struct thread *t = thread_known(task->pid);
	unsigned int state;

	if (!t)
		return;
	state = task->__state;
	t->switches++;
	thread_enter(t, preempted || !state ? THREAD_RUNNABLE : THREAD_BLOCKED, now);
	if (!preempted && state & STATE_DEAD)
		thread_forget(t);
}

SEC("?tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool preempted, struct task_struct___sched *prev,
	     struct task_struct___sched *next)
{
	struct thread *t = thread_known(next->pid);
	__u64 now;

	if (!t && !thread_known(prev->pid))
		return 0;
	now = bpf_ktime_get_ns();
	left(preempted, prev, now);
	if (t)
		thread_enter(t, THREAD_RUNNING, now);
	return 0;
}

/* The tracepoint also reports threads that had not yet gone to sleep: their state does not change. */
SEC("?tp_btf/sched_wakeup")
int BPF_PROG(thread_wakeup, struct task_struct___sched *task)
{
	struct thread *t = thread_known(task->pid);

	if (t && t->state == THREAD_BLOCKED)
		thread_enter(t, THREAD_RUNNABLE, bpf_ktime_get_ns());
	return 0;
}
