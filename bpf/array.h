/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Declares maps that are arrays; state.bpf.c defines them. User space may set @entries before load. */
#ifndef BPF_ARRAY_H
#define BPF_ARRAY_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* @flags: BPF_F_MMAPABLE lets user space read without a system call. */
#define DECLARE_ARRAY(name, element, entries, flags) \
	struct name##_map {                          \
		__uint(type, BPF_MAP_TYPE_ARRAY);    \
		__uint(map_flags, flags);            \
		__uint(max_entries, entries);        \
		__type(key, __u32);                  \
		__type(value, element);              \
	};                                           \
	extern struct name##_map name SEC(".maps")

#endif
