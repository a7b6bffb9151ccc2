// SPDX-License-Identifier: MIT
/* Any bytes as the file of a shared library, or of a program in Go: places of functions are found within it, or nowhere. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "host/programs/elf.h"
#include "host/programs/golang.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"SSL_read", "SSL_write"};
	uint64_t offsets[ARRAY_SIZE(names)] = {1, 1};
	struct golang_function functions[ARRAY_SIZE(names)] = {};
	autoclose int fd = memfd_create("library", MFD_CLOEXEC);
	int err;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	err = elf_find_functions(fd, names, ARRAY_SIZE(names), offsets);
	require(!err || err == -ENOEXEC || err == -EFBIG);
	for (size_t i = 0; i < ARRAY_SIZE(names) && err; i++)
		require(offsets[i] == 1);
	err = golang_find(fd, names, ARRAY_SIZE(names), functions);
	require(!err || err == -ENOENT || err == -ENOEXEC || err == -EFBIG);
	for (size_t i = 0; i < ARRAY_SIZE(names) && !err; i++)
		require(functions[i].size && functions[i].offset < size);
	return 0;
}
