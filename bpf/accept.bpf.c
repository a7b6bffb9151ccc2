// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Times the return of accept() and accept4(): the optional source of accept_queue (accept.h). */
#include "accept.h"
#include "syscall.h"

/* Address of the struct sock behind descriptor @fd of the current task; 0 if there is none. */
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

SEC("?tp_btf/sys_exit")
int BPF_PROG(accept_exit, struct pt_regs *regs, long ret)
{
	struct accepting *entry;
	struct service_slot *slot;
	__u64 key;
	long nr;

	if (ret < 0)
		return 0;
	nr = syscall_number(regs);
	if (nr != NR_ACCEPT && nr != NR_ACCEPT4)
		return 0;
	key = sock_address((unsigned int)ret);
	entry = bpf_map_lookup_elem(&accepting, &key);
	if (!entry || entry->accepted_ns)
		return 0;
	entry->accepted_ns = bpf_ktime_get_ns();
	slot = slot_of(entry->service);
	if (slot)
		stage_add(&slot->stages[STAGE_ACCEPT_QUEUE],
			  entry->accepted_ns - entry->established_ns);
	return 0;
}
