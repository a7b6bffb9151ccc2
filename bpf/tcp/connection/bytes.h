/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The bytes that the current system call has read or written, in the memory of the calling process. They may lie in
 * any number of buffers. Neighbours: speaks.h, batch.h.
 */
#ifndef BPF_TCP_CONNECTION_BYTES_H
#define BPF_TCP_CONNECTION_BYTES_H

#include "state.h"
#include "syscall.h"

/* struct iovec. */
struct bytes_buffer {
	__u64 address;
	__u64 length;
};

/* struct user_msghdr, from the vector of buffers on. */
#define MSGHDR_IOV_OFFSET 16

/* Return the four bytes at @text, the first one lowest, as they are in memory. */
static __always_inline __u32 word_of(const void *text)
{
	const __u8 *bytes = text;

	return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (__u32)bytes[3] << 24;
}

static __always_inline bool bytes_is_single(long nr)
{
	return nr == NR_READ || nr == NR_RECVFROM || nr == NR_WRITE || nr == NR_SENDTO;
}

static __always_inline bool bytes_is_vector(long nr)
{
	return nr == NR_READV || nr == NR_WRITEV;
}

static __always_inline bool bytes_is_message(long nr)
{
	return nr == NR_RECVMSG || nr == NR_SENDMSG;
}

/*
 * Start at the first byte of the current system call, which has transferred @count. Bytes of calls
 * other than those above cannot be seen.
 */
static __always_inline void bytes_begin(struct bytes *ret_bytes, __u32 count)
{
	struct bytes_buffer vector = {};
	struct system_call call;

	syscall_read((void *)bpf_task_pt_regs(bpf_get_current_task_btf()), &call);
	*ret_bytes = (struct bytes){};
	if (bytes_is_single(call.number)) {
		ret_bytes->at = call.second;
		ret_bytes->left = count;
	} else if (bytes_is_vector(call.number)) {
		ret_bytes->vector = call.second;
		ret_bytes->vectors = call.third;
	} else if (bytes_is_message(call.number)) {
		bpf_probe_read_user(&vector, sizeof(vector),
				    (void *)(call.second + MSGHDR_IOV_OFFSET));
		ret_bytes->vector = vector.address;
		ret_bytes->vectors = vector.length;
	}
}

/* Return whether a next byte can be seen. Takes at most one further buffer, which may be empty. */
static __always_inline bool bytes_more(struct bytes *b)
{
	struct bytes_buffer buffer = {};

	if (b->left)
		return true;
	if (!b->vectors)
		return false;
	if (bpf_probe_read_user(&buffer, sizeof(buffer), (void *)b->vector))
		return false;
	b->vector += sizeof(buffer);
	b->vectors--;
	b->at = buffer.address;
	b->left = buffer.length;
	return true;
}

static __always_inline void bytes_pass(struct bytes *b, __u32 count)
{
	b->at += count;
	b->left -= count;
}

#define TEXT_CLEARED 8 /* words in one step */

/*
 * Clear the first @have bytes, at most @most, of a text that was looked at: none is kept. The words are volatile because clang
 * would call memset().
 */
static __always_inline void text_forget(__u64 *text, __u32 most, __u32 have)
{
#pragma clang loop unroll(disable)
	for (__u32 at = 0; at < most / 8 && at < (have + 7) / 8; at += TEXT_CLEARED) {
#pragma clang loop unroll(full)
		for (int k = 0; k < TEXT_CLEARED; k++)
			PLAIN(&text[at + k]) = 0;
	}
}

#endif
