// SPDX-License-Identifier: MIT
/* Reads the symbols of a program or a shared library; see elf.h. Nothing that the file says is trusted. */
#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "sojourn/array.h"
#include "sojourn/cleanup.h"

/*
 * OpenSSL's libssl has some 900 symbols, Node 160,000 with names of 12 MB. Tables of this size are searched in tenths of a
 * second.
 */
#define SYMBOLS_MAX	  4000000U
#define NAMES_MAX	  ((size_t)128 << 20)
#define CHUNK		  ((size_t)1 << 20)
#define PLACES_MAX	  1000U /* of the names in a table */
#define SECTIONS_MAX	  1000U
#define SEGMENTS_MAX	  100U
#define SECTION_NAMES_MAX ((size_t)1 << 16)

struct elf {
	int fd;
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	Elf64_Phdr *segments;
	char *section_names; /* ends with a zero */
	size_t section_names_size;
	char *chunk; /* a part of a table */
	struct place {
		uint64_t at;
		size_t name;
	} *places; /* where the names are in the current table of names */
	size_t place_count;
};

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
	       header->e_machine == machine &&
	       (header->e_type == ET_DYN || header->e_type == ET_EXEC) &&
	       header->e_shentsize == sizeof(Elf64_Shdr) &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_shnum < SECTIONS_MAX &&
	       header->e_phnum < SEGMENTS_MAX;
}

/* A file may have none. */
static int read_section_names(struct elf *file)
{
	const Elf64_Shdr *names = &file->sections[file->header.e_shstrndx];

	if (file->header.e_shstrndx >= file->header.e_shnum)
		return 0;
	if (names->sh_size > SECTION_NAMES_MAX)
		return -EFBIG;
	file->section_names_size = names->sh_size;
	return read_part(file->fd, names->sh_offset, names->sh_size, &file->section_names);
}

static int read_tables(struct elf *file)
{
	const Elf64_Ehdr *header = &file->header;
	int err = read_at(file->fd, &file->header, sizeof(file->header), 0);

	if (!err && !is_of_this_machine(header))
		err = -ENOEXEC;
	if (!err)
		err = read_part(file->fd, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr),
				&file->sections);
	if (!err)
		err = (file->chunk = malloc(CHUNK)) ? 0 : -ENOMEM;
	if (!err)
		err = read_part(file->fd, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr),
				&file->segments);
	return err ? err : read_section_names(file);
}

uint64_t elf_offset_of(const struct elf *file, uint64_t address)
{
	for (size_t i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address >= segment->p_vaddr && address - segment->p_vaddr < segment->p_filesz)
			return address - segment->p_vaddr + segment->p_offset;
	}
	return 0;
}

static int note_places(struct elf *file, const char *chunk, size_t size, uint64_t at,
		       const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(names[i]) + 1;
		const char *found = chunk;

		while ((found = memmem(found, size - (size_t)(found - chunk), names[i], length))) {
			if (file->place_count == PLACES_MAX)
				return -EFBIG;
			if (ARRAY_GROW(file->places, file->place_count))
				return -ENOMEM;
			file->places[file->place_count++] =
				(struct place){.at = at + (uint64_t)(found - chunk), .name = i};
			found++;
		}
	}
	return 0;
}

/*
 * Find where the names are in a table of names. A linker lets a name share the end of a longer one, so they may begin
 * anywhere. Parts overlap, so that none is cut.
 */
static int find_names(struct elf *file, uint64_t offset, uint64_t length, const char *const *names,
		      size_t count)
{
	size_t longest = 0, size;
	int err = 0;

	for (size_t i = 0; i < count; i++)
		longest = MAX(longest, strlen(names[i]));
	file->place_count = 0;
	for (uint64_t at = 0; !err && at < length; at += size - longest) {
		size = MIN(length - at, CHUNK);
		err = read_at(file->fd, file->chunk, size, offset + at);
		if (!err)
			err = note_places(file, file->chunk, size, at, names, count);
		if (at + size == length)
			break;
	}
	return err;
}

static bool is_defined_function(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
}

static void note_symbols(const struct elf *file, const Elf64_Sym *symbols, size_t count,
			 uint64_t *offsets)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_defined_function(&symbols[i]))
			continue;
		for (size_t j = 0; j < file->place_count; j++) {
			const struct place *place = &file->places[j];

			if (place->at == symbols[i].st_name && !offsets[place->name])
				offsets[place->name] = elf_offset_of(file, symbols[i].st_value);
		}
	}
}

