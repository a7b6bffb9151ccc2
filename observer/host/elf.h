/* SPDX-License-Identifier: MIT */
/*
 * Where functions are in the file of a program or a shared library. Any user may have made the file, and may change it
 * while it is read. So it is read into memory of limited size and never mapped: a mapping of a file that
 * becomes shorter ends its reader.
 */
#ifndef OBSERVER_HOST_ELF_H
#define OBSERVER_HOST_ELF_H

#include <stddef.h>
#include <stdint.h>

/*
 * Find the functions @names, exported ones first, then those for debuggers (.symtab). @ret_offsets are places in the file, 0
 * for each that it lacks. Return 0, -ENOEXEC if it is no program and no library of this machine's kind, -EFBIG if it has more
 * symbols than any real one, or -errno.
 */
int elf_find_functions(int fd, const char *const *names, size_t count, uint64_t *ret_offsets);

#endif
