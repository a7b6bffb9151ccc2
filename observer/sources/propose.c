// SPDX-License-Identifier: MIT
/* Proposes routes for a sample of paths; see propose.h. */
#include "propose.h"
#include "sojourn/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A proposal counts for at least this share of the paths. */
#define SHARE_LEAST 20U /* a twentieth */
#define FEWEST	    4U
/* Longer words, and parts with more digits, look like identifiers. */
#define WORD_LONGEST 24U
#define DIGITS_MOST  2U

/* The start of a path, of whole parts that are no identifiers: "/api/users/" of "/api/users/17?x". */
struct prefix {
	const char *text;
	size_t length;
	bool whole; /* it is the path itself */
};

struct proposals {
	struct route_path paths[ROUTE_PATHS]; /* sorted */
	size_t count;
	size_t least; /* paths of a proposal */
	struct prefix list[ROUTE_PATHS];
	size_t chosen;
};

/* Only letters that a shell and a terminal take as they are, even without quotes. */
static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("-._", byte));
}

/*
 * Return whether a part of a path may be in a proposal. "v1", "oauth2" and services of gRPC with their packages may, "17",
 * UUIDs and long words may not.
 */
static bool is_word(const char *part, size_t length)
{
	size_t digits = 0, word = 0;

	for (size_t i = 0; i < length; i++) {
		word = part[i] == '.' ? 0 : word + 1;
		if (!is_plain(part[i]) || word > WORD_LONGEST)
			return false;
		digits += part[i] >= '0' && part[i] <= '9';
	}
	return length && digits <= DIGITS_MOST && digits < length;
}

static const char *text_of(const struct route_path *path)
{
	return (const char *)path->text;
}

/* Return the length of @path up to the slash after the part that begins at @from, or 0: none follows. */
static size_t part_end(const struct route_path *path, size_t from)
{
	const char *slash = memchr(text_of(path) + from, '/', path->length - from);

	return slash ? (size_t)(slash - text_of(path)) + 1 : 0;
}

static bool begins_with(const struct route_path *path, const struct prefix *prefix)
{
	if (prefix->whole)
		return path->whole && path->length == prefix->length &&
		       !memcmp(path->text, prefix->text, prefix->length);
	return path->length >= prefix->length && !memcmp(path->text, prefix->text, prefix->length);
}

static size_t count_paths(const struct proposals *p, const struct prefix *prefix)
{
	size_t count = 0;

	for (size_t i = 0; i < p->count; i++)
		count += begins_with(&p->paths[i], prefix);
	return count;
}

static bool is_chosen(const struct proposals *p, const struct prefix *prefix)
{
	for (size_t i = 0; i < p->chosen; i++)
		if (p->list[i].length == prefix->length && p->list[i].whole == prefix->whole &&
		    !memcmp(p->list[i].text, prefix->text, prefix->length))
			return true;
	return false;
}

static void choose(struct proposals *p, const struct prefix *prefix)
{
	if (p->chosen < ROUTE_PATHS && !is_chosen(p, prefix) && count_paths(p, prefix) >= p->least)
		p->list[p->chosen++] = *prefix;
}

/* Return whether both have the same part at @from, and end after it or go on alike. */
static bool is_same_part(const struct route_path *a, const struct route_path *b, size_t from)
{
	size_t end = part_end(a, from), other = part_end(b, from);

	if (!end && !other)
		return a->length == b->length && !memcmp(a->text, b->text, a->length);
	return end == other && !memcmp(a->text, b->text, end);
}

/*
 * Return whether enough of the paths that begin with @before go on as few frequent ones do. If most of them differ,
 * their next part is likely a name: "/users/alice".
 */
static bool goes_on(const struct proposals *p, const struct prefix *before, size_t from)
{
	size_t all = 0, frequent = 0, run = 0;

	/* Equal parts follow each other. */
	for (size_t i = 0; i <= p->count; i++) {
		const struct route_path *path = i < p->count ? &p->paths[i] : NULL;
		bool inside = path && begins_with(path, before) && path->length > from;

		if (run && (!inside || !is_same_part(&p->paths[i - 1], path, from))) {
			frequent += run >= p->least ? run : 0;
			run = 0;
		}
		all += inside;
		run += inside;
	}
	return 2 * frequent > all;
}

