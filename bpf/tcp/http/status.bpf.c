// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Finds the status in a write, and counts it. See status.h. */
#include "status.h"

#include "answer.h"
#include "grpc.h"
#include "pushed.h"
#include "state.h"
#include "tcp/connection/bytes.h"
#include "tcp/connection/clear.h"
#include "tcp/connection/slot.h"

/* A first line may be split over this many buffers: some servers use one for each word. */
#define STATUS_BUFFERS 8
/* Limits for one write: its interim responses and the final one, and the bytes of each head. */
#define STATUS_HEADS	 4
#define STATUS_HEAD_MOST 4096

#define HEAD_END 0x0d0a0d0a /* "\r\n\r\n" */

/* Take the start of a first line, and return its status. */
static __always_inline __u32 head_status(struct answer_head *head)
{
	__u8 line[32] = {};
	__u32 have = 0;

	if (head->left < STATUS_LINE)
		return STATUS_UNKNOWN;
	head->left -= STATUS_LINE;
	for (int i = 0; i < STATUS_BUFFERS && have < STATUS_LINE; i++) {
		__u32 room = STATUS_LINE - have;

		if (!bytes_more(&head->bytes))
			return STATUS_UNKNOWN;
		if (room > head->bytes.left)
			room = head->bytes.left;
		barrier_var(room); /* or the verifier does not see the bounds */
		barrier_var(have);
		room &= 15;
		have &= 15;
		if (bpf_probe_read_user(line + have, room, (void *)head->bytes.at))
			return STATUS_UNKNOWN;
		bytes_pass(&head->bytes, room);
		have += room;
	}
	/* This byte may begin the end of the head. */
	head->window = line[STATUS_LINE - 1];
	return have == STATUS_LINE ? status_of_line(line) : STATUS_UNKNOWN;
}

static long head_step(__u32 i, struct answer_head *head)
{
	__u8 byte = 0;

	if (!head->left || !bytes_more(&head->bytes))
		return 1;
	if (!head->bytes.left)
		return 0;
	if (bpf_probe_read_user(&byte, 1, (void *)head->bytes.at))
		return 1;
	bytes_pass(&head->bytes, 1);
	head->left--;
	head->window = head->window << 8 | byte;
	head->ended = head->window == HEAD_END;
	return head->ended;
}

static long kept_head_step(__u32 i, struct answer_head **head)
{
	return head_step(i, *head);
}

/* @kept: the head is in a map. Then the verifier does not follow its numbers through each step. */
static __always_inline int status_of_heads(struct answer_head *head, bool kept)
{
	__u32 status = STATUS_UNKNOWN;

	for (int i = 0; i < STATUS_HEADS; i++) {
		status = head_status(head);
		if (!status_is_interim(status))
			return status;
		head->ended = 0;
		if (kept)
			bpf_loop(STATUS_HEAD_MOST, kept_head_step, &head, 0);
		else
			bpf_loop(STATUS_HEAD_MOST, head_step, head, 0);
		if (!head->ended)
			return STATUS_UNKNOWN;
		if (!head->left)
			return STATUS_INTERIM;
	}
	return STATUS_UNKNOWN;
}

__noinline int status_in(__u64 text, __u32 length)
{
	struct answer_head head = {.bytes = {.at = text, .left = length}, .left = length};

	return status_of_heads(&head, false);
}

/* Return the result of status_written(), for bytes that can be seen. @looks: with a suspicion. */
static __always_inline int status_in_write(__u32 count, bool looks)
{
	struct answer_look *look;
	int suspicion;
	__u32 zero = 0;

	look = bpf_map_lookup_elem(&answer_looks, &zero);
	if (!look)
		return STATUS_UNKNOWN;
	if (looks) {
		suspicion = answer_look(look, 0, count);
		if (!status_is_interim(look->status))
			return look->status | suspicion << STATUS_BITS;
	}
	look->head = (struct answer_head){.left = count};
	bytes_begin(&look->head.bytes, count);
	return status_of_heads(&look->head, true);
}

__noinline int status_written(struct conn *c, __u32 count)
{
	int status;

	if (!c)
		return STATUS_UNKNOWN;
	if (config.tls && clear_is_needed(c))
		status = clear_answer(c);
	else
		status = status_in_write(count, !(c->marks & MARK_TLS));
	if (status == STATUS_INTERIM)
		c->marks |= MARK_HTTP1;
	return status;
}

/* The block is that of a response of server-sent events. These are counted in HTTP/1 alone. */
static __always_inline void block_of_events(const struct http2_conn *h, struct stream *st)
{
	__u32 index = copy_of(h->service);
	struct service_statuses *all;

	if (st->flags & STREAM_EVENTS)
		return;
	st->flags |= STREAM_EVENTS;
	all = slot_of(h->service) ? bpf_map_lookup_elem(&statuses, &index) : NULL;
	if (!all)
		return;
	pushed(all, PUSHED_STREAMS, 1);
	if (!h->out.side.last)
		pushed(all, PUSHED_STREAMS_LOST, 1);
}

/*
 * A frame of a block has ended, and perhaps the block. Return @status. Not inline: the caller's stack
 * has no room for it.
 */
