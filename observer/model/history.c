// SPDX-License-Identifier: MIT
/*
 * The recent past of each service. A point has some ninety numbers, most of them zero. So points are kept as bytes
 * (packed.c). An idle service has one point for all its idle time. Points that are too old
 * are added to a first point, so that counts always sum to those of the period.
 */
#include "history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/kept/packed.h"
#include "sojourn/array.h"
#include "sojourn/clock.h"
#include "sojourn/run_sum.h"
#include "sojourn/series.h"

/* A point is treated as an array of numbers. The bits of `known` are one of them. */
#define WORDS	   (sizeof(struct run_point) / sizeof(uint64_t))
#define KNOWN_WORD (offsetof(struct run_point, known) / sizeof(uint64_t))

_Static_assert(sizeof(struct run_point) % sizeof(uint64_t) == 0 &&
		       offsetof(struct run_point, known) % sizeof(uint64_t) == 0 &&
		       offsetof(struct run_point, accepted) == (KNOWN_WORD + 1) * sizeof(uint64_t),
	       "a point consists of whole numbers");

#define POINT_BYTES PACKED_MOST(WORDS)

/* Points of one kind, the oldest first. */
struct track {
	struct run_point before; /* sum of points no longer kept; no duration: none */
	uint8_t *bytes;
	size_t begin, end, capacity;
	struct run_point last; /* not among the bytes yet; without a duration: none */
};

struct past {
	char protocol[8];
	uint16_t port;
	uint32_t netns;
	uint64_t turn;
	struct track tracks[HISTORY_KINDS];
};

struct history {
	size_t bytes; /* at most */
	struct past *list;
	size_t count;
};

static const uint64_t kept_ns[HISTORY_KINDS] = {
	[HISTORY_FINE] = HISTORY_FINE_NS,
	[HISTORY_COARSE] = HISTORY_COARSE_NS,
};

int history_new(size_t bytes, struct history **ret_history)
{
	struct history *history = calloc(1, sizeof(*history));

	if (!history)
		return -ENOMEM;
	history->bytes = bytes;
	*ret_history = history;
	return 0;
}

static void past_done(struct past *past)
{
	for (size_t i = 0; i < HISTORY_KINDS; i++)
		free(past->tracks[i].bytes);
}

void history_free(struct history *history)
{
	if (!history)
		return;
	for (size_t i = 0; i < history->count; i++)
		past_done(&history->list[i]);
	free(history->list);
	free(history);
}

/* ---- points as bytes ---- */

static void to_words(const struct run_point *point, uint64_t words[static WORDS])
{
	memcpy(words, point, sizeof(*point));
	words[KNOWN_WORD] = point->known; /* without the padding after it */
}

static struct run_point from_words(const uint64_t words[static WORDS])
{
	struct run_point point;

	memcpy(&point, words, sizeof(point));
	point.known = (uint32_t)words[KNOWN_WORD];
	return point;
}

static size_t encode(const struct run_point *point, uint8_t ret_bytes[static POINT_BYTES])
{
	uint64_t words[WORDS];

	to_words(point, words);
	return packed_encode(words, WORDS, ret_bytes);
}

/* Return where the next one begins. */
static const uint8_t *decode(const uint8_t *at, struct run_point *ret_point)
{
	uint64_t words[WORDS];

	at = packed_decode(at, words, WORDS);
	*ret_point = from_words(words);
	return at;
}

/* ---- a track ---- */

static uint64_t end_of(const struct run_point *point)
{
	return point->begin_ns + point->duration_ns;
}

static void join(struct run_point *sum, const struct run_point *later)
{
	if (sum->duration_ns)
		run_point_join(sum, later);
	else
		*sum = *later;
}

static int make_room(struct track *track, size_t size)
{
	size_t used = track->end - track->begin, capacity = used + used / 2 + 4096;
	uint8_t *bytes;

	if (track->end + size <= track->capacity)
		return 0;
	if (track->begin > used && used + size <= track->capacity) {
		memcpy(track->bytes, track->bytes + track->begin, used);
	} else {
		bytes = malloc(capacity);
		if (!bytes)
			return -ENOMEM;
		if (used)
			memcpy(bytes, track->bytes + track->begin, used);
		free(track->bytes);
		track->bytes = bytes;
		track->capacity = capacity;
	}
	track->begin = 0;
	track->end = used;
	return 0;
}

_Static_assert(POINT_BYTES <= 4096, "new room is enough for a point");

