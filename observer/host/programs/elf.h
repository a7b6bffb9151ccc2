/* SPDX-License-Identifier: MIT */
/*
 * Where functions are in the file of a program or a shared library. Any user may have made the file, and may change it
 * while it is read. So it is read into memory of limited size and never mapped: a mapping of a file that
 * becomes shorter ends its reader.
 */
#ifndef OBSERVER_HOST_PROGRAMS_ELF_H
#define OBSERVER_HOST_PROGRAMS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sojourn/cleanup.h"

/*
 * Find the functions @names, exported ones first, then those for debuggers (.symtab). @ret_offsets are places in the file, 0
 * for each that it lacks. Return 0, -ENOEXEC if it is no program or library of this machine, -EFBIG if it has too many
 * symbols, or -errno.
 */
int elf_find_functions(int fd, const char *const *names, size_t count, uint64_t *ret_offsets);

/* Such a file, for several questions. @fd stays the caller's. Return as elf_find_functions(). */
struct elf;
int elf_open(int fd, struct elf **ret_elf);
void elf_close(struct elf *elf);
DEFINE_CLEANUP(struct elf *, elf_close)

int elf_find(struct elf *elf, const char *const *names, size_t count, uint64_t *ret_offsets);

/* A part of the file, which need not be in it. */
struct elf_part {
	uint64_t offset;
	uint64_t size;
};

/* Find the first section with this name. */
bool elf_section(const struct elf *elf, const char *name, struct elf_part *ret_part);

/* Return where the code at @address is in the file; 0: in no segment that is executed. */
uint64_t elf_offset_of(const struct elf *elf, uint64_t address);

/* Read a part of the file. Return 0, -ENOEXEC if it is shorter, or -errno. */
int elf_read(const struct elf *elf, uint64_t offset, void *bytes, size_t size);

/* Find out which of @texts, with the zero at its end, are in the part. Return as elf_find_functions(). */
int elf_holds(struct elf *elf, const struct elf_part *part, const char *const *texts, size_t count,
	      bool *ret_holds);

/*
 * Find where each of @texts, with the zero at its end, begins in the part. @ret_places: UINT64_MAX if it is not there. Return
 * 0, -ENOTUNIQ if one is there twice, or as elf_find_functions().
 */
int elf_find_text(struct elf *elf, const struct elf_part *part, const char *const *texts,
		  size_t count, uint64_t *ret_places);

#endif
