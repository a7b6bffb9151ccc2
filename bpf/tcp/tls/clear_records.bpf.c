// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Finds out when the text came that the library hands out. One read of the socket may bring many records, that arrived at
 * different times. Their headers are not encrypted, so it is known where each ends. The library hands out the text of one
 * record at a time, in their order. A call that returns less than was asked for has taken all of a record's text.
 *
 * This is checked: with the ciphers of today a record is longer than its text by the same number of bytes each time.
 * If it is not, as with padding or a change of keys, the arrival is not known. See clear.h.
 */
#define WALK_CALLS

#include "tcp/connection/arrival.h"
#include "tcp/connection/bytes.h"
#include "tcp/connection/clear.h"
#include "tls.h"

/* Limit of headers, records and buffers in one read. */
#define CLEAR_STEPS 256
/* The tag and the true type of 1.3; also the nonce in 1.2. */
#define EXCESS_LEAST 8
#define EXCESS_MOST  40

struct clear_walk {
	struct clear_records *r;
	struct conn *c;
};

static __always_inline void records_complete(struct clear_records *r, struct conn *c)
{
	struct clear_record *record = &r->all[r->next & (CLEAR_RECORDS - 1)];
	struct arrival arrival;

	/* Others have no text. */
	if (r->header[0] != TLS_APPLICATION_DATA)
		return;
	arrival_of(c, r->end - r->count - 1, &arrival);
	record->arrival_ns = arrival.ns;
	record->length = r->length;
	r->next++;
}

static __always_inline void records_pass(struct clear_records *r, __u32 count)
{
	bytes_pass(&r->bytes, count);
	r->count -= count;
}

/* Take bytes of a header. False: they are none. */
static __always_inline bool records_header(struct clear_records *r, __u32 room)
{
	__u32 have = r->have, count = TLS_HEADER - have;

	if (count > room)
		count = room;
	barrier_var(count); /* or the verifier does not see the bounds */
	barrier_var(have);
	count &= 7;
	have &= 7;
	if (have + count > TLS_HEADER ||
	    bpf_probe_read_user(r->header + have, count, (void *)r->bytes.at))
		return false;
	records_pass(r, count);
	r->have = have + count;
	if (r->have < TLS_HEADER)
		return true;
	r->length = r->left = (__u32)r->header[3] << 8 | r->header[4];
	r->have = 0;
	return tls_is_header(r->header);
}

static long records_step(__u32 i, struct clear_walk *w)
{
	struct clear_records *r = w->r;
	__u32 room = r->count;

	if (!room)
		return 1;
	if (!bytes_more(&r->bytes)) {
		r->lost = true;
		return 1;
	}
	if (room > r->bytes.left)
		room = r->bytes.left;
	if (!room)
		return 0;
	if (!r->left) {
		r->lost = !records_header(r, room);
		return r->lost;
	}
	if (room > r->left)
		room = r->left;
	records_pass(r, room);
	r->left -= room;
	if (!r->left)
		records_complete(r, w->c);
	return 0;
}

/* The library reads on, so all text of the only record was taken: also if each call got as much as it asked for. */
static __always_inline void records_learn(struct clear_records *r)
{
	const struct clear_record *record = &r->all[r->taken & (CLEAR_RECORDS - 1)];
	__u32 excess = record->length - r->text;

	if (!r->lost && !r->excess && r->text && r->next - r->taken == 1 &&
	    excess >= EXCESS_LEAST && excess <= EXCESS_MOST)
		r->excess = excess;
}

__noinline int clear_records_read(struct clear_records *r, struct conn *c, __u32 count, __u32 end,
				  int first)
{
	struct clear_walk w = {.r = r, .c = c};

	if (!r || !c)
		return 0;
	if (first) {
		/* The library has no complete record, or it would not read. */
		records_learn(r);
		r->taken = r->next;
		r->text = 0;
		if (r->lost)
			r->have = r->left = 0;
		r->lost = false;
	}
	if (r->lost)
		return 0;
	r->count = count;
	r->end = end;
	bytes_begin(&r->bytes, count);
	bpf_loop(CLEAR_STEPS, records_step, &w, 0);
	if (r->count)
		r->lost = true;
	return 0;
}

__noinline __u64 clear_records_taken(struct clear_records *r, __u32 length, __u32 asked)
{
	struct clear_record *record;
	__u32 excess;

	if (!r || r->lost || r->taken == r->next)
		return 0;
	record = &r->all[r->taken & (CLEAR_RECORDS - 1)];
	r->text += length;
	excess = record->length - r->text;
	if (length == asked && excess != r->excess)
		return r->excess ? record->arrival_ns : 0;
	if (!r->excess && excess >= EXCESS_LEAST && excess <= EXCESS_MOST)
		r->excess = excess;
	if (excess != r->excess || r->next - r->taken > CLEAR_RECORDS) {
		r->lost = true;
		return 0;
	}
	r->taken++;
	r->text = 0;
	return record->arrival_ns;
}
