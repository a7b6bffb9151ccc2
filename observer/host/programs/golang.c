// SPDX-License-Identifier: MIT
/* Reads the table of functions of Go; see golang.h. Its layout: runtime/symtab.go, debug/gosym/pclntab.go. */
#include "golang.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "elf.h"
#include "sojourn/cleanup.h"

#define MAGIC_1_18 0xfffffff0U
#define MAGIC_1_20 0xfffffff1U
/* Kubernetes has 100,000 functions. */
#define FUNCTIONS_MAX  2000000U
#define NAMES_MAX      8U
#define WINDOW	       ((size_t)64 << 10)
#define SIZE_MAX_CODE  ((uint32_t)1 << 16)
#define SIZE_MAX_TABLE ((uint64_t)1 << 30)

/* All offsets are from the header. */
struct header {
	uint32_t magic;
	uint8_t zeros[2];
	uint8_t quantum, pointer_size;
	uint64_t functions, files;
	uint64_t text; /* address; 0: not said, from 1.26 on or before relocation */
	uint64_t names, units, paths, lines;
	uint64_t table; /* of struct entry, and of what these refer to */
};

/* The table ends with one more, whose start is the end of the last function. */
struct entry {
	uint32_t start; /* from the start of the text */
	uint32_t about; /* offset of struct about from the table */
};

struct about {
	uint32_t start;
	int32_t name; /* offset in the names */
};

/* Reads a file forwards, a window at a time. */
struct reader {
	const struct elf *elf;
	uint64_t end; /* in the file, as are the others */
	uint64_t at;
	size_t have;
	unsigned int reads; /* that are left */
	char *window;
};

static int reader_get(struct reader *reader, uint64_t at, void *bytes, size_t size)
{
	int err;

	if (at > reader->end || reader->end - at < size)
		return -ENOEXEC;
	if (at < reader->at || at + size > reader->at + reader->have) {
		size_t room = reader->end - at < WINDOW ? (size_t)(reader->end - at) : WINDOW;

		if (!reader->reads--)
			return -ENOEXEC;
		reader->have = 0;
		err = elf_read(reader->elf, at, reader->window, room);
		if (err)
			return err;
		reader->at = at;
		reader->have = room;
	}
	memcpy(bytes, reader->window + (at - reader->at), size);
	return 0;
}

struct search {
	struct elf *elf;
	struct elf_part part;
	struct header header;
	size_t count;
	uint64_t names[NAMES_MAX]; /* where they are among the table's */
	struct entry found[NAMES_MAX];
	uint32_t sizes[NAMES_MAX]; /* 0: not found */
};

static int read_header(struct search *search)
{
	const struct header *header = &search->header;
	int err;

	if (!elf_section(search->elf, ".gopclntab", &search->part) &&
	    !elf_section(search->elf, ".data.rel.ro.gopclntab", &search->part))
		return -ENOENT;
	if (search->part.size < sizeof(*header))
		return -ENOEXEC;
	err = elf_read(search->elf, search->part.offset, &search->header, sizeof(*header));
	if (err)
		return err;
	if ((header->magic != MAGIC_1_18 && header->magic != MAGIC_1_20) ||
	    header->pointer_size != 8)
		return -ENOENT;
	if (header->functions > FUNCTIONS_MAX)
		return -EFBIG;
	if (search->part.size > SIZE_MAX_TABLE)
		return -EFBIG;
	return header->names > header->units || header->units > header->table ||
			       header->table > search->part.size
		       ? -ENOEXEC
		       : 0;
}

static int find_names(struct search *search, const char *const *names)
{
	const struct header *header = &search->header;
	struct elf_part part = {.offset = search->part.offset + header->names,
				.size = header->units - header->names};
	int err = elf_find_text(search->elf, &part, names, search->count, search->names);

	for (size_t i = 0; !err && i < search->count; i++)
		if (search->names[i] == UINT64_MAX)
			err = -ENOENT;
	return err == -ENOTUNIQ ? -ENOENT : err;
}

