// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Times the return of accept() and accept4(), and the completion of io_uring's accept: the optional
 * source of accept_queue (accept.h).
 *
 * io_uring's tracepoint has changed twice (docs/kernels.md); of its programs the one is loaded whose
 * number of arguments is the kernel's. Its completions come in the context of the thread that owns the ring, or
 * of a worker that shares its descriptors. A connection that goes into a slot of the ring (a "direct
 * descriptor") has no descriptor to be found by, and stays accept_unseen.
 */
#include "accept.h"
#include "syscall.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct io_kiocb {
	__u8 opcode;
};

struct io_uring_cqe___kernel {
	__s32 res;
};
#pragma clang attribute pop

#define OPCODE_ACCEPT 13 /* IORING_OP_ACCEPT, include/uapi/linux/io_uring.h */

/*
 * Return the address of the struct sock of descriptor @fd of the current task; 0 if there is none.
 */
static __always_inline __u64 sock_address(unsigned int fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd);
	struct file *file = NULL;
	struct socket *socket;

	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	socket = BPF_CORE_READ(file, private_data);
	return (__u64)BPF_CORE_READ(socket, sk);
}

/* Note that descriptor @fd may be a connection that the current task has just received. */
static __always_inline void descriptor_returned(unsigned int fd)
{
	__u64 key = sock_address(fd);
	struct accepting *entry = bpf_map_lookup_elem(&accepting, &key);
	struct service_slot *slot;

	if (!entry || entry->accepted_ns)
		return;
	entry->accepted_ns = bpf_ktime_get_ns();
	slot = slot_of(entry->service);
	if (slot)
		stage_add(&slot->stages[STAGE_ACCEPT_QUEUE],
			  entry->accepted_ns - entry->established_ns);
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(accept_exit, struct pt_regs *regs, long ret)
{
	long nr;

	if (ret < 0)
		return 0;
	nr = syscall_number(regs);
	if (nr == NR_ACCEPT || nr == NR_ACCEPT4)
		descriptor_returned((unsigned int)ret);
	return 0;
}

/* @request: NULL where one request completes many times, as a multishot accept does. */
static __always_inline void request_completed(const void *request, int res)
{
	if (res < 0)
		return;
	if (request && BPF_CORE_READ((const struct io_kiocb *)request, opcode) != OPCODE_ACCEPT)
		return;
	descriptor_returned((unsigned int)res);
}

SEC("?tp_btf/io_uring_complete")
int BPF_PROG(accept_uring, void *io_ring, void *request, struct io_uring_cqe___kernel *cqe)
{
	request_completed(request, BPF_CORE_READ(cqe, res));
	return 0;
}

SEC("?tp_btf/io_uring_complete")
int BPF_PROG(accept_uring_result, void *io_ring, void *request, __u64 user_data, int res)
{
	request_completed(request, res);
	return 0;
}

/*
 * The request is not reported, so any result may be a descriptor. A number of bytes does no harm:
 * only a connection that accept() has just returned matches an entry.
 */
SEC("?tp_btf/io_uring_complete")
int BPF_PROG(accept_uring_plain, void *io_ring, __u64 user_data, int res)
{
	request_completed(NULL, res);
	return 0;
}
