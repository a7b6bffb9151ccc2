/* SPDX-License-Identifier: MIT */
/*
 * Where functions are in the file of a program in Go, also of a stripped one. The table for its own stack traces
 * (.gopclntab) has their names. Nothing that the file says is trusted (elf.h).
 */
#ifndef OBSERVER_HOST_PROGRAMS_GOLANG_H
#define OBSERVER_HOST_PROGRAMS_GOLANG_H

#include <stddef.h>
#include <stdint.h>

struct golang_function {
	uint64_t offset; /* in the file */
	uint32_t size;	 /* bytes, up to the next function */
};

/*
 * Find the functions @names of a program by Go 1.18 or later for amd64. Each begins by comparing its stack with the
 * goroutine's bound in R14, which is checked. So it is a function, and of Go's register ABI. Return 0, -ENOENT if it is no
 * such program or lacks one of them, -ENOEXEC, -EFBIG or -errno.
 */
int golang_find(int fd, const char *const *names, size_t count,
		struct golang_function *ret_functions);

#endif
