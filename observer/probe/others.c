// SPDX-License-Identifier: MIT
/* Looks through the links of all BPF programs; see others.h. */
#include "others.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

#include "sojourn/cleanup.h"

#define TRACEPOINT "tp_btf/"

static bool is_ours(const struct loader_program *programs, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(programs[i].hook, TRACEPOINT, strlen(TRACEPOINT)) &&
		    !strcmp(programs[i].hook + strlen(TRACEPOINT), name))
			return true;
	}
	return false;
}

/* Its tracepoint's name; "": it has another kind of hook, or is gone by now. */
static void read_name(uint32_t id, size_t size, char *ret_name)
{
	autoclose int fd = bpf_link_get_fd_by_id(id);
	struct bpf_link_info info = {
		.raw_tracepoint = {.tp_name = (uintptr_t)ret_name, .tp_name_len = (uint32_t)size}};
	uint32_t length = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) < 0 ||
	    info.type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		ret_name[0] = 0;
}

int others_count(const struct loader_program *programs, size_t count)
{
	uint32_t id = 0;
	int others = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		char name[128] = "";

		read_name(id, sizeof(name), name);
		others += is_ours(programs, count, name);
	}
	return errno == ENOENT ? others : -errno;
}
