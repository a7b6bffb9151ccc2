// SPDX-License-Identifier: MIT
/* Probes at functions of OpenSSL; see clear.h. */
#include "clear.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "host/elf.h"
#include "skeleton.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "wire/clear.h"

enum function {
	FUNCTION_WRITE,
	FUNCTION_WRITE_EX,
	FUNCTION_HANDSHAKE,
	FUNCTION_ACCEPT,
	FUNCTION_READ,
	FUNCTION_READ_EX,
	FUNCTION_COUNT,
};

static const char *const names[FUNCTION_COUNT] = {
	[FUNCTION_WRITE] = "SSL_write",
	[FUNCTION_WRITE_EX] = "SSL_write_ex",
	[FUNCTION_HANDSHAKE] = "SSL_do_handshake",
	[FUNCTION_ACCEPT] = "SSL_accept",
	[FUNCTION_READ] = "SSL_read",
	[FUNCTION_READ_EX] = "SSL_read_ex",
};

static const struct {
	enum clear_kind kind;
	bool optional; /* of OpenSSL 1.1.1 on, or only called by others of these */
} functions[FUNCTION_COUNT] = {
	[FUNCTION_WRITE] = {CLEAR_WRITE, false},
	[FUNCTION_WRITE_EX] = {CLEAR_WRITE_EX, true},
	[FUNCTION_HANDSHAKE] = {CLEAR_HANDSHAKE, false},
	[FUNCTION_ACCEPT] = {CLEAR_HANDSHAKE, true},
	[FUNCTION_READ] = {CLEAR_READ, false},
	[FUNCTION_READ_EX] = {CLEAR_READ_EX, true},
};

/* Kernels that are known to panic under load of such probes. */
static const struct {
	const char *release; /* how it begins */
	const char *version; /* a part of it */
	const char *reason;
} denied[] = {
	{"7.0.", "Ubuntu", "Ubuntu's kernel 7.0 is known to panic under uprobes with load of TLS"},
};

const char *clear_denied(void)
{
	struct utsname name;

	if (uname(&name) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
		if (text_begins(name.release, denied[i].release) &&
		    strstr(name.version, denied[i].version))
			return denied[i].reason;
	}
	return NULL;
}

/* ---- at a library ---- */

static int attach_at(struct clear_probes *probes, const struct bpf_program *program,
		     const char *path, uint64_t offset, uint64_t kind, bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = kind, .retprobe = at_return);
	struct bpf_link *link;

	if (ARRAY_GROW(probes->links, probes->count))
		return -ENOMEM;
	link = bpf_program__attach_uprobe_opts(program, -1, path, offset, &options);
	if (!link)
		return -errno;
	probes->links[probes->count++] = link;
	return 0;
}

static void detach_from(struct clear_probes *probes, size_t first)
{
	while (probes->count > first)
		bpf_link__destroy(probes->links[--probes->count]);
}

/* The return comes first: a call whose return was missed would stay. */
static int attach_function(struct clear_probes *probes, const struct sojourn_bpf *skel,
			   const char *path, uint64_t offset, enum clear_kind kind)
{
	int r = attach_at(probes, skel->progs.clear_return, path, offset, kind, true);

	return r ? r : attach_at(probes, skel->progs.clear_enter, path, offset, kind, false);
}

/* libbpf would map the file to look for a name, and the owner of the file could end us by that. */
int clear_attach(struct clear_probes *probes, const struct sojourn_bpf *skel, int fd)
{
	size_t first = probes->count;
	uint64_t offsets[FUNCTION_COUNT];
	int r = elf_find_functions(fd, names, FUNCTION_COUNT, offsets);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; !r && i < FUNCTION_COUNT; i++)
		if (offsets[i])
			r = attach_function(probes, skel, path, offsets[i], functions[i].kind);
		else if (!functions[i].optional)
			r = -ENOENT;
	if (r < 0)
		detach_from(probes, first);
	return r;
}

void clear_detach(struct clear_probes *probes)
{
	detach_from(probes, 0);
	free(probes->links);
	*probes = (struct clear_probes){};
}

/* ---- rehearsal ---- */

bool clear_is_probe(const struct bpf_program *program)
{
	return bpf_program__type(program) == BPF_PROG_TYPE_KPROBE;
}

/* Return where in our own file the byte at @address is; 0: not known. */
static size_t offset_of(uintptr_t address)
{
	autofclose FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[1024];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end)
			return address - start + offset;
	}
	return 0;
}

int clear_try(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = CLEAR_HANDSHAKE,
		    .retprobe = !strcmp(section, "uretprobe"));
	size_t offset = offset_of((uintptr_t)clear_denied);
	struct bpf_link *link;

	if (!offset)
		return -ENOENT;
	link = bpf_program__attach_uprobe_opts(program, 0, "/proc/self/exe", offset, &options);
	if (!link)
		return -errno;
	bpf_link__destroy(link);
	return 0;
}
