// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Follows the commands of a connection, and counts them. See commands.h. */
#define WALK_CALLS

#include "commands.h"

#include "command_walk.h"
#include "pipeline.h"
#include "protocol/postgres.h"
#include "protocol/resp.h"

#define COMMAND_CLAIM_TRIES 64

/* ---- rows ---- */

/* Return the row of a command. The first program that sees the command takes a row for it. */
static __always_inline __u32 command_row(const struct command_known *known)
{
	__u32 id = known->id, protocol = known->protocol;
	__u64 *place = bpf_map_lookup_elem(&command_rows_of, &id), row;

	barrier_var(protocol); /* or the verifier does not see its bound */
	if (!place || protocol >= COMMAND_PROTOCOL_COUNT)
		return 0;
	row = PLAIN(place);
	if (!row && !__sync_val_compare_and_swap(place, 0, COMMAND_CLAIMED)) {
		row = command_rows_taken[protocol] < COMMAND_ROWS - 1
			      ? __sync_fetch_and_add(&command_rows_taken[protocol], 1) + 1
			      : COMMAND_ROWS;
		atomic_publish(place, row);
	}
	/* Another CPU is about to give it one: that takes a few instructions. */
	for (int i = 0; i < COMMAND_CLAIM_TRIES && (!row || row == COMMAND_CLAIMED); i++)
		row = PLAIN(place);
	return row < COMMAND_ROWS ? row : 0;
}

/* Return what the queue keeps of the request that has ended. A name of two words may be known by the first one. */
static __always_inline __u32 command_kind(struct command_side *s)
{
	const struct command_known *known = bpf_map_lookup_elem(&command_names, &s->name);

	if (!known && s->name.text[RESP_CLIENT] == '|') {
		__builtin_memset(s->name.text + RESP_CLIENT, 0, COMMAND_NAME - RESP_CLIENT);
		known = bpf_map_lookup_elem(&command_names, &s->name);
	}
	if (!known)
		return 0;
	return command_row(known) | (known->leaves ? COMMAND_LEAVES : 0);
}

/* Return the counts of the reply's row. NULL: it has none. */
static __always_inline struct service_route *command_counts(const struct command_conn *h)
{
	__u32 row = h->reply.row, index;

	if (!h->reply.named || !slot_of(h->service))
		return NULL;
	if (h->protocol == COMMAND_HTTP1) {
		index = copy_of(h->service) * config.route_rows + row - ROUTE_FIRST;
		return config.route_rows ? bpf_map_lookup_elem(&route_rows, &index) : NULL;
	}
	index = copy_of(h->service) * config.command_rows + row;
	return bpf_map_lookup_elem(&command_rows, &index);
}

__noinline int commands_unnamed(__u32 service, __u32 reason)
{
	__u32 index = copy_of(service);
	struct service_unnamed *unnamed = bpf_map_lookup_elem(&commands_without, &index);

	barrier_var(reason); /* or the verifier does not see its bound */
	if (unnamed && reason < ROUTE_UNKNOWN_COUNT && slot_of(service))
		COPY_ADD(unnamed->exchanges[reason], 1);
	return 0;
}

/* ---- requests ---- */

/* A request begins with the byte before h->at. */
__noinline int command_asks(struct command_conn *h, struct conn *c)
{
	struct arrival arrival = {};
	struct service_slot *slot;

	if (!h || !c)
		return 0;
	h->open_seq = command_seq(h) - 1;
	arrival_of(c, h->open_seq, &arrival);
	h->open = (struct command_times){.first_read_ns = h->now, .last_read_ns = h->now};
	h->opened = true;
	if (arrival.ns) {
		h->open.start_ns = arrival.ns > h->accepted_ns ? arrival.ns : h->accepted_ns;
		h->open.accept_delay_ns = h->open.start_ns - arrival.ns;
	}
	h->accepted_ns = 0; /* the wait belongs to the first one */
	if (h->open.start_ns <= h->now)
		return 0;
	slot = slot_of(h->service);
	if (slot)
		SLOT_COUNT(slot, COUNTER_INCONSISTENT, 1);
	h->open.start_ns = 0;
	h->open.accept_delay_ns = 0;
	return 0;
}

static __always_inline bool command_same_times(const struct command_times *a,
					       const struct command_times *b)
{
	return a->start_ns == b->start_ns && a->first_read_ns == b->first_read_ns &&
	       a->last_read_ns == b->last_read_ns && a->accept_delay_ns == b->accept_delay_ns;
}

