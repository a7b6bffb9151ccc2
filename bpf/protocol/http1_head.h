/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Finds the end of a request of HTTP/1 by words of 8 bytes, with its head at the start of a text. Only common forms are
 * understood: the parser of http1.h, which takes each byte, has to find out about others. Where both understand a request,
 * they agree.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_HTTP1_HEAD_H
#define BPF_PROTOCOL_HTTP1_HEAD_H

#include "http1.h"

/* The longest text, words in one step, and bytes after the text that a step may reach. */
#define HTTP1_HEAD_MOST	 1024
#define HTTP1_HEAD_WORDS 4
#define HTTP1_HEAD_AFTER (8 * HTTP1_HEAD_WORDS + 24)
/* Each step takes a line, or these words. The shortest line has a byte and its newline. */
#define HTTP1_HEAD_STEPS (HTTP1_HEAD_MOST / 2)

struct http1_head {
	__u32 at;     /* the next byte; of a line, after the first one */
	__u32 size;   /* of the text */
	__u32 length; /* of the body */
	__u8 lines;   /* 1: the first one is over */
	__u8 has_length;
	__u8 over; /* the head is, before ->at */
	__u8 pad;
};

/* 8 bytes, the first one lowest. The kernel's machines take them from any address. */
HTTP1_INLINE __u64 http1_word_at(const __u8 *text)
{
#ifdef __bpf__
	return *(const __u64 *)text;
#else
	__u64 word;

	__builtin_memcpy(&word, text, sizeof(word));
	return word;
#endif
}

/* The first bytes of @text, at most 8. */
#define HTTP1_BYTES(text) http1_bytes_of(text, sizeof(text) - 1)

HTTP1_INLINE __u64 http1_bytes_of(const char *text, __u32 length)
{
	return http1_word_of(text, length, 0) | (__u64)http1_word_of(text, length, 4) << 32;
}

/* Return whether @word begins with @text, of at most 8 bytes. */
#define HTTP1_BEGINS(word, text) (!(((word) ^ HTTP1_BYTES(text)) << 8 * (8 - (sizeof(text) - 1))))

/* Return whether the text begins with a method that is understood. HEAD and CONNECT are not: their responses differ. */
HTTP1_INLINE int http1_head_begins(const __u8 *text)
{
	__u64 word = http1_word_at(text);

	return HTTP1_BEGINS(word, "GET ") || HTTP1_BEGINS(word, "POST ") ||
	       HTTP1_BEGINS(word, "PUT ") || HTTP1_BEGINS(word, "PATCH ") ||
	       HTTP1_BEGINS(word, "DELETE ") || HTTP1_BEGINS(word, "OPTIONS ");
}

/* The first line has ended before @at. Return whether it has a version of HTTP/1, as http1_target() wants it. */
HTTP1_INLINE int http1_head_has_version(const __u8 *text, __u64 at)
{
	const __u64 minor = 1ULL << 48;

	return at >= 9 && (http1_word_at(text + at - 9) | minor) == HTTP1_BYTES("TTP/1.1\r");
}

/* @digits: what follows "Content-Length: ". Return whether it is understood. */
HTTP1_INLINE int http1_head_length(struct http1_head *h, __u64 digits)
{
	__u32 length = 0, count;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (count = 0; count < 6; count++) {
		__u32 digit = (__u32)(digits & 0xff) - '0';

		if (digit > 9)
			break;
		length = 10 * length + digit;
		digits >>= 8;
	}
	if (!count || h->has_length || !HTTP1_BEGINS(digits, "\r\n"))
		return 0;
	h->has_length = 1;
	h->length = length;
	return 1;
}

/* Masks that make capitals of a name small. "-" and ":" stay as they are. */
#define HTTP1_SMALL_CONTENT  0x0020202020202020ULL
#define HTTP1_SMALL_LENGTH   0x0000202020202020ULL
#define HTTP1_SMALL_TRANSFER 0x2020202020202020ULL

/* A line with a name that begins with "Content-" is at @line. Return whether it is understood. */
HTTP1_INLINE int http1_head_content(struct http1_head *h, const __u8 *line)
{
	__u64 name = http1_word_at(line + 8) | HTTP1_SMALL_LENGTH;

	if (!HTTP1_BEGINS(name, "length"))
		return 1;
	return HTTP1_BEGINS(name, "length: ") && http1_head_length(h, http1_word_at(line + 16));
}

/* A line begins at @at. Return whether this is the last step. */
HTTP1_INLINE int http1_head_line(struct http1_head *h, const __u8 *text, __u64 at)
{
	__u64 word = http1_word_at(text + at);

	if (!h->lines && !http1_head_has_version(text, at))
		return 1;
	h->lines = 1;
	h->at = (__u32)at;
	if (HTTP1_BEGINS(word, "\r\n")) {
		h->at += 2;
		h->over = 1;
		return 1;
	}
	if (HTTP1_BEGINS(word | HTTP1_SMALL_CONTENT, "content-"))
		return !http1_head_content(h, text + at);
	return HTTP1_BEGINS(word | HTTP1_SMALL_TRANSFER, "transfer") || HTTP1_BEGINS(word, "\n") ||
	       HTTP1_BEGINS(word, "\r");
}

/*
 * Go on to the next line, or over words that end none. Return whether this is the last step. @text has ->size bytes and
 * HTTP1_HEAD_AFTER zeros.
 */
HTTP1_INLINE int http1_head_step(struct http1_head *h, const __u8 *text)
{
	__u64 at = h->at, newlines = 0;

#ifdef __bpf__
	barrier_var(at); /* or the verifier does not see its bound */
#endif
	if (at >= h->size || at > HTTP1_HEAD_MOST)
		return 1;
#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (int k = 0; k < HTTP1_HEAD_WORDS; k++) {
		newlines = http1_newlines(http1_word_at(text + at));
		if (newlines)
			return http1_head_line(h, text, at + http1_up_to(newlines));
		at += sizeof(__u64);
	}
	h->at = (__u32)at;
	return 0;
}

#endif
