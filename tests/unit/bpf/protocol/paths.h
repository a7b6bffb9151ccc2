/* SPDX-License-Identifier: MIT */
/* Texts of paths as tcp/http/route.bpf.c keeps them, in user space. */
#ifndef UNIT_PATHS_H
#define UNIT_PATHS_H

#include <string.h>

#include "routes.h"
#include "walker.h"

#include "../../../../bpf/protocol/hpack_request.h"

/* Of one connection. Nothing refers to an entry before the latest HPACK_ENTRIES. */
struct path_texts {
	struct route_path list[2 * HPACK_ENTRIES];
};

/* After a block whose path is known: return the text of that path; NULL: it is not kept. */
static inline const struct route_path *path_text_of(struct path_texts *texts,
						    const struct hpack_request *t)
{
	struct route_path *entry = &texts->list[t->field % (2 * HPACK_ENTRIES)];

	if (!t->indexed && t->field) {
		*entry = t->path;
		entry->turn = t->field;
	}
	if (!t->indexed)
		return &t->path;
	return entry->turn == t->field ? entry : NULL;
}

/* Return whether @kept is a text of the @length bytes at @path, and as much of them as can be kept. */
static inline int path_text_fits(const struct route_path *kept, const char *path, size_t length)
{
	const char *query = memchr(path, '?', length);
	size_t most = query ? (size_t)(query - path) : length;
	struct route_path plain = *kept;
	int cut;

	route_path_plain(&plain);
	cut = kept->length == ROUTE_PATH_BYTES || plain.length == ROUTE_PATH_BYTES;
	for (size_t i = 0; kept->huffman && i < most; i++)
		cut |= path[i] < ' ' || path[i] > '~';
	return !plain.huffman && plain.length <= most && !memcmp(plain.text, path, plain.length) &&
	       (plain.whole ? plain.length == most : cut);
}

#endif