/* Put the request under way into the queue. */
__noinline int command_queued(struct command_conn *h, __u32 kind)
{
	struct command_batch *b;
	__u32 bytes;

	if (!h)
		return 0;
	b = &h->batches[(h->begun - 1) & (COMMANDS_BATCHES - 1)];
	bytes = command_seq(h) - h->open_seq;
	h->opened = false;
	if (h->lost || h->asked - h->answered >= COMMANDS_QUEUED) {
		h->lost++;
		return 0;
	}
	if (h->begun == h->done || !command_same_times(&b->times, &h->open)) {
		if (h->begun - h->done >= COMMANDS_BATCHES) {
			h->lost++;
			return 0;
		}
		b = &h->batches[h->begun & (COMMANDS_BATCHES - 1)];
		*b = (struct command_batch){.times = h->open, .bytes = bytes};
		h->begun++;
	}
	b->requests++;
	h->waiting += bytes;
	if (bytes > COMMAND_BYTES_MOST)
		bytes = COMMAND_BYTES_MOST;
	h->queue[h->asked & (COMMANDS_QUEUED - 1)] = kind | bytes << COMMAND_BYTES;
	h->asked++;
	return 0;
}

__noinline int command_asked(struct command_conn *h)
{
	if (!h)
		return 0;
	h->open.last_read_ns = h->now;
	return command_queued(h, command_kind(&h->in));
}

__noinline int command_goodbye(const struct command_conn *h)
{
	struct service_slot *slot = h ? slot_of(h->service) : NULL;

	if (slot)
		SLOT_COUNT(slot, COUNTER_GOODBYES, 1);
	return 0;
}

static long command_in_step(__u32 i, struct command_call *call)
{
	struct command_conn *h = call->h;
	__u32 at = h->at;
	int said;

	if (at >= h->have)
		return !command_fill(h, &h->in);
	if (h->in.skip && command_skip(h, &h->in))
		return 0;
	h->at = at + 1;
	at &= COMMANDS_CHUNK - 1;
	said = h->protocol == COMMAND_POSTGRES ? postgres_request(&h->in, h->chunk[at])
					       : resp_request(&h->in, h->chunk[at]);
	if (!said)
		return 0;
	if (said & COMMAND_BEGINS)
		command_asks(h, call->c);
	if (said & COMMAND_DROPS)
		h->opened = false;
	if (said & COMMAND_LEAVE_TAKEN)
		command_goodbye(h);
	if (said & COMMAND_ENDS && h->opened)
		command_asked(h);
	if (said & COMMAND_WRONG)
		call->over = ROUTE_STRANGE + 1;
	return !!call->over;
}

__noinline int commands_in(struct command_conn *h, struct conn *c)
{
	struct command_call call = {.h = h, .c = c};

	if (!h || !c)
		return 0;
	command_walk_begins(h);
	bpf_loop(COMMANDS_STEPS, command_in_step, &call, 0);
	return command_walk_ends(h, call.over);
}

/* ---- replies ---- */

static __always_inline void command_stage(struct service_route *row, enum stage stage, __u64 from,
					  __u64 to)
{
	if (row && to >= from)
		stage_add(&row->stages[stage - ROUTE_STAGE_FIRST], to - from);
}

/* Count an exchange whose reply begins. */
static __always_inline void command_count(struct command_conn *h, struct service_slot *slot)
{
	const struct command_reply *reply = &h->reply;
	const struct command_times *t = &reply->times;
	struct service_route *row = command_counts(h);
	__u32 class = h->protocol == COMMAND_HTTP1 ? h->out.number / 100 : COMMAND_REPLIES;

	SLOT_COUNT(slot, COUNTER_EXCHANGES, 1);
	barrier_var(class); /* or the verifier does not see its bound */
	if (row && class < ROUTE_CLASSES)
		COPY_ADD(row->responses[class], 1);
	note_messages(slot, t->start_ns ? t->start_ns : t->first_read_ns, h->now);
	if (!t->start_ns) {
		SLOT_COUNT(slot, COUNTER_UNTIMED, 1);
		return;
	}
	exchange_stage(slot, STAGE_SOCKET_QUEUE, t->start_ns, t->first_read_ns);
	command_stage(row, STAGE_SOCKET_QUEUE, t->start_ns, t->first_read_ns);
	if (t->last_read_ns != t->first_read_ns) {
		exchange_stage(slot, STAGE_RECEIVE, t->first_read_ns, t->last_read_ns);
		command_stage(row, STAGE_RECEIVE, t->first_read_ns, t->last_read_ns);
	}
	exchange_stage(slot, STAGE_SERVICE, t->last_read_ns, reply->first_write_ns);
	command_stage(row, STAGE_SERVICE, t->last_read_ns, reply->first_write_ns);
	if (t->accept_delay_ns) {
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAYED, 1);
		SLOT_COUNT(slot, COUNTER_ACCEPT_DELAY_NS, t->accept_delay_ns);
	}
}

