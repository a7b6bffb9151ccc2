/* SPDX-License-Identifier: MIT */
/* Arrays that grow one entry at a time, without a stored capacity. */
#ifndef SOJOURN_ARRAY_H
#define SOJOURN_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Return @array with room for an entry after @count, doubled at powers of two. NULL: no memory. */
static inline void *array_room(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return reallocarray(array, count ? 2 * count : 1, size);
}

/*
 * Make room for an entry after @count in @array, an lvalue that only grew this way. 0, or -ENOMEM
 * and the array is unchanged. The caller stores the entry and raises the count.
 */
#define ARRAY_GROW(array, count)                                               \
	__extension__({                                                        \
		void *grown_ = array_room((array), (count), sizeof(*(array))); \
		if (grown_)                                                    \
			(array) = grown_;                                      \
		grown_ ? 0 : -ENOMEM;                                          \
	})

/*
 * Append a zeroed entry to @array, an lvalue however it was made, and raise its @count. Return the
 * entry; NULL: no memory, and both are unchanged. Entries may move.
 */
#define ARRAY_APPEND(array, count)                                                              \
	__extension__({                                                                         \
		__typeof__(array) entry_ = reallocarray((array), (count) + 1, sizeof(*entry_)); \
		if (entry_) {                                                                   \
			(array) = entry_;                                                       \
			entry_ += (count)++;                                                    \
			memset(entry_, 0, sizeof(*entry_));                                     \
		}                                                                               \
		entry_;                                                                         \
	})

#endif