static int keep(struct track *track, const struct run_point *point)
{
	uint8_t bytes[POINT_BYTES];
	size_t size = encode(point, bytes);

	if (make_room(track, size))
		return -ENOMEM;
	memcpy(track->bytes + track->end, bytes, size);
	track->end += size;
	return 0;
}

/* Drop the oldest point that is kept as bytes. */
static void drop(struct track *track)
{
	struct run_point first;
	const uint8_t *next = decode(track->bytes + track->begin, &first);

	track->begin = (size_t)(next - track->bytes);
	join(&track->before, &first);
}

static void drop_old(struct track *track, uint64_t from_ns)
{
	struct run_point first;

	while (track->end > track->begin) {
		decode(track->bytes + track->begin, &first);
		if (end_of(&first) > from_ns)
			return;
		drop(track);
	}
}

/*
 * Return whether nothing happened in @last and in @point, and the state is the same. Then joining them changes only
 * the duration.
 */
static bool is_quiet(const struct run_point *last, const struct run_point *point)
{
	uint64_t a[WORDS], b[WORDS], sum[WORDS];
	struct run_point both = *last;

	if (!last->duration_ns)
		return false;
	run_point_join(&both, point);
	to_words(last, a);
	to_words(point, b);
	to_words(&both, sum);
	return !memcmp(&a[KNOWN_WORD], &b[KNOWN_WORD], (WORDS - KNOWN_WORD) * sizeof(*a)) &&
	       !memcmp(&a[KNOWN_WORD], &sum[KNOWN_WORD], (WORDS - KNOWN_WORD) * sizeof(*a));
}

static int push(struct track *track, const struct run_point *point)
{
	if (is_quiet(&track->last, point)) {
		run_point_join(&track->last, point);
		return 0;
	}
	if (track->last.duration_ns && keep(track, &track->last))
		return -ENOMEM;
	track->last = *point;
	return 0;
}

/* ---- services ---- */

static bool is_of(const struct past *past, const struct run_service *service)
{
	return past->port == service->port && past->netns == service->netns &&
	       past->turn == service->turn && !strcmp(past->protocol, service->protocol);
}

static struct past *find(const struct history *history, const struct run_service *like)
{
	for (size_t i = 0; i < history->count; i++)
		if (is_of(&history->list[i], like))
			return &history->list[i];
	return NULL;
}

static struct past *add(struct history *history, const struct run_service *like)
{
	struct past *past;

	if (ARRAY_GROW(history->list, history->count) < 0)
		return NULL;
	past = &history->list[history->count++];
	*past = (struct past){.port = like->port, .netns = like->netns, .turn = like->turn};
	memcpy(past->protocol, like->protocol, sizeof(past->protocol));
	return past;
}

static bool is_read(const struct run *now, const struct past *past)
{
	for (size_t i = 0; i < now->service_count; i++)
		if (is_of(past, &now->services[i]))
			return true;
	return false;
}

/* A service that is no longer observed has no past. If it comes back, its counts restart at zero. */
static void drop_gone(struct history *history, const struct run *now)
{
	size_t kept = 0;

	for (size_t i = 0; i < history->count; i++) {
		if (is_read(now, &history->list[i]))
			history->list[kept++] = history->list[i];
		else
			past_done(&history->list[i]);
	}
	history->count = kept;
}

static struct track *fullest(const struct history *history, size_t *ret_used)
{
	struct track *fullest = NULL;
	size_t most = 0;

	*ret_used = 0;
	for (size_t i = 0; i < history->count * HISTORY_KINDS; i++) {
		struct track *track = &history->list[i / HISTORY_KINDS].tracks[i % HISTORY_KINDS];
		size_t used = track->end - track->begin;

		*ret_used += used;
		if (used > most) {
			most = used;
			fullest = track;
		}
	}
	return fullest;
}

static void keep_within_bytes(struct history *history)
{
	size_t used;
	struct track *track = fullest(history, &used);

	for (; track && used > history->bytes; track = fullest(history, &used))
		drop(track);
}

/* ---- points ---- */

static struct run_point point_since(const struct run *base, const struct run *last,
				    const struct run *now, const struct run_service *service)
{
	struct run_point point;

	run_point_between(run_find_service(last, service), service, &point);
	point.begin_ns = last->duration_ns - base->duration_ns;
	point.duration_ns = now->duration_ns - last->duration_ns;
	return point;
}

/* Drop the whole past of a service: without one point its counts would not add up. */
static void forget(struct history *history, struct past *past)
{
	past_done(past);
	*past = history->list[--history->count];
}

