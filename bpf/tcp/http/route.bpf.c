// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/* Finds the routes of requests, and counts their responses. See route.h. */
#include "route.h"

#include "tcp/connection/batch.h"
#include "tcp/connection/clear.h"

/* Limits of one read: bytes of a line, and those in which further requests are looked for. */
#define ROUTE_LINE_MOST 512
#define ROUTE_MORE_MOST 2048

/* Get more bytes into the chunk, which is used up. Return whether there may be some. */
static __always_inline bool look_fill(struct route_look *l)
{
	__u64 room = l->left;

	l->at = 0;
	l->have = 0;
	if (!room || !bytes_more(&l->bytes))
		return false;
	if (room > l->bytes.left)
		room = l->bytes.left;
	if (l->skip) {
		if (room > l->skip)
			room = l->skip;
		l->skip -= room;
	} else {
		if (room > ROUTE_CHUNK)
			room = ROUTE_CHUNK;
		barrier_var(room);
		if (room > ROUTE_CHUNK || bpf_probe_read_user(l->chunk, room, (void *)l->bytes.at))
			return false;
		l->have = room;
	}
	bytes_pass(&l->bytes, room);
	l->left -= room;
	return true;
}

/* Keep the byte that was the next one of the path. @before: bytes of the path before it. */
static __always_inline void look_keep(struct route_look *l, __u32 before, __u8 byte)
{
	if (l->line.path.places == before)
		return;
	barrier_var(before);
	if (before >= ROUTE_PATH_BYTES)
		return;
	/* The first one is "/" even if the target lacks it. */
	l->path.text[before] = before ? byte : '/';
}

/* The context of the loops is on the stack. */
static long line_step(__u32 i, struct route_look **look)
{
	struct route_look *l = *look;
	__u32 at = l->at, before = l->line.path.places;
	__u8 byte;

	if (at >= l->have)
		return !look_fill(l);
	byte = l->chunk[at & (ROUTE_CHUNK - 1)];
	request_byte(&l->line, byte);
	if (config.propose)
		look_keep(l, before, byte);
	l->at = at + 1;
	return l->line.stage >= REQUEST_OVER;
}

static __always_inline bool has_newline(__u64 bytes)
{
	bytes ^= 0x0a0a0a0a0a0a0a0aULL;
	return (bytes - 0x0101010101010101ULL) & ~bytes & 0x8080808080808080ULL;
}

/* Pass 8 bytes at once, if no line ends in them or in the 4 before: they complete no empty line's method. */
static __always_inline bool more_pass(struct route_look *l, __u32 at)
{
	__u64 bytes;

	if (at + 8 > l->have || at > ROUTE_CHUNK - 8)
		return false;
	bytes = *(__u64 *)(l->chunk + at);
	if (has_newline(bytes) || has_newline(l->window | ~0ULL << 32))
		return false;
	l->window = __builtin_bswap64(bytes);
	l->at = at + 8;
	return true;
}

/* Look for the start of another request: an empty line, and a method after it. */
static long more_step(__u32 i, struct route_look **look)
{
	struct route_look *l = *look;
	__u32 at = l->at;

	if (at >= l->have)
		return !look_fill(l);
	if (more_pass(l, at))
		return 0;
	l->window = l->window << 8 | l->chunk[at & (ROUTE_CHUNK - 1)];
	l->at = at + 1;
	if (l->window >> 32 == BATCH_BLANK_LINE)
		l->more = batch_is_method(l->window);
	return !!l->more;
}

__noinline int route_in(struct route_look *look, int first, int more)
{
	struct route_look *l = look;

	if (!l)
		return ROUTE_UNSEEN;
	if (first)
		__builtin_memset(&l->line, 0, sizeof(l->line));
	l->have = l->at = l->more = 0;
	l->window = 0;
	bpf_loop(ROUTE_LINE_MOST, line_step, &l, 0);
	if (more && look->line.stage == REQUEST_OVER)
		bpf_loop(ROUTE_MORE_MOST, more_step, &l, 0);
	if (look->more)
		return ROUTE_PIPELINED;
	if (look->line.stage == REQUEST_OVER)
		return ROUTE_FIRST + route_row_of(look->line.method.misses | look->line.path.misses,
						  config.route_rows - 1);
	if (look->line.stage == REQUEST_STRANGE || look->at < look->have) /* it is too long */
		return ROUTE_STRANGE;
	return look->left ? ROUTE_UNSEEN : ROUTE_CUT;
}

