/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Counts the messages of WebSocket in one direction of a connection (RFC 6455, 5). Frames have a header of 2 to 10
 * bytes, those of clients also a mask, and may be cut anywhere. A message is one frame or several, between which control
 * frames may come. Only headers are looked at, so it does not matter whether messages are compressed (RFC 7692).
 *
 * The same source runs in the kernel and in its unit test. Neighbours: http1.h (the handshake), tcp/pushes.h.
 */
#ifndef BPF_PROTOCOL_WEBSOCKET_H
#define BPF_PROTOCOL_WEBSOCKET_H

#include <linux/types.h>

/* The meaning of a byte, or of the end of a frame. */
enum websocket_said {
	WEBSOCKET_MESSAGE = 1 << 0, /* a message is complete: s->bytes */
	WEBSOCKET_CONTROL = 1 << 1, /* a control frame is */
	WEBSOCKET_WRONG = 1 << 2,   /* this is another protocol */
};

enum websocket_stage {
	WEBSOCKET_FIRST, /* byte of a frame */
	WEBSOCKET_SECOND,
	WEBSOCKET_LENGTH,  /* its further bytes */
	WEBSOCKET_PAYLOAD, /* s->left bytes, which may be unseen */
};

#define WEBSOCKET_FIN 0x80
#define WEBSOCKET_COMPRESSED \
	0x40 /* RSV1, which only the first frame of a message has (RFC 7692, 6) */
#define WEBSOCKET_RESERVED     0x30
#define WEBSOCKET_IS_CONTROL   0x08
#define WEBSOCKET_OPCODE       0x0f
#define WEBSOCKET_LAST_DATA    0x02
#define WEBSOCKET_LAST_CONTROL 0x0a
#define WEBSOCKET_LENGTH_BITS  0x7f /* above them: the payload is masked */
#define WEBSOCKET_CONTROL_MOST 125
#define WEBSOCKET_LENGTH_16    126
#define WEBSOCKET_LENGTH_64    127
#define WEBSOCKET_WIDE_16      2 /* bytes of the length after these */
#define WEBSOCKET_WIDE_64      8
#define WEBSOCKET_MOST_16      65535
#define WEBSOCKET_MASK_BYTES   4
#define WEBSOCKET_LENGTH_FIRST (1ULL << 63) /* must not be set (5.2) */

/* One direction. All zeros: no byte has come yet. */
struct websocket_side {
	__u64 left;   /* bytes of the mask and of the payload that come next */
	__u64 length; /* of the payload, as far as its bytes have come */
	__u64 bytes;  /* payload of the message under way, or of the latest one */
	__u8 stage;
	__u8 first;  /* byte of the frame */
	__u8 wants;  /* further bytes of the length */
	__u8 open;   /* the message goes on in another frame */
	__u8 masks;  /* 1: the sender is a client: it masks all frames, and a server none (5.1) */
	__u8 wide;   /* bytes of the length, but for those of the shortest form */
	__u8 sought; /* it is not certain that these are frames: lengths have to be minimal (5.2) */
	__u8 pad[5];
};

#define WEBSOCKET_INLINE static inline __attribute__((always_inline))

WEBSOCKET_INLINE int websocket_frame_over(struct websocket_side *s)
{
	s->stage = WEBSOCKET_FIRST;
	if (s->first & WEBSOCKET_IS_CONTROL)
		return WEBSOCKET_CONTROL;
	s->open = !(s->first & WEBSOCKET_FIN);
	return s->open ? 0 : WEBSOCKET_MESSAGE;
}

/* Return whether the length needs its form. Where frames are sought, one of 4 GiB is none. */
WEBSOCKET_INLINE int websocket_is_minimal(const struct websocket_side *s)
{
	if (s->wide == WEBSOCKET_WIDE_64)
		return s->length > WEBSOCKET_MOST_16 && !(s->length >> 32);
	return !s->wide || s->length >= WEBSOCKET_LENGTH_16;
}

WEBSOCKET_INLINE int websocket_header_over(struct websocket_side *s)
{
	if (s->length & WEBSOCKET_LENGTH_FIRST || (s->sought && !websocket_is_minimal(s)))
		return WEBSOCKET_WRONG;
	if (!(s->first & WEBSOCKET_IS_CONTROL))
		s->bytes = (s->open ? s->bytes : 0) + s->length;
	s->left = s->length + (s->masks ? WEBSOCKET_MASK_BYTES : 0);
	s->stage = WEBSOCKET_PAYLOAD;
	return s->left ? 0 : websocket_frame_over(s);
}

