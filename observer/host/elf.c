// SPDX-License-Identifier: MIT
/* Reads the dynamic symbols of a shared library; see elf.h. Nothing that the file says is trusted. */
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sojourn/cleanup.h"

/* OpenSSL's libssl has some 900 symbols, the largest libraries of Debian 100,000. */
#define SYMBOLS_MAX  200000U
#define NAMES_MAX    ((size_t)16 << 20)
#define SECTIONS_MAX 1000U
#define SEGMENTS_MAX 100U

struct file {
	int fd;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	Elf64_Phdr *segments;
	Elf64_Sym *symbols;
	size_t symbol_count;
	char *names; /* ends with a zero */
	size_t names_size;
};

static void file_clear(struct file *file)
{
	free(file->sections);
	free(file->segments);
	free(file->symbols);
	free(file->names);
}

static int read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
	size_t have = 0;

	if (offset > INT64_MAX - size)
		return -ENOEXEC;
	while (have < size) {
		ssize_t n = pread(fd, (char *)bytes + have, size - have, (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ENOEXEC;
		have += (size_t)n;
	}
	return 0;
}

/* Return a copy of a part of the file, with a zero after it. */
static int read_part(int fd, uint64_t offset, size_t size, void *ret_part)
{
	autofree char *part = malloc(size + 1);
	int err = part ? read_at(fd, part, size, offset) : -ENOMEM;

	if (err)
		return err;
	part[size] = 0;
	*(void **)ret_part = TAKE_PTR(part);
	return 0;
}

static bool is_of_this_machine(const Elf64_Ehdr *header)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const unsigned char order = ELFDATA2LSB;
#else
	const unsigned char order = ELFDATA2MSB;
#endif
#if defined(__x86_64__)
	const Elf64_Half machine = EM_X86_64;
#elif defined(__aarch64__)
	const Elf64_Half machine = EM_AARCH64;
#else
	const Elf64_Half machine = header->e_machine;
#endif

	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == order &&
	       header->e_machine == machine && header->e_type == ET_DYN &&
	       header->e_shentsize == sizeof(Elf64_Shdr) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_shnum < SECTIONS_MAX &&
	       header->e_phnum < SEGMENTS_MAX;
}

static int read_tables(struct file *file)
{
	const Elf64_Ehdr *header = &file->header;
	int err = read_at(file->fd, &file->header, sizeof(file->header), 0);

	if (!err && !is_of_this_machine(header))
		err = -ENOEXEC;
	if (!err)
		err = read_part(file->fd, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr),
				&file->sections);
	if (!err)
		err = read_part(file->fd, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr),
				&file->segments);
	return err;
}

static int read_symbols(struct file *file, const Elf64_Shdr *section)
{
	const Elf64_Shdr *names;
	int err;

	if (section->sh_link >= file->header.e_shnum || section->sh_entsize != sizeof(Elf64_Sym))
		return -ENOEXEC;
	names = &file->sections[section->sh_link];
	if (section->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX || names->sh_size > NAMES_MAX)
		return -EFBIG;
	file->symbol_count = section->sh_size / sizeof(Elf64_Sym);
	file->names_size = names->sh_size;
	err = read_part(file->fd, section->sh_offset, file->symbol_count * sizeof(Elf64_Sym),
			&file->symbols);
	return err ? err : read_part(file->fd, names->sh_offset, file->names_size, &file->names);
}

static int read_dynamic_symbols(struct file *file)
{
	for (size_t i = 0; i < file->header.e_shnum; i++)
		if (file->sections[i].sh_type == SHT_DYNSYM)
			return read_symbols(file, &file->sections[i]);
	return -ENOEXEC;
}

/* Return where the code at @address is in the file; 0: in no segment that is executed. */
static uint64_t offset_of(const struct file *file, uint64_t address)
{
	for (size_t i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
			return address - segment->p_vaddr + segment->p_offset;
	}
	return 0;
}

static bool is_defined_function(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
}

int elf_find_functions(int fd, const char *const *names, size_t count, uint64_t *ret_offsets)
{
	CLEANUP(file_clear) struct file file = {.fd = fd};
	int err = read_tables(&file);

	if (!err)
		err = read_dynamic_symbols(&file);
	if (err)
		return err;
	memset(ret_offsets, 0, count * sizeof(*ret_offsets));
	for (size_t i = 0; i < file.symbol_count; i++) {
		const Elf64_Sym *symbol = &file.symbols[i];

		if (!is_defined_function(symbol) || symbol->st_name >= file.names_size)
			continue;
		for (size_t j = 0; j < count; j++)
			if (!ret_offsets[j] && !strcmp(file.names + symbol->st_name, names[j]))
				ret_offsets[j] = offset_of(&file, symbol->st_value);
	}
	return 0;
}