static int search_table(struct elf *file, const Elf64_Shdr *section, const char *const *names,
			size_t count, uint64_t *offsets)
{
	const size_t step = CHUNK / sizeof(Elf64_Sym);
	size_t total = section->sh_size / sizeof(Elf64_Sym);
	const Elf64_Shdr *table;
	int err;

	if (section->sh_link >= file->header.e_shnum || section->sh_entsize != sizeof(Elf64_Sym))
		return -ENOEXEC;
	table = &file->sections[section->sh_link];
	if (total > SYMBOLS_MAX || table->sh_size > NAMES_MAX)
		return -EFBIG;
	err = find_names(file, table->sh_offset, table->sh_size, names, count);
	for (size_t i = 0; !err && i < total; i += step) {
		size_t part = MIN(total - i, step);

		err = read_at(file->fd, file->chunk, part * sizeof(Elf64_Sym),
			      section->sh_offset + i * sizeof(Elf64_Sym));
		if (!err)
			note_symbols(file, (const Elf64_Sym *)file->chunk, part, offsets);
	}
	return err;
}

static const Elf64_Shdr *section_of(const struct elf *file, Elf64_Word type)
{
	for (size_t i = 0; i < file->header.e_shnum; i++)
		if (file->sections[i].sh_type == type)
			return &file->sections[i];
	return NULL;
}

static bool are_found(const uint64_t *offsets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!offsets[i])
			return false;
	return true;
}

static int find_functions(struct elf *file, const char *const *names, size_t count,
			  uint64_t *offsets)
{
	const Elf64_Shdr *exported = section_of(file, SHT_DYNSYM);
	const Elf64_Shdr *all = section_of(file, SHT_SYMTAB);
	int err = exported ? search_table(file, exported, names, count, offsets) : 0;

	if (!err && all && !are_found(offsets, count))
		err = search_table(file, all, names, count, offsets);
	return err;
}

int elf_open(int fd, struct elf **ret_elf)
{
	struct elf *file = calloc(1, sizeof(*file));
	int err = -ENOMEM;

	if (file) {
		file->fd = fd;
		err = read_tables(file);
	}
	if (err)
		elf_close(file);
	else
		*ret_elf = file;
	return err;
}

void elf_close(struct elf *elf)
{
	if (!elf)
		return;
	free(elf->sections);
	free(elf->segments);
	free(elf->section_names);
	free(elf->chunk);
	free(elf->places);
	free(elf);
}

int elf_find(struct elf *elf, const char *const *names, size_t count, uint64_t *ret_offsets)
{
	autofree uint64_t *offsets = calloc(count, sizeof(*offsets));
	int err = offsets ? find_functions(elf, names, count, offsets) : -ENOMEM;

	if (!err)
		memcpy(ret_offsets, offsets, count * sizeof(*offsets));
	return err;
}

int elf_find_functions(int fd, const char *const *names, size_t count, uint64_t *ret_offsets)
{
	CLEANUP(cleanup_elf_close) struct elf *elf = NULL;
	int err = elf_open(fd, &elf);

	return err ? err : elf_find(elf, names, count, ret_offsets);
}

bool elf_section(const struct elf *elf, const char *name, struct elf_part *ret_part)
{
	for (size_t i = 0; elf->section_names && i < elf->header.e_shnum; i++) {
		const Elf64_Shdr *section = &elf->sections[i];

		if (section->sh_name >= elf->section_names_size ||
		    strcmp(elf->section_names + section->sh_name, name))
			continue;
		*ret_part =
			(struct elf_part){.offset = section->sh_offset, .size = section->sh_size};
		return true;
	}
	return false;
}

int elf_read(const struct elf *elf, uint64_t offset, void *bytes, size_t size)
{
	return read_at(elf->fd, bytes, size, offset);
}

int elf_holds(struct elf *elf, const struct elf_part *part, const char *const *texts, size_t count,
	      bool *ret_holds)
{
	int err = part->size > NAMES_MAX ? -EFBIG
					 : find_names(elf, part->offset, part->size, texts, count);

	if (err)
		return err;
	memset(ret_holds, 0, count * sizeof(*ret_holds));
	for (size_t i = 0; i < elf->place_count; i++)
		ret_holds[elf->places[i].name] = true;
	return 0;
}

int elf_find_text(struct elf *elf, const struct elf_part *part, const char *const *texts,
		  size_t count, uint64_t *ret_places)
{
	int err = part->size > NAMES_MAX ? -EFBIG
					 : find_names(elf, part->offset, part->size, texts, count);

	if (err)
		return err;
	memset(ret_places, 0xff, count * sizeof(*ret_places));
	for (size_t i = 0; i < elf->place_count; i++) {
		const struct place *place = &elf->places[i];

		if (ret_places[place->name] != UINT64_MAX)
			return -ENOTUNIQ;
		ret_places[place->name] = place->at;
	}
	return 0;
}
