// SPDX-License-Identifier: MIT
/* Looks into the kernel's BTF; see btf.h. Neighbour: plan.c. */
#include "btf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "message.h"
#include "sojourn/cleanup.h"

static struct btf *types;

static const struct btf *kernel_btf(void)
{
	static int error;

	if (!types && !error) {
		loader_message_begin(); /* keep libbpf's messages from standard error */
		types = btf__load_vmlinux_btf();
		error = (int)libbpf_get_error(types);
		if (error)
			types = NULL;
	}
	if (!types)
		errno = -error;
	return types;
}

void kernel_btf_release(void)
{
	btf__free(types);
	types = NULL;
}

/*
 * A tracepoint's type is that of the functions that it calls. Their first parameter is their own data, which does not
 * count.
 */
static int tracepoint_parameters(const struct btf *btf, const char *name)
{
	const struct btf_type *type;
	char callback[128];
	int id;

	snprintf(callback, sizeof(callback), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, callback, BTF_KIND_TYPEDEF);
	if (id < 0)
		return -ENOENT;
	type = btf__type_by_id(btf, (uint32_t)id);
	type = btf__type_by_id(btf, type->type); /* a pointer */
	return btf_vlen(btf__type_by_id(btf, type->type)) - 1;
}

int kernel_btf_parameters(const char *name)
{
	const struct btf *btf = kernel_btf();
	const struct btf_type *function;
	int id;

	if (!btf)
		return -errno;
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	if (id < 0)
		return tracepoint_parameters(btf, name);
	function = btf__type_by_id(btf, (uint32_t)id);
	return btf_vlen(btf__type_by_id(btf, function->type));
}

/* The forms of hooks in BTF. */
static const struct {
	const char *kind;
	const char *type; /* format of the type's name */
	uint32_t btf_kind;
	const char *missing; /* format of the message */
} hooks[] = {
	{"tp_btf/", "btf_trace_%.*s", BTF_KIND_TYPEDEF, "this kernel has no tracepoint %.*s"},
	{"fexit/", "%.*s", BTF_KIND_FUNC, "this kernel has no function %.*s() to attach to"},
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* the formats above */
static int find_target(const struct btf *btf, size_t kind, const char *name, int length,
		       char *reason, size_t size)
{
	char type[128];

	snprintf(type, sizeof(type), hooks[kind].type, length, name);
	if (btf__find_by_name_kind(btf, type, hooks[kind].btf_kind) >= 0)
		return 0;
	snprintf(reason, size, hooks[kind].missing, length, name);
	return -ENOENT;
}
#pragma GCC diagnostic pop

int kernel_btf_hook(const char *hook, char *reason, size_t size)
{
	const struct btf *btf = kernel_btf();
	size_t kind = 0;
	int r = 0;

	if (!btf)
		return -errno;
	while (kind < ARRAY_SIZE(hooks) &&
	       strncmp(hook, hooks[kind].kind, strlen(hooks[kind].kind)))
		kind++;
	if (kind == ARRAY_SIZE(hooks))
		return 0;
	for (const char *name = hook + strlen(hooks[kind].kind); !r && *name;) {
		size_t length = strcspn(name, "+");

		r = find_target(btf, kind, name, (int)length, reason, size);
		name += length + (name[length] == '+');
	}
	return r;
}

/* Every kernel with TCP has this function. */
#define FEXIT_TRIAL "inet_csk_accept"

static int try_fexit(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_TRACE_FEXIT);
	const struct btf *btf = kernel_btf();
	autoclose int fd = -1, link = -1;
	int id = btf ? btf__find_by_name_kind(btf, FEXIT_TRIAL, BTF_KIND_FUNC) : -errno;

	if (id < 0)
		return id;
	options.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", program, ARRAY_SIZE(program),
			   &options);
	if (fd < 0)
		return -errno;
	link = bpf_raw_tracepoint_open(NULL, fd);
	return link < 0 ? -errno : 0;
}

int kernel_btf_fexit(void)
{
	static bool known;
	static int result;

	if (!known)
		result = try_fexit();
	known = true;
	return result;
}

/*
 * For a function that the kernel's own types lack, such as bpf_rdonly_cast() before 6.2, libbpf 1.1 lists the types
 * of modules. If that is refused it loads nothing. But it lists them only once. So make that attempt here, for a
 * function that no kernel has; @program stays as it is.
 */
void kernel_btf_without_modules(struct bpf_program *program)
{
	uint32_t id;

	if (bpf_btf_get_next_id(0, &id) && errno == EPERM)
		bpf_program__set_attach_target(program, 0, "no function of any kernel");
}
