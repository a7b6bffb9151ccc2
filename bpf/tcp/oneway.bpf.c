// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Messages that want no answer:
 *
 *   MySQL, MariaDB  COM_STMT_CLOSE (0x19, a number of 4 bytes), COM_QUIT (1), each after its length in 3 bytes and a 0
 *   PostgreSQL      Terminate: 'X', and the length 4
 *   memcached       "quit", CR LF
 *
 * The servers of MySQL's protocol read the 4 bytes before a command in a separate read. In that protocol the server
 * speaks first.
 */
#include "bytes.h"
#include "oneway.h"

#include <bpf/bpf_endian.h>

/* The first 8 bytes of each message, padded with zeros. */
#define QUIT	     0x717569740d0a0000
#define TERMINATE    0x5800000004000000
#define MYSQL_QUIT   0x0100000001000000
#define MYSQL_CLOSE  0x0500000019000000
#define MYSQL_NUMBER 0x0000000000ffffff /* bytes of MYSQL_CLOSE with any value */

#define HEADER_BYTES 4
#define HEADER_SHIFT 32

/* Return the first bytes; 0: they cannot be seen. */
static __always_inline __u64 first_bytes(__u32 bytes)
{
	__u64 word = 0;
	struct bytes b;

	bytes_begin(&b, bytes);
	if (!bytes_more(&b) || b.left < bytes)
		return 0;
	if (bytes > sizeof(word))
		bytes = sizeof(word);
	barrier_var(bytes); /* or the verifier does not see the bounds */
	if (bytes > sizeof(word) || bpf_probe_read_user(&word, bytes, (void *)b.at))
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

__u32 oneway_look(__u32 marks, __u32 message, __u32 bytes)
{
	__u32 header = marks & (MARK_MYSQL_CLOSE | MARK_MYSQL_QUIT);
	__u64 word;

	marks &= ~(MARK_MYSQL_CLOSE | MARK_MYSQL_QUIT | MARK_GOODBYE);
	if (message > ONEWAY_LONGEST || (message != bytes && !header) ||
	    marks & (MARK_TLS | MARK_HTTP1 | MARK_UNSEEN))
		return marks;
	word = first_bytes(bytes);
	if (message != bytes)
		word = mysql_packet(header, word);
	if ((message == 6 && word == QUIT) || (message == 5 && word == TERMINATE))
		return marks | MARK_GOODBYE;
	return marks & MARK_GREETED ? marks | mysql_message(word, message) : marks;
}
