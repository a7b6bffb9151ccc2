/* SPDX-License-Identifier: MIT */
/*
 * The truth: every exchange as the server itself saw it. Kept in memory while it serves (no I/O, no
 * lock in the hot path), written as CSV at the end.
 */
#ifndef LAB_TRUTH_H
#define LAB_TRUTH_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/clock.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/*
 * One exchange. Times are CLOCK_MONOTONIC ns right before and after the server's own calls; 0
 * without such a call, or where the model cannot know. The observer is compared with:
 *   accept wait ends   accept_end_ns
 *   receive            last_read_end_ns - first_read_end_ns
 *   service            first_write_end_ns - last_read_end_ns
 *   respond            last_write_end_ns - first_write_end_ns
 */
struct exchange {
	uint64_t connection; /* 1, 2, … in the order of accept(), unique over workers; udp: 0 */
	uint64_t index;	     /* 0, 1, … on its connection */
	union address peer;
	uint64_t accept_begin_ns;
	uint64_t accept_end_ns;
	uint64_t readable_ns; /* when epoll or poll reported it; 0 after a blocking read */
	uint64_t first_read_begin_ns;
	uint64_t first_read_end_ns;
	uint64_t last_read_end_ns;
	uint64_t first_write_begin_ns;
	uint64_t first_write_end_ns;
	uint64_t last_write_begin_ns;
	uint64_t last_write_end_ns;
	uint64_t request_bytes;
	uint64_t response_bytes;
	bool pipelined; /* its first bytes came with the previous request's read */
	bool error;	/* anything but a complete response to a good request */
};

struct truth;
struct truth_chunk;

/* One thread's records. */
struct truth_writer {
	struct truth *truth; /* NULL: nothing is recorded and no clock is read */
	struct truth_chunk *chunk;
};

/* Return NULL without memory. At most @limit exchanges are kept. */
struct truth *truth_new(uint64_t limit);
void truth_free(struct truth *truth);

/* A writer is opened and closed by its own thread; @truth may be NULL. */
void truth_writer_open(struct truth_writer *writer, struct truth *truth);
void truth_writer_close(struct truth_writer *writer);

/* Return false if the record was dropped: limit reached or no memory. True without a truth. */
bool truth_record(struct truth_writer *writer, const struct exchange *exchange);

/*
 * Write the CSV of one process into @fd, and close it. Lines are unordered. truth_write_header() is
 * separate, as several processes' parts share one header. 0 or -errno.
 */
int truth_write_header(int fd);
int truth_write(struct truth *truth, uint16_t local_port, int pid, int fd);

/* Return the time, or 0 if nothing is recorded. */
static inline uint64_t truth_now_ns(const struct truth_writer *writer)
{
	return writer->truth ? clock_now_ns() : 0;
}

static inline void exchange_note_read(struct exchange *exchange, uint64_t begin_ns, uint64_t end_ns)
{
	if (!exchange->first_read_end_ns) {
		exchange->first_read_begin_ns = begin_ns;
		exchange->first_read_end_ns = end_ns;
	}
	exchange->last_read_end_ns = end_ns;
}

static inline void exchange_note_write(struct exchange *exchange, uint64_t begin_ns,
				       uint64_t end_ns, uint64_t bytes)
{
	if (!exchange->first_write_end_ns) {
		exchange->first_write_begin_ns = begin_ns;
		exchange->first_write_end_ns = end_ns;
	}
	exchange->last_write_begin_ns = begin_ns;
	exchange->last_write_end_ns = end_ns;
	exchange->response_bytes += bytes;
}

#endif
