/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Does a connection speak HTTP/2? Its client's first bytes say so (RFC 9113, 3.4). They are looked at
 * once, at the connection's first read, where that read has just put them: in the reader's memory,
 * which the arguments of its system call point to. Neighbour: exchange.bpf.c.
 */
#ifndef BPF_PREFACE_H
#define BPF_PREFACE_H

#include "state.h"
#include "syscall.h"

#define PREFACE	      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_BYTES 24

/* struct user_msghdr: name, its length, then the vector of buffers. */
#define MSGHDR_IOV_OFFSET 16

static __always_inline __u64 read_user_pointer(__u64 address)
{
	__u64 pointer = 0;

	bpf_probe_read_user(&pointer, sizeof(pointer), (void *)address);
	return pointer;
}

/* Where the system call that has just read put its first byte; 0 if that is not known. */
static __always_inline __u64 read_buffer(void)
{
	const struct pt_regs *regs = system_call_registers();
	long nr = syscall_number(regs);
	__u64 second = syscall_second(regs);

	if (nr == NR_READ || nr == NR_RECVFROM)
		return second;
	if (nr == NR_READV)
		return read_user_pointer(second);
	if (nr == NR_RECVMSG)
		return read_user_pointer(read_user_pointer(second + MSGHDR_IOV_OFFSET));
	return 0;
}

/* Whether the read that has just returned @bytes began with HTTP/2's connection preface. */
static __always_inline bool read_http2_preface(__u32 bytes)
{
	const char expected[PREFACE_BYTES + 1] = PREFACE;
	char found[PREFACE_BYTES] = {};
	__u64 buffer = bytes >= PREFACE_BYTES ? read_buffer() : 0;

	if (!buffer || bpf_probe_read_user(found, sizeof(found), (void *)buffer))
		return false;
	for (int i = 0; i < PREFACE_BYTES; i++) {
		if (found[i] != expected[i])
			return false;
	}
	return true;
}

#endif
