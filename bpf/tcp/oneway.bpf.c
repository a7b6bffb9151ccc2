// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Messages that want no answer:
 *
 *   MySQL, MariaDB  COM_STMT_CLOSE (0x19, a number of 4 bytes), COM_QUIT (1), each after its length in 3 bytes and a 0
 *   PostgreSQL      Terminate: 'X', and the length 4
 *   memcached       "quit", CR LF; the binary protocol's QuitQ (0x80, 0x17), which is 24 bytes without key and value
 *   LDAP            UnbindRequest (RFC 4511, 4.3) with an identifier below 32,768
 *   MQTT            DISCONNECT (0xe0) without a reason, and its length 0
 *   WebSocket       a pong of up to 10 bytes (RFC 6455, 5.5.3): 0x8a, its length with the bit of a mask, the mask
 *   AMQP            version 0-9-1: a heartbeat, which is a frame of type 8 without content, on channel 0; and
 *                   Basic.Ack, .Reject and .Nack, which are the methods of 13 bytes that a client sends
 *   NATS            "PONG", CR LF
 *   MQTT            PUBACK (0x40) and PUBCOMP (0x70) without a reason: 2, and an identifier, which is not 0 (2.2.1)
 *   HTTP/1          CR LF before a request, which some clients send after a body, and servers skip (RFC 9112, 2.2)
 *
 * Four of these answer the server's own question or message, or are sent from time to time. Otherwise the server's next
 * one would look like their answer, and the pause until then like its work.
 *
 * The servers of MySQL's protocol read the 4 bytes before a command in a separate read. In that protocol the server
 * speaks first. Mosquitto reads the first byte of a packet in a separate read, then each byte of its length, then the
 * rest. The number of bytes that were read before says whose header the marks mean.
 */
#include "oneway.h"
#include "tcp/connection/bytes.h"

#include <bpf/bpf_endian.h>

/* The first 8 bytes of each message, padded with zeros. */
#define QUIT	     0x717569740d0a0000
#define QUIT_QUIETLY 0x8017000000000000
#define TERMINATE    0x5800000004000000
#define MYSQL_QUIT   0x0100000001000000
#define MYSQL_CLOSE  0x0500000019000000
#define MYSQL_NUMBER 0x0000000000ffffff /* bytes of MYSQL_CLOSE with any value */

#define UNBIND_1     0x3005020100420000
#define UNBIND_2     0x3006020200004200
#define IDENTIFIER_1 0x00000000ff000000ULL
#define IDENTIFIER_2 0x00000000ffff0000ULL
#define DISCONNECT   0xe000000000000000

#define QUIT_QUIETLY_BYTES 24 /* a header alone */

#define EMPTY_LINE   0x0d0a000000000000
#define HEARTBEAT    0x08000000000000ce
#define NATS_PONG    0x504f4e470d0a0000
#define PONG	     0x8a80 /* its first 2 bytes, and its length */
#define PONG_HEADER  6
#define PONG_SHIFT   48
#define PONG_LONGEST 16

/* Of a frame of AMQP from its third byte on: size, class (Basic), and one of three methods. */
#define SETTLE_BYTES  21
#define SETTLE_SKIP   3
#define SETTLE_ACK    0x0000000d003c0050
#define SETTLE_REJECT 0x0000000d003c005a
#define SETTLE_NACK   0x0000000d003c0078

#define PUBACK	   0x4002
#define PUBCOMP	   0x7002
#define PUBACK_1   0x4000000000000000
#define PUBCOMP_1  0x7000000000000000
#define PUBACK_2   0x4002000000000000
#define MQTT_BYTES 4

#define MARK_HEADERS (MARK_MYSQL_CLOSE | MARK_MYSQL_QUIT)
/* After one byte or two, where there is no header of MySQL's: they are those of PUBACK or PUBCOMP. */
#define MARK_MQTT_1 MARK_MYSQL_CLOSE
#define MARK_MQTT_2 MARK_MYSQL_QUIT

#define HEADER_BYTES 4
#define HEADER_SHIFT 32

/* Return the first bytes after @skip; 0: they cannot be seen. */
static __always_inline __u64 bytes_after(__u32 skip, __u32 bytes)
{
	__u64 word = 0;
	struct bytes b;

	bytes_begin(&b, bytes);
	if (!bytes_more(&b) || b.left < bytes)
		return 0;
	bytes -= skip;
	if (bytes > sizeof(word))
		bytes = sizeof(word);
	barrier_var(bytes); /* or the verifier does not see the bounds */
	if (bytes > sizeof(word) || bpf_probe_read_user(&word, bytes, (void *)(b.at + skip)))
		return 0;
	return bpf_be64_to_cpu(word);
}

/*
 * Return marks of the commands to which the first bytes of a packet (its length and number) may
 * lead.
 */
static __always_inline __u32 mysql_header(__u32 header)
{
	if (header == MYSQL_CLOSE >> HEADER_SHIFT)
		return MARK_MYSQL_CLOSE;
	return header == MYSQL_QUIT >> HEADER_SHIFT ? MARK_MYSQL_QUIT : 0;
}

