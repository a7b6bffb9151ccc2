// SPDX-License-Identifier: MIT
/* Probes at functions of TLS libraries; see clear.h. */
#include "clear.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "clear_go.h"
#include "host/programs/elf.h"
#include "sojourn/array.h"
#include "sojourn/cleanup.h"
#include "sojourn/text.h"
#include "wire/clear.h"
#include "wire/config.h"

#include "sojourn_bpf.skel.h"

struct function {
	const char *name;
	uint32_t probe;
	bool optional; /* of later versions, or only called by others of these */
};

/* OpenSSL 1.1.0 and later, and its relatives, of which BoringSSL has no _ex. */
static const struct function openssl[] = {
	{"SSL_write", CLEAR_PROBE(CLEAR_WRITE, CLEAR_INT), false},
	{"SSL_write_ex", CLEAR_PROBE(CLEAR_WRITE, CLEAR_AT), true},
	{"SSL_do_handshake", CLEAR_PROBE(CLEAR_HANDSHAKE, CLEAR_INT), false},
	{"SSL_accept", CLEAR_PROBE(CLEAR_HANDSHAKE, CLEAR_INT), true},
	{"SSL_read", CLEAR_PROBE(CLEAR_READ, CLEAR_INT), false},
	{"SSL_read_ex", CLEAR_PROBE(CLEAR_READ, CLEAR_AT), true},
};

static const struct function gnutls[] = {
	{"gnutls_record_send", CLEAR_PROBE(CLEAR_WRITE, CLEAR_SIZE), false},
	{"gnutls_handshake", CLEAR_PROBE(CLEAR_HANDSHAKE, CLEAR_INT), false},
	{"gnutls_record_recv", CLEAR_PROBE(CLEAR_READ, CLEAR_SIZE), false},
};

#define FUNCTIONS_MAX ARRAY_SIZE(openssl)

static const struct library_kind {
	const char *
		file; /* how its name begins; NULL: the program itself, that has the library in it */
	const struct function *functions;
	size_t count;
	const char *lacks; /* why it cannot be looked into; NULL: it can */
} kinds[] = {
	{"libssl.so", openssl, ARRAY_SIZE(openssl), NULL},
	{"libgnutls.so", gnutls, ARRAY_SIZE(gnutls), NULL},
	{NULL, openssl, ARRAY_SIZE(openssl), NULL},
	{NULL, NULL, 0, NULL}, /* Go's, which needs more than names: clear_go.h */
	{"cygrpc.", NULL, 0, "gRPC's TLS works on buffers in memory"},
	{"libgrpc.so", NULL, 0, "gRPC's TLS works on buffers in memory"},
	{"libnetty_tcnative", NULL, 0, "Netty's BoringSSL works on buffers in memory"},
	{"libconscrypt", NULL, 0, "Conscrypt's BoringSSL does not name its functions"},
	{"libjvm.so", NULL, 0, "Java's own TLS has no functions to probe"},
};

_Static_assert(ARRAY_SIZE(kinds) == CLEAR_LIBRARIES, "each has a name");
_Static_assert(2 * FUNCTIONS_MAX <= CLEAR_PLACES_MAX, "each has two places");

const char *const clear_libraries[CLEAR_LIBRARIES] = {
	kinds[0].file, kinds[1].file, kinds[2].file, kinds[3].file, kinds[4].file,
	kinds[5].file, kinds[6].file, kinds[7].file, kinds[8].file,
};

/* Constants that programs with a library in them have, also stripped ones. */
static const struct {
	const char *text;
	const char *library;
} marks[] = {
	{"WRONG_VERSION_ON_EARLY_DATA",
	 "the program has BoringSSL or a relative, and does not name its functions"},
	{"statem_srvr.c", "the program has OpenSSL, and does not name its functions"},
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

static void place_add(struct clear_places *places, uint64_t offset, uint32_t probe, bool leaves)
{
	places->list[places->count++] =
		(struct clear_place){.offset = offset, .probe = probe, .leaves = leaves};
}

/*
 * libbpf would map the file to look for a name, and the owner of the file could end us by that. The return comes first: a
 * call whose return was missed would stay.
 */
int clear_find(int fd, size_t library, struct clear_places *ret_places)
{
	const struct library_kind *kind = &kinds[library];
	struct clear_places places = {};
	const char *names[FUNCTIONS_MAX] = {};
	uint64_t offsets[FUNCTIONS_MAX];
	int r;

	if (!kind->functions)
		return clear_go_find(fd, ret_places);
	for (size_t i = 0; i < kind->count; i++)
		names[i] = kind->functions[i].name;
	r = elf_find_functions(fd, names, kind->count, offsets);
	for (size_t i = 0; !r && i < kind->count; i++)
		if (offsets[i]) {
			place_add(&places, offsets[i], kind->functions[i].probe, true);
			place_add(&places, offsets[i], kind->functions[i].probe, false);
		} else if (!kind->functions[i].optional) {
			r = -ENOENT;
		}
	if (!r)
		*ret_places = places;
	return r;
}

const char *clear_lacks(size_t library)
{
	return kinds[library].lacks;
}

const char *clear_nameless(int fd, size_t library)
{
	CLEANUP(cleanup_elf_close) struct elf *elf = NULL;
	const char *texts[ARRAY_SIZE(marks)];
	bool holds[ARRAY_SIZE(marks)];
	struct elf_part constants;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		texts[i] = marks[i].text;
	if (!kinds[library].functions || elf_open(fd, &elf) ||
	    !elf_section(elf, ".rodata", &constants) ||
	    elf_holds(elf, &constants, texts, ARRAY_SIZE(marks), holds))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (holds[i])
			return marks[i].library;
	return NULL;
}

static int attach_at(struct clear_probes *probes, const struct sojourn_bpf *skel, const char *path,
		     const struct clear_place *place)
{
	bool is_go = CLEAR_PROBE_FORM(place->probe) == CLEAR_GO;
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = place->probe,
		    .retprobe = place->leaves && !is_go);
	const struct bpf_program *program =
		place->leaves ? skel->progs.clear_return : skel->progs.clear_enter;
	struct bpf_link *link;

	if (ARRAY_GROW(probes->links, probes->count))
		return -ENOMEM;
	if (is_go)
		skel->bss->clear_go = 1;
	link = bpf_program__attach_uprobe_opts(program, -1, path, place->offset, &options);
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

int clear_attach(struct clear_probes *probes, const struct sojourn_bpf *skel, int fd,
		 const struct clear_places *places)
{
	size_t first = probes->count;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; !r && i < places->count; i++)
		r = attach_at(probes, skel, path, &places->list[i]);
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
	LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = CLEAR_PROBE(CLEAR_HANDSHAKE, CLEAR_INT),
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
