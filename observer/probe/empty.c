// SPDX-License-Identifier: MIT
/* Loads programs of two instructions; see empty.h. */
#include "empty.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sojourn/cleanup.h"

static const struct {
	const char *kind;
	enum bpf_attach_type type;
} kinds[] = {
	{"tp_btf/", BPF_TRACE_RAW_TP},
	{"fexit/", BPF_TRACE_FEXIT},
};

static int load(const char *name, enum bpf_attach_type type)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct bpf_prog_load_opts options = {
		.sz = sizeof(options),
		.expected_attach_type = type,
	};
	int id = libbpf_find_vmlinux_btf_id(name, type), fd;

	if (id < 0)
		return id;
	options.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "probe_empty", "GPL", program,
			   ARRAY_SIZE(program), &options);
	return fd < 0 ? -errno : fd;
}

int empty_open(const char *hook, struct empty *ret_empty)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t length = strlen(kinds[i].kind);
		int fd = strncmp(hook, kinds[i].kind, length) ? -EOPNOTSUPP
							      : load(hook + length, kinds[i].type);

		if (fd == -EOPNOTSUPP)
			continue;
		if (fd < 0)
			return fd;
		*ret_empty = (struct empty){.program_fd = fd, .link_fd = -1};
		return 0;
	}
	return -EOPNOTSUPP;
}

void empty_close(struct empty *empty)
{
	empty_detach(empty);
	cleanup_close(&empty->program_fd);
	empty->program_fd = -1;
}

int empty_attach(struct empty *empty)
{
	if (empty->program_fd < 0 || empty->link_fd >= 0)
		return 0;
	empty->link_fd = bpf_raw_tracepoint_open(NULL, empty->program_fd);
	return empty->link_fd < 0 ? -errno : 0;
}

void empty_detach(struct empty *empty)
{
	cleanup_close(&empty->link_fd);
	empty->link_fd = -1;
}

int empty_read(const struct empty *empty, uint64_t *ret_runs, uint64_t *ret_run_ns)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(empty->program_fd, &info, &size) < 0)
		return -errno;
	*ret_runs = info.run_cnt;
	*ret_run_ns = info.run_time_ns;
	return 0;
}