/* @kind: what is kept of the request. Of HTTP the row may be a reason why there is none. */
static __always_inline void command_row_is(struct command_conn *h, __u32 kind)
{
	h->reply.row = kind & COMMAND_ROW;
	h->reply.named = h->protocol != COMMAND_HTTP1 || h->reply.row >= ROUTE_FIRST;
}

/* Take the oldest request out of the queue, for its reply. Return what the queue kept of it. */
static __always_inline __u32 command_take(struct command_conn *h)
{
	struct command_batch *b = &h->batches[h->done & (COMMANDS_BATCHES - 1)];
	__u32 kind = h->queue[h->answered & (COMMANDS_QUEUED - 1)];

	h->reply.times = b->times;
	command_row_is(h, kind);
	h->reply.bytes_in = kind >> COMMAND_BYTES;
	if (h->reply.bytes_in == COMMAND_BYTES_MOST)
		h->reply.bytes_in = b->bytes;
	h->waiting -= h->reply.bytes_in;
	h->reply.sampled = h->flow.server_port && b->times.start_ns;
	/* The wait for accept() belongs to the first of them. */
	b->times.accept_delay_ns = 0;
	h->answered++;
	if (!--b->requests)
		h->done++;
	return kind;
}

/* Return what is kept of the request that the reply answers. */
static __always_inline __u32 command_next(struct command_conn *h)
{
	if (h->asked != h->answered)
		return command_take(h);
	if (h->lost) {
		h->lost--;
		commands_unnamed(h->service, ROUTE_PIPELINED);
		return 0;
	}
	/* It is answered before its end was read. PostgreSQL's extended protocol allows that (Flush). */
	h->reply.times = h->open;
	h->reply.sampled = h->flow.server_port && h->open.start_ns;
	h->opened = false;
	if (h->protocol == COMMAND_HTTP1)
		command_row_is(h, pipeline_kind(h));
	else if (h->protocol == COMMAND_POSTGRES)
		command_row_is(h, command_kind(&h->in));
	else
		commands_unnamed(h->service, ROUTE_CUT);
	return 0;
}

/* Return whether the oldest request is one after whose reply the server leaves the order. */
static __always_inline bool command_will_leave(const struct command_conn *h)
{
	return h->asked != h->answered &&
	       h->queue[h->answered & (COMMANDS_QUEUED - 1)] & COMMAND_LEAVES;
}

/* A reply begins. */
__noinline int command_answers(struct command_conn *h, int said)
{
	struct service_slot *slot;
	__u32 kind;

	if (!h)
		return 0;
	h->reply = (struct command_reply){
		.first_write_ns = h->now, .last_write_ns = h->now, .begun_seq = command_seq(h) - 1};
	if (h->protocol == COMMAND_HTTP1)
		h->reply.begun_seq -= HTTP1_STATUS_LENGTH - 1;
	slot = slot_of(h->service);
	if (!slot || (said & COMMAND_PUSHES && !command_will_leave(h)))
		return 0;
	if (h->asked == h->answered && !h->lost && !h->opened) {
		SLOT_COUNT(slot, COUNTER_UNSOLICITED, 1);
		return 0;
	}
	kind = command_next(h);
	if (h->protocol == COMMAND_HTTP1)
		h->out.type |= pipeline_type(kind);
	else
		h->reply.leaves = !!(kind & COMMAND_LEAVES);
	h->index++;
	h->reply.counts = true;
	if (said & COMMAND_RENAMES && h->reply.named)
		command_row_is(h, command_kind(&h->out));
	if (h->reply.times.start_ns && h->reply.times.last_read_ns > h->now) {
		SLOT_COUNT(slot, COUNTER_INCONSISTENT, 1);
		h->reply.times.start_ns = 0;
		h->reply.times.accept_delay_ns = 0;
	}
	if (h->reply.sampled && config.ring_bytes)
		h->reply.pid = current_pid();
	command_count(h, slot);
	return 0;
}

__noinline int command_failed(struct command_conn *h)
{
	struct service_route *row;

	if (!h || !h->reply.counts)
		return 0;
	row = command_counts(h);
	if (row)
		COPY_ADD(row->responses[COMMAND_ERRORS], 1);
	return 0;
}

/* The reply goes on in a later write than that which began it: move its time in RESPOND, of the service and the row. */
__noinline int command_responds(struct command_conn *h)
{
	struct service_slot *slot = h ? slot_of(h->service) : NULL;
	struct command_reply *reply;
	struct service_route *row;
	__u64 old_ns, new_ns;
	__u32 bucket;

	if (!slot || !h->reply.counts || h->now <= h->reply.last_write_ns)
		return 0;
	reply = &h->reply;
	old_ns = reply->last_write_ns - reply->first_write_ns;
	reply->last_write_ns = h->now;
	new_ns = REREAD(&reply->last_write_ns) - reply->first_write_ns;
	note_last_message(slot, h->now);
	if (reply->first_write_ns < epoch_ns) {
		if (!reply->carried)
			SLOT_COUNT(slot, COUNTER_CARRIED, 1);
		reply->carried = true;
		return 0;
	}
	if (!reply->times.start_ns)
		return 0;
	bucket = reply->respond_bucket;
	row = command_counts(h);
	if (row)
		respond_move(&row->stages[STAGE_RESPOND - ROUTE_STAGE_FIRST], bucket, old_ns,
			     new_ns);
	reply->respond_bucket = respond_move(&slot->stages[STAGE_RESPOND], bucket, old_ns, new_ns);
	return 0;
}

