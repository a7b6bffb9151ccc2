/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The status of a response, from the start of the server's write. It is in HTTP/1's status line (RFC
 * 9112, 4), or in the first field of HTTP/2's header block (RFC 7541). That field may refer to those
 * of earlier blocks, which hpack.h knows. Neighbour: http2.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_STATUS_H
#define BPF_PROTOCOL_STATUS_H

#include <linux/types.h>

#include "hpack_walk.h"
#include "wire/status.h"

/* Switching Protocols: another protocol follows. */
#define STATUS_UPGRADE 101
#define STATUS_OK      200

/* "HTTP/1.1 200 " */
#define STATUS_LINE 13

/* Indices of ":status" in HPACK's static table. */
#define HPACK_STATUS_FIRST 8
#define HPACK_STATUS_LAST  14
/* Changes of the table's size that are skipped before the field, each of up to 4 bytes. */
#define HPACK_RESIZES 2

static inline __attribute__((always_inline)) __u32 status_of(__u32 hundreds, __u32 tens, __u32 ones)
{
	if (hundreds < 1 || hundreds > 5 || tens > 9 || ones > 9)
		return STATUS_UNKNOWN;
	return hundreds * 100 + tens * 10 + ones;
}

/* Return whether another response follows. Not so after 101: another protocol follows. */
static inline __attribute__((always_inline)) int status_is_interim(__u32 status)
{
	return status >= 100 && status < 200 && status != STATUS_UPGRADE;
}

/* @line: STATUS_LINE bytes. Some servers omit the reason and the space before it. */
static inline __attribute__((always_inline)) __u32 status_of_line(const __u8 *line)
{
	if (line[0] != 'H' || line[1] != 'T' || line[2] != 'T' || line[3] != 'P' ||
	    line[4] != '/' || line[5] != '1' || line[6] != '.' || (line[7] & ~1) != '0' ||
	    line[8] != ' ' || (line[12] != ' ' && line[12] != '\r'))
		return STATUS_UNKNOWN;
	return status_of((__u32)line[9] - '0', (__u32)line[10] - '0', (__u32)line[11] - '0');
}

/* ---- HPACK ---- */

/*
 * Up to 16 bytes, the next one in the top bits. Taking shifts them, so the verifier has no index to
 * bound.
 */
struct hpack {
	__u64 high, low;
	__u32 left;  /* bytes at the start */
	__u32 taken; /* of these; more than there were: see hpack_over() */
	__u32 index; /* of the status, in the dynamic table; 0: it is not there */
	__u32 pad;
};

static inline __attribute__((always_inline)) __u32 hpack_next(struct hpack *h)
{
	__u32 byte = (__u32)(h->high >> 56);

	h->high = h->high << 8 | h->low >> 56;
	h->low <<= 8;
	h->taken++;
	return byte;
}

/* Take @count bytes, at most 7. */
static inline __attribute__((always_inline)) void hpack_pass(struct hpack *h, __u32 count)
{
	__u32 bits = 8 * count & 63;

	h->high = h->high << bits | h->low >> 1 >> (63 - bits);
	h->low <<= bits;
	h->taken += count;
}

/* Return whether more bytes were taken than there were. A test at every byte would double the verifier's paths. */
static inline __attribute__((always_inline)) int hpack_over(const struct hpack *h)
{
	return h->taken > h->left;
}

/*
 * Decode up to three digits in Huffman's code (RFC 7541, B) from @word's top @bytes bytes. 0 to 2
 * have 5 bits, 3 to 9 have 6. Set *digits to their number; 0: there is anything else.
 */
static inline __attribute__((always_inline)) __u32 hpack_number(__u32 word, __u32 bytes,
								__u32 *digits)
{
	__u32 number = 0, left = 8 * bytes, count = 0;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (int i = 0; i < 3; i++) {
		/* Without a branch: the verifier would follow both ways from each digit on. */
		__u32 wide = ((word >> 27) + 29) >> 5; /* not 0 to 2 */
		__u32 digit = (word >> (27 - wide)) - (0x19 - 3) * wide;

		if (digit - 3 * wide > 6 || left < 5 + wide)
			break;
		number = 10 * number + digit;
		word <<= 5 + wide;
		left -= 5 + wide;
		count++;
	}
	/* The unused bits of the last byte must be ones. */
	*digits = left <= 7 && word >> 24 == (0xff00U >> left & 0xff) ? count : 0;
	return number;
}

/* Return the status in a literal field's value. */
static inline __attribute__((always_inline)) __u32 hpack_value(struct hpack *h)
{
	__u32 length = hpack_next(h), huffman = length & HPACK_HUFFMAN;
	__u32 a = hpack_next(h), b = hpack_next(h), c = 0, digits, number;

	length &= ~HPACK_HUFFMAN;
	if (length == 3)
		c = hpack_next(h);
	if (hpack_over(h))
		return STATUS_UNKNOWN;
	if (huffman && (length == 2 || length == 3)) {
		number = hpack_number(a << 24 | b << 16 | c << 8, length, &digits);
		return digits == 3 && number >= 100 && number < 600 ? number : STATUS_UNKNOWN;
	}
	return length == 3 ? status_of(a - '0', b - '0', c - '0') : STATUS_UNKNOWN;
}

/*
 * Skip changes of the table's size, which may precede the first field. Return the byte after them. Their lengths are
 * computed: the verifier would follow each of them to the end.
 */
static inline __attribute__((always_inline)) __u32 hpack_first(struct hpack *h)
{
	__u32 byte = hpack_next(h);

	for (int i = 0; i < HPACK_RESIZES && (byte & 0xe0) == HPACK_RESIZE; i++) {
		__u32 more = ((byte & 0x1f) + 1) >> 5, ahead = (__u32)(h->high >> 40);
		__u32 second = more & ahead >> 23, third = second & ahead >> 15;

		h->left *= !(third & ahead >> 7); /* too long */
		hpack_pass(h, more + second + third);
		byte = hpack_next(h);
	}
	return byte;
}

/* Return the index that @byte begins; 0: it has more than two bytes. */
static inline __attribute__((always_inline)) __u32 hpack_index(struct hpack *h, __u32 byte)
{
	__u32 index = byte & ~HPACK_INDEXED, more;

	if (index < 0x7f)
		return index;
	more = hpack_next(h);
	return hpack_over(h) || more & 0x80 ? 0 : index + more;
}

/*
 * Return the status at the start of a header block. In a response it must be the first field. If it
 * is in the dynamic table, set h->index.
 */
static inline __attribute__((always_inline)) __u32 status_of_block(struct hpack *h)
{
	__u32 byte = hpack_first(h), index;

	if (hpack_over(h))
		return STATUS_UNKNOWN;
	if (byte & HPACK_INDEXED) {
		switch (byte & ~HPACK_INDEXED) {
		case 8:
			return 200;
		case 9:
			return 204;
		case 10:
			return 206;
		case 11:
			return 304;
		case 12:
			return 400;
		case 13:
			return 404;
		case 14:
			return 500;
		default:
			index = hpack_index(h, byte);
			h->index = index < HPACK_DYNAMIC_FIRST ? 0 : index;
			return STATUS_UNKNOWN;
		}
	}
	index = byte & HPACK_ADDED ? byte & 0x3f : byte & 0x0f;
	if ((byte & 0xe0) == HPACK_RESIZE || index < HPACK_STATUS_FIRST ||
	    index > HPACK_STATUS_LAST)
		return STATUS_UNKNOWN;
	return hpack_value(h);
}

#endif