static int note_function(struct search *search, const struct entry *entry, uint32_t end,
			 const struct about *about)
{
	for (size_t i = 0; i < search->count; i++) {
		if (about->name < 0 || search->names[i] != (uint64_t)about->name)
			continue;
		if (search->sizes[i] || end <= entry->start || end - entry->start > SIZE_MAX_CODE)
			return -ENOENT;
		search->found[i] = *entry;
		search->sizes[i] = end - entry->start;
	}
	return 0;
}

/* Entries and what they refer to are in the same order, so both are read forwards, and only so often. */
static int find_entries(struct search *search)
{
	uint64_t table = search->part.offset + search->header.table;
	uint64_t end = search->part.offset + search->part.size;
	autofree char *windows = malloc(2 * WINDOW);
	unsigned int reads = (unsigned int)(search->part.size / (WINDOW / 2)) + 8;
	struct reader entries = {.elf = search->elf, .end = end, .reads = reads, .window = windows};
	struct reader abouts = {.elf = search->elf, .end = end, .reads = reads};
	struct entry pair[2];
	struct about about;
	int err = windows ? 0 : -ENOMEM;

	if (windows)
		abouts.window = windows + WINDOW;
	for (uint64_t i = 0; !err && i < search->header.functions; i++) {
		err = reader_get(&entries, table + i * sizeof(*pair), pair,
				 sizeof(pair) - sizeof(pair->about));
		if (!err)
			err = reader_get(&abouts, table + pair[0].about, &about, sizeof(about));
		if (!err)
			err = note_function(search, &pair[0], pair[1].start, &about);
	}
	for (size_t i = 0; !err && i < search->count; i++)
		if (!search->sizes[i])
			err = -ENOENT;
	return err;
}

/* CMPQ SP, 16(R14), or LEAQ -frame(SP), R12 and CMPQ R12, 16(R14) */
static bool begins_a_function(const struct search *search, uint64_t offset)
{
	static const uint8_t compare[] = {0x49, 0x3b, 0x66, 0x10};
	static const uint8_t compare_r12[] = {0x4d, 0x3b, 0x66, 0x10};
	static const uint8_t near_frame[] = {0x4c, 0x8d, 0x64, 0x24};
	static const uint8_t far_frame[] = {0x4c, 0x8d, 0xa4, 0x24};
	uint8_t code[12];

	if (elf_read(search->elf, offset, code, sizeof(code)))
		return false;
	if (!memcmp(code, compare, 4))
		return true;
	if (!memcmp(code, near_frame, 4))
		return !memcmp(code + 5, compare_r12, 4);
	return !memcmp(code, far_frame, 4) && !memcmp(code + 8, compare_r12, 4);
}

static bool is_start(const struct search *search, uint64_t text)
{
	for (size_t i = 0; text && i < search->count; i++)
		if (!begins_a_function(search, text + search->found[i].start))
			return false;
	return text;
}

/* Return where the text begins in the file, which several say, or do not say; 0: not known. */
static uint64_t find_start(const struct search *search)
{
	static const char *const name = "runtime.text";
	uint64_t starts[3] = {elf_offset_of(search->elf, search->header.text)};
	struct elf_part section;

	if (elf_find(search->elf, &name, 1, &starts[1]))
		starts[1] = 0;
	if (elf_section(search->elf, ".text", &section))
		starts[2] = section.offset;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (is_start(search, starts[i]))
			return starts[i];
	return 0;
}

int golang_find(int fd, const char *const *names, size_t count,
		struct golang_function *ret_functions)
{
	CLEANUP(cleanup_elf_close) struct elf *elf = NULL;
	struct search search = {.count = count};
	uint64_t start = 0;
	int err = count > NAMES_MAX ? -EINVAL : elf_open(fd, &elf);

	search.elf = elf;
	if (!err)
		err = read_header(&search);
	if (!err)
		err = find_names(&search, names);
	if (!err)
		err = find_entries(&search);
	if (!err)
		start = find_start(&search);
	if (!err && !start)
		err = -ENOENT;
	for (size_t i = 0; !err && i < count; i++)
		ret_functions[i] = (struct golang_function){.offset = start + search.found[i].start,
							    .size = search.sizes[i]};
	return err;
}