/* Choose the longest prefix of @path that is frequent enough, and the whole path if that is. */
static void choose_for(struct proposals *p, const struct route_path *path)
{
	struct prefix found = {text_of(path), 1, false}, next = found;
	size_t from = 1, end;

	while (from < path->length && (end = part_end(path, from)) != 0) {
		next.length = end;
		if (!is_word(text_of(path) + from, end - 1 - from) ||
		    count_paths(p, &next) < p->least || (from > 1 && !goes_on(p, &found, from)))
			break;
		found = next;
		from = end;
	}
	next = (struct prefix){text_of(path), path->length, true};
	if (path->whole && count_paths(p, &next) >= p->least &&
	    (from == path->length || (!memchr(text_of(path) + from, '/', path->length - from) &&
				      is_word(text_of(path) + from, path->length - from) &&
				      (from == 1 || goes_on(p, &found, from)))))
		choose(p, &next);
	else if (found.length > 1)
		choose(p, &found);
}

/* ---- shares ---- */

/* Return the index of the proposal that would count @path: the longest one. */
static size_t counting(const struct proposals *p, const struct route_path *path)
{
	size_t best = p->chosen;

	for (size_t i = 0; i < p->chosen; i++)
		if (begins_with(path, &p->list[i]) &&
		    (best == p->chosen || p->list[i].length + p->list[i].whole >
						  p->list[best].length + p->list[best].whole))
			best = i;
	return best;
}

static void count_each(const struct proposals *p, size_t *ret_counts)
{
	memset(ret_counts, 0, (p->chosen + 1) * sizeof(*ret_counts));
	for (size_t i = 0; i < p->count; i++)
		ret_counts[counting(p, &p->paths[i])]++;
}

/* Remove proposals that others leave too little to, the least one first, until @most are left. */
static void drop(struct proposals *p, size_t most, size_t *counts)
{
	for (;;) {
		size_t least = 0;

		count_each(p, counts);
		for (size_t i = 1; i < p->chosen; i++)
			if (counts[i] < counts[least])
				least = i;
		if (!p->chosen || (p->chosen <= most && counts[least] >= p->least))
			return;
		p->list[least] = p->list[--p->chosen];
	}
}

static int compare_proposals(const void *a, const void *b)
{
	const struct run_proposal *one = a, *other = b;

	if (one->paths != other->paths)
		return one->paths < other->paths ? 1 : -1;
	return strcmp(one->route, other->route);
}

static int compare_paths(const void *a, const void *b)
{
	const struct route_path *one = a, *other = b;
	size_t length = one->length < other->length ? one->length : other->length;
	int order = memcmp(one->text, other->text, length);

	return order ? order : one->length - other->length;
}

int propose_routes(const struct route_path *paths, size_t count, struct run_proposed *ret_proposed)
{
	struct proposals p = {.count = count};
	size_t counts[ROUTE_PATHS + 1];

	p.least = (count + SHARE_LEAST - 1) / SHARE_LEAST;
	if (count < PROPOSE_PATHS_LEAST || count > ROUTE_PATHS)
		return 0;
	p.least = p.least < FEWEST ? FEWEST : p.least;
	memcpy(p.paths, paths, count * sizeof(*paths));
	qsort(p.paths, count, sizeof(*p.paths), compare_paths);
	for (size_t i = 0; i < count; i++)
		choose_for(&p, &p.paths[i]);
	drop(&p, RUN_PROPOSALS_MOST, counts);
	if (!p.chosen)
		return 0;
	ret_proposed->list = calloc(p.chosen, sizeof(*ret_proposed->list));
	if (!ret_proposed->list)
		return -ENOMEM;
	ret_proposed->count = p.chosen;
	for (size_t i = 0; i < p.chosen; i++) {
		struct run_proposal *proposal = &ret_proposed->list[i];

		proposal->paths = counts[i];
		proposal->route = text_format("%.*s%s", (int)p.list[i].length, p.list[i].text,
					      p.list[i].whole ? "" : "*");
		if (!proposal->route)
			return -ENOMEM;
	}
	qsort(ret_proposed->list, p.chosen, sizeof(*ret_proposed->list), compare_proposals);
	return 0;
}