/* Return whether @route is known, and none of those given. */
static __always_inline bool route_is_other(__u32 route)
{
	return route == ROUTE_FIRST + config.route_rows - 1;
}

/*
 * Return the place in the sample for the path of another one of @requests, or ROUTE_PATHS: it is left out.
 */
static __always_inline __u32 path_place(__u64 requests)
{
	if (requests < ROUTE_PATHS)
		return requests;
	if (requests >= ~0U)
		requests = ~0U - 1;
	return (bpf_get_prandom_u32() * (requests + 1)) >> 32;
}

static __always_inline struct route_paths *route_paths_of(__u32 service)
{
	__u32 index = service_index(service);

	return slot_of(service) ? bpf_map_lookup_elem(&route_paths, &index) : NULL;
}

/* Put the path of a request without a route into the sample of @service. */
__noinline int route_sample(const struct route_path *from, __u32 service)
{
	struct route_paths *paths = route_paths_of(service);
	struct route_path *path;
	__u32 turn, place;

	if (!from || !paths)
		return 0;
	place = path_place(__sync_fetch_and_add(&paths->requests, 1));
	if (place >= ROUTE_PATHS)
		return 0;
	barrier_var(place); /* or the mask is left out, and the verifier sees no bound */
	path = &paths->list[place & (ROUTE_PATHS - 1)];
	turn = PLAIN(&path->turn);
	/* Another CPU may be writing it: then that path stays. */
	if (turn & 1 || __sync_val_compare_and_swap(&path->turn, turn, turn + 1) != turn)
		return 0;
	path->length = from->length;
	path->whole = from->whole;
	path->huffman = from->huffman;
	__builtin_memcpy(path->text, from->text, ROUTE_PATH_BYTES);
	__sync_fetch_and_add(&path->turn, 1);
	return 0;
}

__noinline int route_sample_line(struct route_look *look, __u32 route, __u32 service)
{
	__u32 length;

	/* A target without a path has no route that could be proposed. */
	if (!look || !route_is_other(route) || !look->line.path.places)
		return 0;
	length = look->line.path.places;
	look->path.whole = length <= ROUTE_PATH_BYTES;
	look->path.length = length < ROUTE_PATH_BYTES ? length : ROUTE_PATH_BYTES;
	return route_sample(&look->path, service);
}

__noinline int route_read(struct route_look *look, struct conn *c, __u32 count, int first, int more)
{
	if (!look || !c)
		return 0;
	look->left = count;
	look->skip = c->route_skip;
	bytes_begin(&look->bytes, count);
	c->route = route_in(look, first, more);
	if (config.propose)
		route_sample_line(look, c->route, c->service);
	return 0;
}

/* A path begins with "/": in Huffman's code with the bits 011000. */
static __always_inline bool route_is_path(const struct route_path *path)
{
	return path->length && (path->huffman ? path->text[0] >> 2 == 0x18 : path->text[0] == '/');
}

/*
 * A block of the client is complete. Keep the text of a path that has entered the table. If it has begun a request
 * with this @route, which is none of those given, put its path into the sample.
 */
__noinline int route_block_path(struct http2_conn *h, __u32 route)
{
	struct route_path path, *found = &path;
	struct route_paths *paths;
	__u64 key;

	if (!h)
		return 0;
	key = stream_key(h, h->requests.field);
	path = h->requests.path;
	if (h->requests.indexed)
		found = bpf_map_lookup_elem(&route_texts, &key);
	else if (h->requests.field)
		bpf_map_update_elem(&route_texts, &key, &path, BPF_ANY);
	if (route == ROUTE_HTTP2 || (route_is_other(route) && !found)) {
		paths = route_paths_of(h->service);
		if (paths)
			__sync_fetch_and_add(&paths->unknown, 1);
		return 0;
	}
	if (!found || !route_is_other(route) || !(h->requests.has & HPACK_HAS(HPACK_PATH)))
		return 0;
	path = *found;
	return route_is_path(&path) ? route_sample(&path, h->service) : 0;
}

__noinline int route_in_block(struct http2_conn *h, __u32 said, __u64 end)
{
	__u32 route = ROUTE_CUT;
	struct stream *st;

	if (!h || !http2_is_block(&h->in.side))
		return 0;
	hpack_request_frame(&h->in.side, &h->requests, said, end);
	if (!(said & HTTP2_ENDS) || h->in.side.block)
		return 0;
	st = stream_of(h, h->in.side.stream);
	/* Trailers come after the block that has set it. */
	if (st && st->route == ROUTE_CUT && !(st->flags & STREAM_RESPONDING))
		st->route = route = hpack_request_route(&h->requests, config.route_rows - 1);
	if (config.propose)
		route_block_path(h, route);
	return 0;
}

