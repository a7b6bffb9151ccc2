/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * How long the threads that serve ran, wanted to run, and waited: three clocks for every thread that has read from an
 * observed socket. The scheduler's hooks (thread.bpf.c) keep them. The exchange's programs read those of the current
 * thread. Neighbour: exchange.h.
 *
 * A thread has one place, by its number. If another thread has the place, the thread has no clocks, and its exchanges
 * are not divided. Every change of state happens under the lock of the thread's run queue, so there is one writer at
 * a time.
 */
#ifndef BPF_TCP_CONNECTION_THREAD_H
#define BPF_TCP_CONNECTION_THREAD_H

#include "state.h"

static __always_inline struct thread *thread_at(__u32 tid)
{
	__u32 place = tid & (THREAD_PLACES - 1);

	return bpf_map_lookup_elem(&threads, &place);
}

/*
 * Find an observed thread. The cheapest test comes first: nearly every thread that the scheduler
 * reports is another one.
 */
static __always_inline struct thread *thread_known(__u32 tid)
{
	__u32 place = tid & (THREAD_PLACES - 1);
	struct thread *t;

	if (!(threads_known[place >> 6] & 1ULL << (place & 63)) || !tid)
		return NULL;
	t = thread_at(tid);
	return t && t->tid == tid ? t : NULL;
}

/* Set a thread's state. The time until now belongs to the former one. */
static __always_inline void thread_enter(struct thread *t, enum thread_state state, __u64 now)
{
	if (now > t->since_ns) {
		if (t->state == THREAD_RUNNING)
			t->running_ns += now - t->since_ns;
		else if (t->state == THREAD_RUNNABLE)
			t->runnable_ns += now - t->since_ns;
		t->since_ns = now;
	}
	t->state = state;
}

static __always_inline void thread_forget(struct thread *t)
{
	__u32 place = t->tid & (THREAD_PLACES - 1);

	__sync_fetch_and_and(&threads_known[place >> 6], ~(1ULL << (place & 63)));
	t->id = 0;
	t->tid = 0;
}

/*
 * Return the current thread's clocks. If the thread had none, start them @now. NULL: another thread
 * has its place, or not all of the scheduler's programs run yet.
 */
static __always_inline struct thread *thread_learn(__u64 now)
{
	__u32 tid = bpf_get_current_pid_tgid(), place = tid & (THREAD_PLACES - 1);
	struct thread *t = thread_at(tid);

	if (!t || !threads_watched || t->tid == tid)
		return threads_watched ? t : NULL;
	if (!__sync_bool_compare_and_swap(&t->tid, 0, tid))
		return NULL;
	t->state = THREAD_RUNNING;
	t->running_ns = 0;
	t->runnable_ns = 0;
	t->id = __sync_fetch_and_add(&threads_next, 1) + 1;
	__sync_fetch_and_or(&threads_known[place >> 6], 1ULL << (place & 63));
#ifdef SLOT_SHARED /* it may have been preempted since @now: then its first exchange is not divided */
	now = bpf_ktime_get_ns();
#endif
	t->since_ns = now;
	return t;
}

/*
 * Read the clocks of @t, the current thread, at @now. Return false if they are not valid. Either no
 * program saw the thread get its CPU, or it was preempted since @now. The kernel's own count of
 * switches shows later whether all were seen: a clock that missed one is wrong.
 */
static __always_inline bool thread_read(const struct thread *t, __u64 now, struct conn_split *ret)
{
	const volatile struct thread *v = t;
	const struct task_struct *task = bpf_get_current_task_btf();
	__u64 since_ns = v->since_ns;
	__u32 switches = v->switches;

	ret->thread = v->id;
	ret->unseen = task->nvcsw + task->nivcsw - switches;
	ret->running_ns = v->running_ns + (now - since_ns);
	ret->runnable_ns = v->runnable_ns;
	return since_ns <= now && v->state == THREAD_RUNNING && v->switches == switches;
}

/* A read has returned @now: service may begin. */
static __always_inline void split_begin(struct conn *c, __u64 now)
{
	struct thread *t = thread_learn(now);

	if (!t || !thread_read(t, now, &c->split))
		c->split.thread = 0;
}

/*
 * The response begins @now. Determine for how much of @service_ns the thread ran or was runnable.
 * False: not known, because another thread than the reader writes, or one without clocks.
 */
static __always_inline bool split_end(struct conn *c, __u64 now, __u64 service_ns)
{
	struct thread *t = thread_known(bpf_get_current_pid_tgid());
	struct conn_split *begin = &c->split, end = {};
	bool known = t && begin->thread && thread_read(t, now, &end) &&
		     end.thread == begin->thread && end.unseen == begin->unseen;

	/* In place: with a copy of @begin the stack of all callers would exceed 512 bytes. */
	end.running_ns -= begin->running_ns;
	end.runnable_ns -= begin->runnable_ns;
	known = known && end.running_ns <= service_ns &&
		end.runnable_ns <= service_ns - end.running_ns;
	if (!known)
		end = (struct conn_split){};
	*begin = end;
	return known;
}

#endif
