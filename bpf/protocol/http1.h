/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Finds where messages of HTTP/1 begin and end (RFC 9112). A head ends with an empty line. A body ends by
 * Content-Length, with its last chunk, or with the connection. A response also depends on its request: one to HEAD has no body, and after
 * CONNECT a tunnel follows. Neighbours: command.h, request.h (the path of a request), tcp/pipeline.h.
 *
 * The same source runs in the kernel and in its unit test.
 */
#ifndef BPF_PROTOCOL_HTTP1_H
#define BPF_PROTOCOL_HTTP1_H

#include "command.h"
#include "status.h"

enum http1_stage {
	HTTP1_START, /* the first byte of a message */
	HTTP1_METHOD,
	HTTP1_TARGET, /* the rest of a request's line */
	HTTP1_STATUS, /* a response's line up to its status */
	HTTP1_REASON, /* the byte after it */
	HTTP1_NAME,   /* of a field, or the empty line */
	HTTP1_LENGTH_VALUE,
	HTTP1_CODING_VALUE,
	HTTP1_WORD_VALUE, /* of a field that says what follows */
	HTTP1_LINE,	  /* the rest of a line that says nothing */
	HTTP1_CLOSE,	  /* the end of the empty line */
	HTTP1_SIZE,	  /* of a chunk */
	HTTP1_SIZE_LINE,
	HTTP1_DATA_CLOSE, /* the end of the line after a chunk */
	/* From here on: s->skip bytes, which may be unseen, and http1_settle() after them. */
	HTTP1_BODY,
	HTTP1_DATA,    /* of a chunk */
	HTTP1_FOREVER, /* the body ends with the connection */
};

/* Of struct command_side.type: the message under way, or the latest one. */
enum http1_type {
	HTTP1_IS_HEAD = 1 << 0, /* the method; of a response: that of its request */
	HTTP1_IS_CONNECT = 1 << 1,
	HTTP1_HAS_LENGTH = 1 << 2,
	HTTP1_HAS_CODING = 1 << 3,
	HTTP1_IS_CHUNKED = 1 << 4, /* of which chunked is the last one */
	HTTP1_TRAILS = 1 << 5,	   /* the last chunk has come */
	/* Of a response whose fields say what follows (s->named): */
	HTTP1_PUSHES =
		1 << 6, /* of WebSocket after 101, otherwise the body is of server-sent events */
	HTTP1_IS_ENCODED = 1 << 7, /* the body is, say by gzip */
};

/* In s->digits: the field of HTTP1_WORD_VALUE. */
enum http1_field {
	HTTP1_UPGRADE,
	HTTP1_CONTENT_TYPE,
	HTTP1_CONTENT_ENCODING,
};

#define HTTP1_LENGTH_DIGITS 18
#define HTTP1_SIZE_DIGITS   15

/* Of the start line's latest bytes, the last one lowest: "TTP/1.1", and "HTTP/1.1". */
#define HTTP1_VERSION_BYTES 0x00ffffffffffffffULL
#define HTTP1_VERSION	    0x005454502f312e31ULL
#define HTTP1_VERSION_FULL  0x485454502f312e31ULL

/* The bytes of "HTTP/1.1 200". */
#define HTTP1_VERSION_LENGTH 8
#define HTTP1_STATUS_LENGTH  12

#define HTTP1_INLINE static inline __attribute__((always_inline))

/* Four bytes of @text from @at on, the first one lowest; those after its end are 0. */
HTTP1_INLINE __u32 http1_word_of(const char *text, __u32 length, __u32 at)
{
	__u32 word = 0;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 i = 0; i < 4; i++)
		word |= at + i < length ? (__u32)(__u8)text[at + i] << 8 * i : 0;
	return word;
}

/*
 * Return whether the name under way is @text of @length capitals, which are known when this is compiled. By words that are
 * read again for each name: otherwise clang keeps all bytes on the stack, which has no room for them.
 */
HTTP1_INLINE int http1_is_named(const struct command_side *s, const char *text, __u32 length)
{
	typedef __u32 __attribute__((may_alias)) word;
	const volatile word *words = (const volatile word *)s->name.text;
	__u32 differs = s->have ^ length;

#ifdef __bpf__
#pragma clang loop unroll(full)
#endif
	for (__u32 at = 0; at < length; at += 4) {
		__u32 unused = length - at < 4 ? 8 * (4 - (length - at)) : 0;

		differs |= (words[at / 4] ^ http1_word_of(text, length, at)) << unused;
	}
	return !differs;
}

