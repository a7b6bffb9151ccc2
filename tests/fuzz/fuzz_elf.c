/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of a shared library: places of functions are found within it, or nowhere. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "host/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"SSL_read", "SSL_write"};
	uint64_t offsets[ARRAY_SIZE(names)] = {1, 1};
	autoclose int fd = memfd_create("library", MFD_CLOEXEC);
	int err;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	err = elf_find_functions(fd, names, ARRAY_SIZE(names), offsets);
	require(!err || err == -ENOEXEC || err == -EFBIG);
	for (size_t i = 0; i < ARRAY_SIZE(names) && err; i++)
		require(offsets[i] == 1);
	return 0;
}