void history_point(struct history *history, enum history_kind kind, const struct run *base,
		   const struct run *last, const struct run *now)
{
	uint64_t now_ns = now->duration_ns - base->duration_ns;

	drop_gone(history, now);
	for (size_t i = 0; i < now->service_count; i++) {
		struct run_point point = point_since(base, last, now, &now->services[i]);
		struct past *past = find(history, &now->services[i]);

		if (!past)
			past = add(history, &now->services[i]);
		if (past && push(&past->tracks[kind], &point))
			forget(history, past);
		else if (past && now_ns > kept_ns[kind])
			drop_old(&past->tracks[kind], now_ns - kept_ns[kind]);
	}
	keep_within_bytes(history);
}

/* ---- documents ---- */

enum history_kind history_kind_of(const struct snapshot_past *past)
{
	return past->step_s * NSEC_PER_SEC < HISTORY_SLOT_NS &&
			       past->last_s * NSEC_PER_SEC <= HISTORY_FINE_NS
		       ? HISTORY_FINE
		       : HISTORY_COARSE;
}

/* The requested part of a past. */
struct extract {
	struct run_series *series;
	uint64_t from_ns; /* earlier points are joined to one */
	uint64_t step_ns; /* 0: points as they are */
};

static bool is_joined(const struct extract *extract, const struct run_point *last,
		      const struct run_point *point)
{
	if (end_of(point) <= extract->from_ns)
		return true;
	return extract->step_ns && end_of(last) > extract->from_ns &&
	       last->begin_ns / extract->step_ns == point->begin_ns / extract->step_ns;
}

static int extract_point(struct extract *extract, const struct run_point *point)
{
	struct run_series *series = extract->series;
	struct run_point *last = series->count ? &series->points[series->count - 1] : NULL;

	if (!point->duration_ns)
		return 0;
	if (last && is_joined(extract, last, point)) {
		run_point_join(last, point);
		return 0;
	}
	if (ARRAY_GROW(series->points, series->count) < 0)
		return -ENOMEM;
	series->points[series->count++] = *point;
	return 0;
}

static int extract_track(struct extract *extract, const struct track *track)
{
	size_t at = track->begin;
	struct run_point point;
	int r = extract_point(extract, &track->before);

	while (!r && at < track->end) {
		at = (size_t)(decode(track->bytes + at, &point) - track->bytes);
		r = extract_point(extract, &point);
	}
	return r ? r : extract_point(extract, &track->last);
}

/* A service that is new now has only the time since @last. */
static int extract_service(const struct history *history, enum history_kind kind,
			   struct extract *extract, const struct run_point *open,
			   const struct run_service *service)
{
	const struct past *past = find(history, service);
	int r = past ? extract_track(extract, &past->tracks[kind]) : 0;

	return r ? r : extract_point(extract, open);
}

/* Return the duration to which points are joined, so that no document has too many. 0: they stay as they are. */
static uint64_t step_ns(const struct snapshot_past *past, enum history_kind kind, size_t services)
{
	uint64_t native_s = kind == HISTORY_FINE ? 1 : HISTORY_SLOT_NS / NSEC_PER_SEC;
	uint64_t least_s = past->last_s * services / HISTORY_POINTS + 1;
	uint64_t step_s = past->step_s > least_s ? past->step_s : least_s;

	return step_s > native_s ? step_s * NSEC_PER_SEC : 0;
}

static bool is_asked_for(const struct snapshot_past *past, const struct run_service *service)
{
	return !past->port || past->port == service->port;
}

int history_read(const struct history *history, const struct snapshot_past *past,
		 const struct run *base, const struct run *last, struct run *now)
{
	uint64_t now_ns = now->duration_ns - base->duration_ns, last_ns;
	enum history_kind kind = history_kind_of(past);
	size_t services = 0;

	last_ns = past->last_s * NSEC_PER_SEC;
	for (size_t i = 0; i < now->service_count; i++)
		services += is_asked_for(past, &now->services[i]);
	for (size_t i = 0; i < now->service_count; i++) {
		struct run_service *service = &now->services[i];
		struct run_point open = point_since(base, last, now, service);
		struct extract extract = {
			.from_ns = now_ns > last_ns ? now_ns - last_ns : 0,
			.step_ns = step_ns(past, kind, services),
		};

		if (!is_asked_for(past, service))
			continue;
		extract.series = service->series = run_series_new();
		if (!extract.series || extract_service(history, kind, &extract, &open, service))
			return -ENOMEM;
	}
	return 0;
}