_Static_assert(__builtin_offsetof(struct command_side, name) % 4 == 0, "read by words");

#define HTTP1_IS_NAMED(s, text) http1_is_named(s, text, sizeof(text) - 1)

HTTP1_INLINE int http1_over(struct command_side *s)
{
	s->stage = HTTP1_START;
	s->left = 0;
	return COMMAND_ENDS;
}

/* The bytes to skip are over. Skip more of them, or return COMMAND_ENDS if they were the last ones of the message. */
HTTP1_INLINE int http1_settle(struct command_side *s)
{
	__u64 more = s->stage == HTTP1_FOREVER ? ~0U : s->body;

	if (more > ~0U)
		more = ~0U;
	s->skip = (__u32)more;
	if (s->stage == HTTP1_FOREVER)
		return 0;
	s->body -= more;
	if (more)
		return 0;
	if (s->stage == HTTP1_BODY)
		return http1_over(s);
	s->stage = HTTP1_DATA_CLOSE;
	return 0;
}

HTTP1_INLINE int http1_body(struct command_side *s, __u8 stage)
{
	s->stage = stage;
	return http1_settle(s);
}

HTTP1_INLINE void http1_chunk(struct command_side *s)
{
	s->stage = HTTP1_SIZE;
	s->body = 0;
	s->digits = 0;
}

/* ---- fields ---- */

HTTP1_INLINE void http1_next_field(struct command_side *s)
{
	s->stage = HTTP1_NAME;
	s->have = 0;
}

/* The first byte of a line after the first one. Only names that may be one of those below are gathered. */
HTTP1_INLINE int http1_line_begins(struct command_side *s, __u8 byte)
{
	__u8 letter = byte | 0x20;

	if (byte == '\r') {
		s->stage = HTTP1_CLOSE;
	} else if ((letter != 'c' && letter != 't' && (letter != 'u' || !s->named)) ||
		   s->type & HTTP1_TRAILS) {
		s->stage = HTTP1_LINE;
	} else {
		command_letter(s, byte);
	}
	return 0;
}

/* The name of a field has ended that may say what follows. */
HTTP1_INLINE void http1_word_begins(struct command_side *s)
{
	if (HTTP1_IS_NAMED(s, "UPGRADE"))
		s->digits = HTTP1_UPGRADE;
	else if (HTTP1_IS_NAMED(s, "CONTENT-TYPE"))
		s->digits = HTTP1_CONTENT_TYPE;
	else if (HTTP1_IS_NAMED(s, "CONTENT-ENCODING"))
		s->digits = HTTP1_CONTENT_ENCODING;
	else
		return;
	s->stage = HTTP1_WORD_VALUE;
	s->have = 0;
}

/*
 * The name of a field has ended with @byte. Without a colon the line says nothing, unless servers may read it as one of the
 * first two fields below.
 */
HTTP1_INLINE int http1_named(struct command_side *s, __u8 byte)
{
	int is_field = byte == ':';

	s->stage = HTTP1_LINE;
	if (HTTP1_IS_NAMED(s, "CONTENT-LENGTH")) {
		if (!is_field || s->type & HTTP1_HAS_LENGTH)
			return COMMAND_WRONG;
		s->type |= HTTP1_HAS_LENGTH;
		s->stage = HTTP1_LENGTH_VALUE;
		s->body = 0;
		s->digits = 0;
		s->negative = 0;
	} else if (HTTP1_IS_NAMED(s, "TRANSFER-ENCODING")) {
		if (!is_field)
			return COMMAND_WRONG;
		s->type |= HTTP1_HAS_CODING;
		s->stage = HTTP1_CODING_VALUE;
		s->have = 0;
	} else if (byte == '\n') {
		http1_next_field(s);
	} else if (is_field && s->named) {
		http1_word_begins(s);
	}
	return 0;
}

HTTP1_INLINE int http1_name(struct command_side *s, __u8 byte)
{
	if (!s->have)
		return http1_line_begins(s, byte);
	return byte != ':' && command_letter(s, byte) ? 0 : http1_named(s, byte);
}