/* ---- counts ---- */

/* Count a response of @service whose request's route is not known. */
static __always_inline void route_unknown(__u32 service, __u32 reason)
{
	__u32 index = copy_of(service);
	struct service_statuses *all = bpf_map_lookup_elem(&statuses, &index);

	barrier_var(reason); /* or the verifier does not see its bound */
	if (all && reason < ROUTE_UNKNOWN_COUNT && slot_of(service))
		COPY_ADD(all->routeless[reason], 1);
}

__noinline int route_uncounted(__u32 service, __u32 reason)
{
	route_unknown(service, reason);
	return 0;
}

static __always_inline struct service_route *route_row(__u32 service, __u32 route)
{
	__u32 index = copy_of(service);

	if (route < ROUTE_FIRST || !slot_of(service))
		return NULL;
	index = index * config.route_rows + route - ROUTE_FIRST;
	return bpf_map_lookup_elem(&route_rows, &index);
}

static __always_inline void route_stage(struct service_route *row, enum stage stage, __u64 from,
					__u64 to)
{
	if (to >= from)
		stage_add(&row->stages[stage - ROUTE_STAGE_FIRST], to - from);
}

/* Count a response with its class of status. NULL: it has no times, or no route that is known. */
static __always_inline struct service_route *route_counted(__u32 service, __u32 route, __u32 status,
							   __u64 start_ns)
{
	__u32 class = status / 100;
	struct service_route *row;

	if (route < ROUTE_FIRST) {
		route_unknown(service, route);
		return NULL;
	}
	row = route_row(service, route);
	if (!row)
		return NULL;
	barrier_var(class);
	COPY_ADD(row->responses[class < ROUTE_CLASSES ? class : 0], 1);
	return start_ns ? row : NULL;
}

/* Encrypted bytes are no line. kTLS shows plain ones. */
static __always_inline __u32 conn_route(const struct conn *c)
{
	if (clear_is_needed(c) && !config.tls)
		return ROUTE_TLS;
	return c->marks & MARK_UNSEEN ? ROUTE_UNSEEN : c->route;
}

/* Count the times of an exchange or stream, whose names are the same. */
#define ROUTE_STAGES(row, of)                                                                     \
	do {                                                                                      \
		route_stage(row, STAGE_SOCKET_QUEUE, (of)->start_ns, (of)->first_read_ns);        \
		if ((of)->last_read_ns != (of)->first_read_ns)                                    \
			route_stage(row, STAGE_RECEIVE, (of)->first_read_ns, (of)->last_read_ns); \
		route_stage(row, STAGE_SERVICE, (of)->last_read_ns, (of)->first_write_ns);        \
	} while (0)

__noinline int route_answered(struct conn *c, int status)
{
	struct service_route *row;

	if (!c || (!status && !(c->marks & (MARK_HTTP1 | MARK_TLS))))
		return 0;
	if (config.tls && clear_is_needed(c))
		c->route = clear_route(c);
	row = route_counted(c->service, conn_route(c), status, c->start_ns);
	if (row)
		ROUTE_STAGES(row, c);
	return 0;
}

__noinline int route_stream_answered(const struct stream *st, __u32 service, __u32 status)
{
	struct service_route *row;

	if (!st)
		return 0;
	row = route_counted(service, st->route, status, st->start_ns);
	if (row)
		ROUTE_STAGES(row, st);
	return 0;
}

#define ROUTE_RESPONDING(row, of, now)                                                        \
	respond_move(&(row)->stages[STAGE_RESPOND - ROUTE_STAGE_FIRST], (of)->respond_bucket, \
		     (of)->last_write_ns - (of)->first_write_ns, (now) - (of)->first_write_ns)

__noinline int route_responding(const struct conn *c, __u64 now)
{
	struct service_route *row;

	if (!c || now <= c->last_write_ns || c->first_write_ns < epoch_ns || !c->start_ns)
		return 0;
	row = route_row(c->service, c->route);
	if (row)
		ROUTE_RESPONDING(row, c, now);
	return 0;
}

__noinline int route_stream_responding(const struct stream *st, __u32 service, __u64 now)
{
	struct service_route *row;

	if (!st || now <= st->last_write_ns || st->first_write_ns < epoch_ns || !st->start_ns)
		return 0;
	row = route_row(service, st->route);
	if (row)
		ROUTE_RESPONDING(row, st, now);
	return 0;
}
