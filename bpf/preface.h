/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Does a connection speak HTTP/2? Its client's first bytes say so (RFC 9113, 3.4). They are looked at
 * as the connection's first reads return them, where those have just put them: in the reader's memory,
 * which the arguments of its system call point to. Neighbour: exchange.h.
 */
#ifndef BPF_PREFACE_H
#define BPF_PREFACE_H

#include "state.h"
#include "syscall.h"

#define PREFACE	      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define PREFACE_BYTES 24
#define PREFACE_ROOM  32 /* a power of two */

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

enum preface {
	PREFACE_NONE,
	PREFACE_BEGUN, /* all that was read by now is its beginning */
	PREFACE_WHOLE,
};

/* Room for a read of any length behind any offset, as far as the verifier can tell. */
union preface_bytes {
	char bytes[2 * PREFACE_ROOM];
	__u64 words[2 * PREFACE_ROOM / sizeof(__u64)];
};

/*
 * What the read that has just returned @bytes makes of it; @offset bytes of it were read before. These are
 * put over the preface where they belong: if that is then still the same, they are its.
 */
static __always_inline enum preface read_http2_preface(__u32 offset, __u32 bytes)
{
	const union preface_bytes expected = {.bytes = PREFACE};
	union preface_bytes found = {.bytes = PREFACE};
	__u64 buffer = offset < PREFACE_BYTES ? read_buffer() : 0;
	__u32 length = PREFACE_BYTES - offset;

	if (bytes < length)
		length = bytes;
	barrier_var(length); /* or the verifier does not see the bounds */
	barrier_var(offset);
	offset &= PREFACE_ROOM - 1;
	length &= PREFACE_ROOM - 1;
	if (!buffer || bpf_probe_read_user(&found.bytes[offset], length, (void *)buffer))
		return PREFACE_NONE;
	for (__u32 i = 0; i < PREFACE_BYTES / sizeof(__u64); i++) {
		if (found.words[i] != expected.words[i])
			return PREFACE_NONE;
	}
	return offset + length < PREFACE_BYTES ? PREFACE_BEGUN : PREFACE_WHOLE;
}

#endif