static __noinline int block_frame_ended(struct http2_conn *h, __u32 status)
{
	const struct hpack_table *fields = &h->fields;
	struct stream_entry *entry;
	struct stream *st;

	if (!http2_block_is_over(&h->out.side, fields))
		return status;
	entry = stream_entry_of(h, h->out.side.stream);
	if (!entry)
		return status;
	st = &entry->stream;
	if (fields->said & HPACK_SAID_GRPC) {
		st->flags |= STREAM_GRPC;
		h->flags |= HTTP2_GRPC;
		grpc_begins(h->service, entry);
	}
	if (http2_is_obscure(fields))
		st->flags |= STREAM_OBSCURE;
	if (fields->said & HPACK_SAID_EVENTS && fields->said & HPACK_SAID_OK && config.http)
		block_of_events(h, st);
	if (h->out.side.last)
		st->grpc = fields->grpc;
	return status;
}

/* Not inline: the verifier would follow each status through the block. */
__noinline __u32 status_begins(struct http2_conn *h, __u32 said)
{
	return h ? http2_block_begins(&h->out.side, &h->fields, said) : STATUS_UNKNOWN;
}

__noinline int status_in_block(struct http2_conn *h, __u32 said, __u64 end)
{
	__u32 status;

	if (!h || !http2_is_block(&h->out.side))
		return STATUS_UNKNOWN;
	status = status_begins(h, said);
	http2_blocks(&h->out.side, &h->fields, said, end);
	return said & HTTP2_ENDS ? block_frame_ended(h, status) : status;
}

static __always_inline void status_failed(struct service_statuses *all, __u32 status,
					  __u64 service_ns)
{
	if (service_ns == STATUS_UNTIMED || status < 400)
		return;
	if (status < 500)
		stage_add(&all->failed[STATUS_FAILED_4XX], service_ns);
	else
		stage_add(&all->failed[STATUS_FAILED_5XX], service_ns);
}

static __always_inline void status_add(__u32 service, __u32 status, __u64 service_ns)
{
	__u32 index = copy_of(service);
	struct service_statuses *all = bpf_map_lookup_elem(&statuses, &index);
	__u32 place = status - STATUS_LEAST;

	if (!all || !slot_of(service))
		return;
	barrier_var(place);
	if (place < STATUS_COUNT)
		COPY_ADD(all->counts[place], 1);
	else
		COPY_ADD(all->unknown, 1);
	status_failed(all, status, service_ns);
}

__noinline int status_count(__u32 service, __u32 status, __u64 service_ns)
{
	status_add(service, status, service_ns);
	return 0;
}

__noinline int status_answered(const struct conn *c, int status)
{
	if (c && (status || c->marks & (MARK_HTTP1 | MARK_TLS)))
		status_add(c->service, status,
			   c->start_ns ? c->first_write_ns - c->last_read_ns : STATUS_UNTIMED);
	return 0;
}

/* Return the status of gRPC that the response has ended with, GRPC_COUNT if it is none of gRPC. */
static __always_inline __u32 status_grpc(__u32 said, __u32 stream, __u32 conn)
{
	if (said)
		return said - 1;
	if (stream & STREAM_OBSCURE && conn & HTTP2_GRPC)
		return GRPC_NOT_KNOWN;
	if (!(stream & STREAM_GRPC))
		return GRPC_COUNT;
	return conn & HTTP2_GIVEN_UP ? GRPC_NOT_KNOWN : GRPC_MISSING;
}

/* Then it is a call, of some kind. */
static __always_inline void status_kind(struct service_statuses *all, __u32 status, __u32 stream,
					__u32 conn)
{
	__u32 kind = GRPC_KIND_NOT_KNOWN;

	if (stream & STREAM_GRPC && !(conn & HTTP2_GIVEN_UP) && status != GRPC_NOT_KNOWN)
		kind = grpc_kind_of(stream, !status);
	barrier_var(kind);
	if (kind < GRPC_KIND_COUNT)
		COPY_ADD(all->kinds[kind], 1);
}

/* A response has ended, and nothing says that it is of gRPC. Count it if a field that is not known may do. */
static __always_inline void status_unsure(__u32 service, __u32 stream)
{
	struct service_slot *slot = stream & STREAM_OBSCURE ? slot_of(service) : NULL;

	if (slot)
		count_atomic(slot, COUNTER_GRPC_UNSURE, 1);
}

__noinline int status_ended(__u32 service, __u32 said, __u32 stream, __u32 conn, __u64 service_ns)
{
	__u32 index = copy_of(service);
	struct service_statuses *all = bpf_map_lookup_elem(&statuses, &index);
	__u32 status = status_grpc(said, stream, conn);

	barrier_var(status);
	if (status == GRPC_COUNT)
		status_unsure(service, stream);
	if (!all || status >= GRPC_COUNT || !slot_of(service))
		return 0;
	COPY_ADD(all->grpc[status], 1);
	status_kind(all, status, stream, conn);
	if (status && status <= GRPC_OTHER && service_ns != STATUS_UNTIMED)
		stage_add(&all->failed[STATUS_FAILED_GRPC], service_ns);
	return 0;
}
