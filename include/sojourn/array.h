/* SPDX-License-Identifier: MIT */
/* Arrays that grow one entry at a time, without a capacity beside their count. */
#ifndef SOJOURN_ARRAY_H
#define SOJOURN_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* @array with room for an entry after @count: it doubles when the count is a power of two. NULL: no memory. */
static inline void *array_room(void *array, size_t count, size_t size)
{
	if (count & (count - 1))
		return array;
	return reallocarray(array, count ? 2 * count : 1, size);
}

/*
 * Make room in @array, an lvalue whose only entries were added so, for one after its @count. 0, or -ENOMEM
 * and the array is as it was. The caller stores the entry and raises the count.
 */
#define ARRAY_GROW(array, count)                                               \
	__extension__({                                                        \
		void *grown_ = array_room((array), (count), sizeof(*(array))); \
		if (grown_)                                                    \
			(array) = grown_;                                      \
		grown_ ? 0 : -ENOMEM;                                          \
	})

/*
 * Append a zeroed entry to @array, an lvalue however it was made, and raise its @count. The entry; NULL: no
 * memory, and both are as they were. Entries of one array may move.
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