/* s->negative: spaces have come after the digits. */
HTTP1_INLINE int http1_length(struct command_side *s, __u8 byte)
{
	if (byte == ' ' || byte == '\t' || byte == '\r') {
		s->negative = !!s->digits;
		return 0;
	}
	if (byte == '\n' && s->digits) {
		http1_next_field(s);
		return 0;
	}
	if (!command_is_digit(byte) || s->negative || s->digits >= HTTP1_LENGTH_DIGITS)
		return COMMAND_WRONG;
	s->body = 10 * s->body + byte - '0';
	s->digits++;
	return 0;
}

/* The first word decides: what follows it are parameters. */
HTTP1_INLINE int http1_word(struct command_side *s, __u8 byte)
{
	if (byte != '\n' && byte != ';' && byte != ',') {
		command_letter(s, byte);
		return 0;
	}
	if (s->digits == HTTP1_CONTENT_ENCODING) {
		if (!HTTP1_IS_NAMED(s, "IDENTITY"))
			s->type |= HTTP1_IS_ENCODED;
	} else if ((s->digits == HTTP1_UPGRADE && s->number == STATUS_UPGRADE &&
		    HTTP1_IS_NAMED(s, "WEBSOCKET")) ||
		   (s->digits == HTTP1_CONTENT_TYPE && s->number != STATUS_UPGRADE &&
		    HTTP1_IS_NAMED(s, "TEXT/EVENT-STREAM"))) {
		s->type |= HTTP1_PUSHES;
	}
	s->stage = HTTP1_LINE;
	if (byte == '\n')
		http1_next_field(s);
	return 0;
}

/* The last coding decides. */
HTTP1_INLINE int http1_coding(struct command_side *s, __u8 byte)
{
	if (byte == ' ' || byte == '\t' || byte == '\r')
		return 0;
	if (byte != '\n' && byte != ',')
		return command_letter(s, byte) ? 0 : COMMAND_WRONG;
	s->type &= ~HTTP1_IS_CHUNKED;
	if (HTTP1_IS_NAMED(s, "CHUNKED"))
		s->type |= HTTP1_IS_CHUNKED;
	s->have = 0;
	if (byte == '\n')
		http1_next_field(s);
	return 0;
}

/* ---- chunks ---- */

HTTP1_INLINE int http1_size_over(struct command_side *s)
{
	if (s->body)
		return http1_body(s, HTTP1_DATA);
	s->type |= HTTP1_TRAILS;
	http1_next_field(s);
	return 0;
}

HTTP1_INLINE int http1_size(struct command_side *s, __u8 byte)
{
	__u8 letter = byte | 0x20;

	if (byte == '\n' && s->digits)
		return http1_size_over(s);
	if (s->digits && (byte == ';' || byte == ' ' || byte == '\t' || byte == '\r')) {
		s->stage = HTTP1_SIZE_LINE;
		return 0;
	}
	if (s->digits >= HTTP1_SIZE_DIGITS)
		return COMMAND_WRONG;
	s->digits++;
	if (command_is_digit(byte))
		s->body = s->body << 4 | (byte - '0');
	else if (letter >= 'a' && letter <= 'f')
		s->body = s->body << 4 | (letter - 'a' + 10);
	else
		return COMMAND_WRONG;
	return 0;
}

/* A byte of what requests and responses have alike. COMMAND_ENDS: the head is over, or with HTTP1_TRAILS the message. */
HTTP1_INLINE int http1_common(struct command_side *s, __u8 byte)
{
	switch (s->stage) {
	case HTTP1_NAME:
		return byte == '\n' && !s->have ? COMMAND_ENDS : http1_name(s, byte);
	case HTTP1_LENGTH_VALUE:
		return http1_length(s, byte);
	case HTTP1_CODING_VALUE:
		return http1_coding(s, byte);
	case HTTP1_WORD_VALUE:
		return http1_word(s, byte);
	case HTTP1_LINE:
		if (byte == '\n')
			http1_next_field(s);
		return 0;
	case HTTP1_CLOSE:
		return byte == '\n' ? COMMAND_ENDS : COMMAND_WRONG;
	case HTTP1_SIZE:
		return http1_size(s, byte);
	case HTTP1_SIZE_LINE:
		return byte == '\n' ? http1_size_over(s) : 0;
	case HTTP1_DATA_CLOSE:
		if (byte == '\n')
			http1_chunk(s);
		return byte == '\n' || byte == '\r' ? 0 : COMMAND_WRONG;
	default:
		return COMMAND_WRONG;
	}
}

