// SPDX-License-Identifier: MIT
/* Looks into the kernel's BTF, read once; see kernel_btf.h. Neighbour: plan.c. */
#include "kernel_btf.h"

#include <errno.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

static const struct btf *kernel_btf(void)
{
	static struct btf *btf;
	static int error;

	if (!btf && !error) {
		btf = btf__load_vmlinux_btf();
		error = (int)libbpf_get_error(btf);
		if (error)
			btf = NULL;
	}
	if (!btf)
		errno = -error;
	return btf;
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
		return -ENOENT;
	function = btf__type_by_id(btf, (uint32_t)id);
	return btf_vlen(btf__type_by_id(btf, function->type));
}
