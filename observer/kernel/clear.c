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

#include "skeleton.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "wire/clear.h"

static const struct {
	const char *function;
	enum clear_kind kind;
	bool optional; /* of OpenSSL 1.1.1 on, or only called by others of these */
} functions[] = {
	{"SSL_write", CLEAR_WRITE, false},
	{"SSL_write_ex", CLEAR_WRITE_EX, true},
	{"SSL_do_handshake", CLEAR_HANDSHAKE, false},
	{"SSL_accept", CLEAR_HANDSHAKE, true},
	{"SSL_read", CLEAR_READ, false},
	{"SSL_read_ex", CLEAR_READ_EX, true},
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
		     const char *path, const char *function, uint64_t kind, bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = function, .bpf_cookie = kind,
		    .retprobe = at_return);
	struct bpf_link *link;

	if (ARRAY_GROW(probes->links, probes->count))
		return -ENOMEM;
	link = bpf_program__attach_uprobe_opts(program, -1, path, 0, &options);
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
			   const char *path, const char *function, enum clear_kind kind)
{
	int r = attach_at(probes, skel->progs.clear_return, path, function, kind, true);

	return r ? r : attach_at(probes, skel->progs.clear_enter, path, function, kind, false);
}

int clear_attach(struct clear_probes *probes, const struct sojourn_bpf *skel, const char *path)
{
	size_t first = probes->count;
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_SIZE(functions); i++) {
		r = attach_function(probes, skel, path, functions[i].function, functions[i].kind);
		if (r == -ENOENT && functions[i].optional)
			r = 0;
	}
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