/* Return bits for the newlines among 8 bytes, the first one lowest. Only the lowest bit is sure. */
HTTP1_INLINE __u64 http1_newlines(__u64 bytes)
{
	__u64 newline = bytes ^ 0x0a0a0a0a0a0a0a0aULL;

	return (newline - 0x0101010101010101ULL) & ~newline & 0x8080808080808080ULL;
}

/* Return the number of bytes up to the first one of @newlines, itself included. */
HTTP1_INLINE __u32 http1_up_to(__u64 newlines)
{
	const __u64 ones = 0x0101010101010101ULL;
	__u64 before = ((newlines & -newlines) >> 7) - 1;

	return (__u32)((before & ones) * ones >> 56 & 7) + 1;
}

/*
 * Return whether the next 8 bytes, the first one lowest, say nothing, and take them. Most of a head's bytes
 * are such.
 */
HTTP1_INLINE int http1_pass(struct command_side *s, __u64 bytes)
{
	if ((s->stage != HTTP1_LINE && s->stage != HTTP1_TARGET) || http1_newlines(bytes))
		return 0;
	if (s->stage == HTTP1_TARGET)
		s->body = __builtin_bswap64(bytes);
	return 1;
}

#define HTTP1_HEAD_END 0x0a0d0a0dU /* "\r\n\r\n", the first byte lowest */

/* The start of http1_lines_apart(), and its result for text without an empty line. */
#define HTTP1_APART 0x8080808080808080ULL

/*
 * Look at 8 bytes, and those that begin one and two bytes later, the first one of each lowest. A bit of @apart is cleared
 * for each byte that ends a line while one of the next two ends another. That is an empty line, or one of a byte. Some other
 * bytes that no text has pass for newlines: those that have none of the bits 0, 2, 5 and 6.
 */
HTTP1_INLINE __u64 http1_lines_apart(__u64 apart, __u64 bytes, __u64 next, __u64 after)
{
	const __u64 others = 0x6565656565656565ULL, carry = 0x7f7f7f7f7f7f7f7fULL;

	return apart & (((bytes | next) & others) + carry) & (((bytes | after) & others) + carry);
}

/* ---- requests ---- */

HTTP1_INLINE int http1_method(struct command_side *s, __u8 byte)
{
	__u8 letter = byte | 0x20;

	if (byte == ' ') {
		s->type = HTTP1_IS_NAMED(s, "HEAD")	 ? HTTP1_IS_HEAD
			  : HTTP1_IS_NAMED(s, "CONNECT") ? HTTP1_IS_CONNECT
							 : 0;
		s->stage = HTTP1_TARGET;
		s->body = 0;
		return 0;
	}
	if (((letter < 'a' || letter > 'z') && byte != '-' && byte != '_') ||
	    s->have >= COMMAND_NAME)
		return COMMAND_WRONG;
	command_letter(s, byte);
	return 0;
}

HTTP1_INLINE int http1_request_begins(struct command_side *s, __u8 byte)
{
	int said;

	/* Servers skip empty lines before a request (RFC 9112, 2.2). */
	if (byte == '\r' || byte == '\n')
		return 0;
	s->have = 0;
	s->left = 1;
	s->stage = HTTP1_METHOD;
	said = byte == ' ' ? COMMAND_WRONG : http1_method(s, byte);
	return said ? said : COMMAND_BEGINS;
}

HTTP1_INLINE int http1_target(struct command_side *s, __u8 byte)
{
	__u64 line = s->body;

	if (byte != '\n') {
		s->body = line << 8 | byte;
		return 0;
	}
	if ((line & 0xff) == '\r')
		line >>= 8;
	s->body = 0;
	http1_next_field(s);
	return ((line & HTTP1_VERSION_BYTES) | 1) == HTTP1_VERSION ? 0 : COMMAND_WRONG;
}

