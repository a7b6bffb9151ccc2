// SPDX-License-Identifier: MIT
/* Functions in the files of programs and shared libraries: the C library's own, and files that are none or lie. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/programs/elf.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "unit.h"

static const char *const names[] = {"printf", "no_such_function", "getenv"};
#define COUNT ARRAY_SIZE(names)

int main(void);

static int open_libc(void)
{
	Dl_info info;
	int fd;

	assert_true(dladdr((void *)(uintptr_t)&getenv, &info));
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The bytes at the place in the file are those at the address that the dynamic linker knows. */
static void places_are_those_of_the_code(void **state)
{
	autoclose int fd = open_libc();
	uint64_t offsets[COUNT];
	/* Not the next one, which may be a sanitizer's. */
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	assert_non_null(libc);
	assert_int_equal(elf_find_functions(fd, names, COUNT, offsets), 0);
	for (size_t i = 0; i < COUNT; i++) {
		const void *code = dlsym(libc, names[i]);
		char bytes[32];

		assert_int_equal(!!code, !!offsets[i]);
		if (!code)
			continue;
		assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offsets[i]), sizeof(bytes));
		assert_memory_equal(bytes, code, sizeof(bytes));
	}
	assert_int_equal(offsets[1], 0);
	dlclose(libc);
}

/* This program exports nothing: only its table for debuggers has the name. */
static void programs_have_functions_too(void **state)
{
	static const char *const own[] = {"main"};
	autoclose int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t offset;
	char bytes[16];

	assert_int_equal(elf_find_functions(fd, own, 1, &offset), 0);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), (off_t)offset), sizeof(bytes));
	assert_memory_equal(bytes, (const void *)(uintptr_t)&main, sizeof(bytes));
}

/* Return a copy of the C library in memory. */
static int copy_libc(size_t *ret_size)
{
	autoclose int from = open_libc();
	int fd = memfd_create("library", MFD_CLOEXEC);
	struct stat status = {0};
	autofree char *bytes = NULL;

	assert_int_equal(from < 0 ? -1 : fstat(from, &status), 0);
	*ret_size = (size_t)status.st_size;
	bytes = malloc(*ret_size + 1);
	assert_non_null(bytes);
	assert_int_equal(pread(from, bytes, *ret_size, 0), *ret_size);
	assert_int_equal(pwrite(fd, bytes, *ret_size, 0), *ret_size);
	return fd;
}

static void a_part_of_a_file_is_no_library(void **state)
{
	size_t size;
	autoclose int fd = copy_libc(&size);
	uint64_t offsets[COUNT] = {7, 7, 7};

	for (size_t i = 0; i < 50; i++) {
		size = i < 25 ? size - size / 10 - 1 : size * 3 / 4;
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_int_equal(elf_find_functions(fd, names, COUNT, offsets), -ENOEXEC);
		assert_int_equal(offsets[0], 7);
	}
}

static void more_symbols_than_any_has(void **state)
{
	size_t size;
	autoclose int fd = copy_libc(&size);
	uint64_t offsets[COUNT];
	Elf64_Ehdr header;

	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	for (size_t i = 0; i < header.e_shnum; i++) {
		off_t at = (off_t)(header.e_shoff + i * sizeof(Elf64_Shdr));
		Elf64_Shdr section;

		assert_int_equal(pread(fd, &section, sizeof(section), at), sizeof(section));
		if (section.sh_type != SHT_DYNSYM)
			continue;
		section.sh_size = (uint64_t)24 << 40;
		assert_int_equal(pwrite(fd, &section, sizeof(section), at), sizeof(section));
	}
	assert_int_equal(elf_find_functions(fd, names, COUNT, offsets), -EFBIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_those_of_the_code),
		cmocka_unit_test(programs_have_functions_too),
		cmocka_unit_test(a_part_of_a_file_is_no_library),
		cmocka_unit_test(more_symbols_than_any_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