WEBSOCKET_INLINE int websocket_first(struct websocket_side *s, __u8 byte)
{
	__u8 opcode = byte & WEBSOCKET_OPCODE;

	s->first = byte;
	s->stage = WEBSOCKET_SECOND;
	if (byte & WEBSOCKET_RESERVED)
		return WEBSOCKET_WRONG;
	if (opcode & WEBSOCKET_IS_CONTROL)
		return opcode > WEBSOCKET_LAST_CONTROL || !(byte & WEBSOCKET_FIN) ||
				       byte & WEBSOCKET_COMPRESSED
			       ? WEBSOCKET_WRONG
			       : 0;
	if (opcode > WEBSOCKET_LAST_DATA)
		return WEBSOCKET_WRONG;
	/* Opcode 0 continues a message, and only that does. */
	if (s->open)
		return opcode || byte & WEBSOCKET_COMPRESSED ? WEBSOCKET_WRONG : 0;
	return opcode ? 0 : WEBSOCKET_WRONG;
}

WEBSOCKET_INLINE int websocket_second(struct websocket_side *s, __u8 byte)
{
	__u8 length = byte & WEBSOCKET_LENGTH_BITS;

	if (byte >> 7 != s->masks)
		return WEBSOCKET_WRONG;
	if (s->first & WEBSOCKET_IS_CONTROL && length > WEBSOCKET_CONTROL_MOST)
		return WEBSOCKET_WRONG;
	s->length = length;
	s->wide = 0;
	if (length < WEBSOCKET_LENGTH_16)
		return websocket_header_over(s);
	s->length = 0;
	s->wide = length == WEBSOCKET_LENGTH_64 ? WEBSOCKET_WIDE_64 : WEBSOCKET_WIDE_16;
	s->wants = s->wide;
	s->stage = WEBSOCKET_LENGTH;
	return 0;
}

/* Take the next byte, which is of a header. Return enum websocket_said. */
WEBSOCKET_INLINE int websocket_byte(struct websocket_side *s, __u8 byte)
{
	if (s->stage == WEBSOCKET_FIRST)
		return websocket_first(s, byte);
	if (s->stage == WEBSOCKET_SECOND)
		return websocket_second(s, byte);
	s->length = s->length << 8 | byte;
	s->wants--;
	return s->wants ? 0 : websocket_header_over(s);
}

/* In WEBSOCKET_PAYLOAD: pass the next @count bytes, at most s->left. Return enum websocket_said. */
WEBSOCKET_INLINE int websocket_pass(struct websocket_side *s, __u64 count)
{
	s->left -= count;
	return s->left ? 0 : websocket_frame_over(s);
}

#define WEBSOCKET_LOOK 5 /* bytes of a frame that are looked at */

/*
 * Return whether a read of @count bytes seems to be one whole frame of a client's, with a message or a ping or pong. @f: its
 * first WEBSOCKET_LOOK bytes. *ret_mask: those of the mask that are among them.
 */
WEBSOCKET_INLINE int websocket_fills(const __u8 *f, __u32 count, __u16 *ret_mask)
{
	__u8 first = f[0] & WEBSOCKET_IS_CONTROL ? f[0] : f[0] & ~WEBSOCKET_COMPRESSED;
	__u32 length = f[1] & WEBSOCKET_LENGTH_BITS, head = 2;

	if ((first != 0x81 && first != 0x82 && first != 0x89 && first != 0x8a) || f[1] == length)
		return 0;
	*ret_mask = (__u16)(f[2] | f[3] << 8);
	if (length == WEBSOCKET_LENGTH_16) {
		*ret_mask = f[4];
		length = (__u32)f[2] << 8 | f[3];
		head += WEBSOCKET_WIDE_16;
		if (length < WEBSOCKET_LENGTH_16)
			return 0;
	} else if (length == WEBSOCKET_LENGTH_64) {
		return 0;
	}
	return count == head + WEBSOCKET_MASK_BYTES + length;
}

#endif