/* Send the exchange whose reply is over, if it is sampled. */
static __always_inline void command_tell(const struct command_conn *h)
{
	const struct command_reply *reply = &h->reply;
	struct exchange_event *e;

	if (!config.ring_bytes || !reply->counts || !reply->sampled ||
	    exchange_hash(h->flow_hash, h->index - 1) >= sample_threshold)
		return;
	e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (!e) {
		sample_lost(h->service);
		return;
	}
	*e = (struct exchange_event){
		.flow = h->flow,
		.index = h->index - 1,
		.service = h->service,
		.pid = reply->pid,
		.bytes_in = reply->bytes_in,
		.bytes_out = reply->end_seq - reply->begun_seq,
		.arrival_ns = reply->times.start_ns - reply->times.accept_delay_ns,
		.accepted_ns = reply->times.accept_delay_ns ? reply->times.start_ns : 0,
		.first_read_ns = reply->times.first_read_ns,
		.last_read_ns = reply->times.last_read_ns,
		.first_write_ns = reply->first_write_ns,
		.last_write_ns = reply->last_write_ns,
	};
	bpf_ringbuf_submit(e, sample_wakeup());
}

/* A reply has ended. Return 0, or COMMAND_LEFT. */
__noinline int command_over(struct command_conn *h)
{
	struct service_slot *slot;

	if (!h)
		return 0;
	h->reply.end_seq = command_seq(h);
	command_responds(h);
	command_tell(h);
	if (!h->reply.counts || !h->reply.leaves)
		return 0;
	slot = slot_of(h->service);
	if (slot)
		count_atomic(slot, COUNTER_MULTIPLEXED, 1);
	return COMMAND_LEFT;
}

static long command_out_step(__u32 i, struct command_call *call)
{
	struct command_conn *h = call->h;
	__u32 at = h->at;
	int said;

	if (at >= h->have)
		return !command_fill(h, &h->out);
	if (h->out.skip && command_skip(h, &h->out))
		return 0;
	h->at = at + 1;
	at &= COMMANDS_CHUNK - 1;
	said = h->protocol == COMMAND_POSTGRES ? postgres_reply(&h->out, &h->in, h->chunk[at])
					       : resp_reply(&h->out, h->chunk[at]);
	if (!said)
		return 0;
	if (said & COMMAND_BEGINS)
		command_answers(h, said);
	if (said & COMMAND_FAILS)
		command_failed(h);
	if (said & COMMAND_ENDS)
		call->over = command_over(h);
	if (said & COMMAND_WRONG)
		call->over = ROUTE_STRANGE + 1;
	return !!call->over;
}

__noinline int commands_out(struct command_conn *h, struct conn *c)
{
	struct command_call call = {.h = h, .c = c};

	if (!h || !c)
		return 0;
	command_walk_begins(h);
	bpf_loop(COMMANDS_STEPS, command_out_step, &call, 0);
	return command_wrote(h, call.over);
}

/* ---- the end ---- */

static long command_end_step(__u32 i, struct command_call *call)
{
	struct command_conn *h = call->h;
	__u64 since_ns, now = h->now;

	if (h->asked == h->answered)
		return 1;
	command_take(h);
	since_ns = command_since(&h->reply.times);
	if (since_ns <= now)
		span_add(h->service, SPAN_ABANDONED, now - since_ns);
	return 0;
}

__noinline int commands_end(struct command_conn *h)
{
	struct command_call call = {.h = h};
	struct service_slot *slot = h ? slot_of(h->service) : NULL;

	if (!slot || h->over || h->ended)
		return 0;
	h->ended = true;
	if (h->out.left)
		command_tell(h);
	count_atomic(slot, COUNTER_UNANSWERED, h->asked - h->answered + h->lost);
	h->now = bpf_ktime_get_ns();
	bpf_loop(COMMANDS_QUEUED, command_end_step, &call, 0);
	return 0;
}

SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(commands_state, const struct sock *sk, int old, int new)
{
	struct command_conn *h;

	if (sk->sk_protocol != PROTO_TCP || !tcp_ends_writes(new))
		return 0;
	h = command_conn_of(sk);
	if (h)
		commands_end(h);
	return 0;
}
