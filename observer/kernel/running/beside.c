// SPDX-License-Identifier: MIT
/* Attaches the programs for streams when they are wanted; see beside.h. */
#include "beside.h"

#include <errno.h>
#include <string.h>

#include <bpf/libbpf.h>

struct beside {
	struct bpf_program *program;
	struct bpf_link **link;
};

#define BESIDE(name) {skel->progs.name, &skel->links.name}
#define BESIDE_COUNT 4

/* In this order: the end of a connection is seen before its bytes are followed. */
static void list(struct sojourn_bpf *skel, struct beside ret_list[BESIDE_COUNT])
{
	const struct beside all[BESIDE_COUNT] = {
		BESIDE(streams_state),
		BESIDE(streams_ready),
		BESIDE(streams_recv),
		BESIDE(streams_send),
	};

	memcpy(ret_list, all, sizeof(all));
}

void beside_hold_back(struct sojourn_bpf *skel)
{
	struct beside all[BESIDE_COUNT];

	list(skel, all);
	for (size_t i = 0; skel->rodata->config.beside && i < BESIDE_COUNT; i++)
		bpf_program__set_autoattach(all[i].program, false);
}

bool beside_is_wanted(const struct sojourn_bpf *skel)
{
	return skel->bss->streams_wanted && !skel->bss->streams_attached;
}

/* A run of the plain programs that began before the attaching has ended when the flag is set. */
int beside_attach(struct sojourn_bpf *skel, const struct services *services)
{
	struct beside all[BESIDE_COUNT];
	int r;

	list(skel, all);
	for (size_t i = 0; i < BESIDE_COUNT; i++) {
		if (!*all[i].link)
			*all[i].link = bpf_program__attach(all[i].program);
		if (!*all[i].link)
			return -errno;
	}
	r = services_fence(services);
	if (!r)
		skel->bss->streams_attached = 1;
	return r;
}

bool beside_follows(const struct sojourn_bpf *skel)
{
	return skel->rodata->config.streams &&
	       (!skel->rodata->config.beside || skel->bss->streams_attached);
}