/* A request's body has a known end (RFC 9112, 6.3). */
HTTP1_INLINE int http1_request_head(struct command_side *s)
{
	if (s->type & HTTP1_TRAILS)
		return http1_over(s);
	if (s->type & HTTP1_HAS_CODING) {
		http1_chunk(s);
		return s->type & HTTP1_IS_CHUNKED ? 0 : COMMAND_WRONG;
	}
	return s->type & HTTP1_HAS_LENGTH ? http1_body(s, HTTP1_BODY) : http1_over(s);
}

/* Take the next byte of a client. Return enum command_said. */
HTTP1_INLINE int http1_request(struct command_side *s, __u8 byte)
{
	int said;

	switch (s->stage) {
	case HTTP1_START:
		return http1_request_begins(s, byte);
	case HTTP1_METHOD:
		return http1_method(s, byte);
	case HTTP1_TARGET:
		return http1_target(s, byte);
	default:
		break;
	}
	said = http1_common(s, byte);
	return said == COMMAND_ENDS ? http1_request_head(s) : said;
}

/* ---- responses ---- */

/* A byte of "HTTP/1.1 200". s->have: bytes so far; s->number: the status. */
HTTP1_INLINE int http1_status(struct command_side *s, __u8 byte)
{
	s->have++;
	if (s->have <= HTTP1_VERSION_LENGTH) {
		s->body = s->body << 8 | byte;
		return s->have < HTTP1_VERSION_LENGTH || (s->body | 1) == HTTP1_VERSION_FULL
			       ? 0
			       : COMMAND_WRONG;
	}
	if (s->have == HTTP1_VERSION_LENGTH + 1)
		return byte == ' ' ? 0 : COMMAND_WRONG;
	s->number = 10 * s->number + byte - '0';
	if (!command_is_digit(byte))
		return COMMAND_WRONG;
	if (s->have < HTTP1_STATUS_LENGTH)
		return 0;
	s->stage = HTTP1_REASON;
	if (s->number < 100 || s->number > 599)
		return COMMAND_WRONG;
	if (status_is_interim(s->number))
		return 0;
	s->left = 1;
	if (s->number == STATUS_UPGRADE)
		s->named = 1;
	return COMMAND_BEGINS;
}

HTTP1_INLINE int http1_response_begins(struct command_side *s, __u8 byte)
{
	s->stage = HTTP1_STATUS;
	s->type = 0;
	s->have = 0;
	s->number = 0;
	s->body = 0;
	return byte == 'H' ? http1_status(s, byte) : COMMAND_WRONG;
}

HTTP1_INLINE int http1_reason(struct command_side *s, __u8 byte)
{
	if (byte == '\n')
		http1_next_field(s);
	else
		s->stage = HTTP1_LINE;
	return byte == ' ' || byte == '\r' || byte == '\n' ? 0 : COMMAND_WRONG;
}

HTTP1_INLINE int http1_response_head(struct command_side *s)
{
	if (s->type & HTTP1_TRAILS)
		return http1_over(s);
	if (status_is_interim(s->number)) {
		s->stage = HTTP1_START;
		return 0;
	}
	if (s->number == STATUS_UPGRADE || (s->type & HTTP1_IS_CONNECT && s->number / 100 == 2))
		return http1_over(s) | COMMAND_UPGRADES;
	if (s->type & HTTP1_IS_HEAD || s->number == 204 || s->number == 304)
		return http1_over(s);
	if (s->type & HTTP1_IS_CHUNKED) {
		http1_chunk(s);
		return 0;
	}
	if (s->type & HTTP1_HAS_CODING || !(s->type & HTTP1_HAS_LENGTH))
		return http1_body(s, HTTP1_FOREVER);
	return http1_body(s, HTTP1_BODY);
}

/*
 * Take the next byte of a server. Return enum command_said. COMMAND_BEGINS comes with the last byte of a final
 * status, of HTTP1_STATUS_LENGTH. Then the caller sets the type's first two bits to those of the request.
 */
HTTP1_INLINE int http1_response(struct command_side *s, __u8 byte)
{
	int said;

	switch (s->stage) {
	case HTTP1_START:
		return http1_response_begins(s, byte);
	case HTTP1_STATUS:
		return http1_status(s, byte);
	case HTTP1_REASON:
		return http1_reason(s, byte);
	default:
		break;
	}
	said = http1_common(s, byte);
	return said == COMMAND_ENDS ? http1_response_head(s) : said;
}

#endif