static __always_inline __u64 mysql_packet(__u32 header, __u64 command)
{
	__u64 packet = header & MARK_MYSQL_CLOSE ? MYSQL_CLOSE : MYSQL_QUIT;

	return packet >> HEADER_SHIFT << HEADER_SHIFT | command >> HEADER_SHIFT;
}

static __always_inline __u32 mysql_message(__u64 word, __u32 message)
{
	if (message == HEADER_BYTES)
		return mysql_header(word >> HEADER_SHIFT);
	if (message == 5 && word == MYSQL_QUIT)
		return MARK_GOODBYE;
	return message == 9 && (word & ~MYSQL_NUMBER) == MYSQL_CLOSE ? MARK_ONEWAY : 0;
}

/* Return whether the message is LDAP's UnbindRequest, with any identifier. */
static __always_inline bool is_unbind(__u64 word, __u32 message)
{
	if (message == 7)
		return (word & ~IDENTIFIER_1) == UNBIND_1;
	return message == 8 && (word & ~IDENTIFIER_2) == UNBIND_2;
}

static __always_inline bool is_goodbye(__u64 word, __u32 message)
{
	if (message == 2)
		return word == DISCONNECT;
	if (message == 5)
		return word == TERMINATE;
	if (message == QUIT_QUIETLY_BYTES)
		return word == QUIT_QUIETLY;
	return (message == 6 && word == QUIT) || is_unbind(word, message);
}

/* Return whether the message is a sign of life, which wants no answer. */
static __always_inline bool is_alive(__u64 word, __u32 message)
{
	if (message == 6 && word == NATS_PONG)
		return true;
	return message == 8 && word == HEARTBEAT;
}

/* A client's frames have a mask. No request of HTTP/1, from which the connection came, begins like a pong. */
static __always_inline bool is_pong(__u64 word, __u32 message)
{
	return message >= PONG_HEADER && word >> PONG_SHIFT == PONG + message - PONG_HEADER;
}

/* Return whether a client of AMQP settles a message that it was sent. */
static __always_inline bool is_settled(__u32 bytes)
{
	__u64 word = bytes_after(SETTLE_SKIP, bytes);

	return word == SETTLE_ACK || word == SETTLE_REJECT || word == SETTLE_NACK;
}

static __always_inline bool is_acknowledgement(__u32 packet)
{
	__u32 kind = packet >> 16;

	return (kind == PUBACK || kind == PUBCOMP) && (__u16)packet;
}

/* A client of MQTT acknowledges one message, or in one read up to four. Of the latter two the second word is not read. */
static __always_inline __u32 mqtt_message(__u32 header, __u64 word, __u32 message)
{
	if (header == MARK_MQTT_1)
		word = PUBACK_1 | word >> 8;
	else if (header == MARK_MQTT_2)
		word = PUBACK_2 | word >> 16;
	if (message == 1)
		return word == PUBACK_1 || word == PUBCOMP_1 ? MARK_MQTT_1 : 0;
	if (message == 2)
		return word == PUBACK_2 ? MARK_MQTT_2 : 0;
	if (message % MQTT_BYTES || !is_acknowledgement(word >> HEADER_SHIFT))
		return 0;
	return message == MQTT_BYTES || is_acknowledgement(word) ? MARK_ONEWAY : 0;
}

/* Return the marks of a message of MySQL's or MQTT's protocol, whose first @before bytes an earlier read returned. */
static __always_inline __u32 packet_message(__u32 marks, __u32 header, __u64 word, __u32 message,
					    __u32 before)
{
	__u32 found = before < HEADER_BYTES ? mqtt_message(header, word, message) : 0;

	return found || !(marks & MARK_GREETED) ? found : mysql_message(word, message);
}

__u32 oneway_look(__u32 marks, __u32 message, __u32 bytes)
{
	__u32 header = marks & MARK_HEADERS, before = message - bytes;
	__u64 word;

	marks &= ~(MARK_HEADERS | MARK_GOODBYE);
	if (message > ONEWAY_LONGEST || (before && !header) || marks & (MARK_TLS | MARK_UNSEEN))
		return marks;
	if (message == SETTLE_BYTES && !before && !(marks & MARK_HTTP1) && is_settled(bytes))
		return marks | MARK_ONEWAY;
	if (message > PONG_LONGEST && message != QUIT_QUIETLY_BYTES)
		return marks;
	word = bytes_after(0, bytes);
	if (is_pong(word, message))
		return marks | MARK_ONEWAY;
	if (marks & MARK_HTTP1)
		return message == 2 && word == EMPTY_LINE ? marks | MARK_ONEWAY : marks;
	if (is_alive(word, message))
		return marks | MARK_ONEWAY;
	if (message == 1 && word == DISCONNECT)
		return marks | MARK_HEADERS;
	if (header == MARK_HEADERS)
		word = DISCONNECT | word >> 8;
	else if (before == HEADER_BYTES)
		word = mysql_packet(header, word);
	if (is_goodbye(word, message))
		return marks | MARK_GOODBYE;
	return marks | packet_message(marks, header, word, message, before);
}
