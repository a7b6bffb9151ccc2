/* SPDX-License-Identifier: MIT */
/*
 * Lifetimes visible in the declaration: `autofree char *name = NULL;` is freed at the end of its
 * scope, unless TAKE_PTR / TAKE_FD moves it out.
 */
#ifndef SOJOURN_CLEANUP_H
#define SOJOURN_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Defines cleanup_@fn for `CLEANUP(cleanup_@fn) type var`; @fn must accept NULL. */
#define DEFINE_CLEANUP(type, fn)                   \
	static inline void cleanup_##fn(type *var) \
	{                                          \
		if (*var)                          \
			fn(*var);                  \
	}

static inline void cleanup_free(void *var)
{
	free(*(void **)var);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define autofree     CLEANUP(cleanup_free)
#define autoclose    CLEANUP(cleanup_close)
#define autofclose   CLEANUP(cleanup_fclose)
#define autoclosedir CLEANUP(cleanup_closedir)

#define TAKE_PTR(ptr)                           \
	({                                      \
		__typeof__(ptr) taken_ = (ptr); \
		(ptr) = NULL;                   \
		taken_;                         \
	})

#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

#define SWAP(a, b)                         \
	do {                               \
		__typeof__(a) swap_ = (a); \
		(a) = (b);                 \
		(b) = swap_;               \
	} while (0)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
