// SPDX-License-Identifier: MIT
/*
 * empty_hooks TYPE FUNCTION...: attaches a program that does nothing to each of these kernel functions, until it is ended.
 * TYPE is fentry, fexit or fsession. The last one runs at entry and at return (Linux 7.0). tests/bench/instructions.py
 * counts what the kernel takes to enter and leave them.
 *
 * Prints "attached" when all are.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define TRACE_FSESSION 58 /* BPF_TRACE_FSESSION, which libbpf 1.1 does not know */

static const struct {
	const char *name;
	int attach;
} types[] = {
	{"fentry", BPF_TRACE_FENTRY},
	{"fexit", BPF_TRACE_FEXIT},
	{"fsession", TRACE_FSESSION},
};

static int type_of(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!strcmp(types[i].name, name))
			return types[i].attach;
	}
	return -1;
}

static int attach(const char *function, int type)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_prog_load_opts options = {
		.sz = sizeof(options),
		.expected_attach_type = (enum bpf_attach_type)type,
	};
	int id = libbpf_find_vmlinux_btf_id(function, BPF_TRACE_FEXIT), fd;

	if (id < 0)
		return id;
	options.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "bench_empty", "GPL", program,
			   sizeof(program) / sizeof(program[0]), &options);
	return fd < 0 ? -errno : bpf_link_create(fd, 0, (enum bpf_attach_type)type, NULL);
}

int main(int argc, char **argv)
{
	int type = argc > 2 ? type_of(argv[1]) : -1;

	if (type < 0) {
		fputs("Usage: empty_hooks fentry|fexit|fsession FUNCTION...\n", stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++) {
		int r = attach(argv[i], type);

		if (r < 0) {
			fprintf(stderr, "empty_hooks: %s of %s: %s\n", argv[1], argv[i],
				strerror(-r));
			return EXIT_FAILURE;
		}
	}
	puts("attached");
	fflush(stdout);
	for (;;)
		pause();
}
