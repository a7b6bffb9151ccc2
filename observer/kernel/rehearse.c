// SPDX-License-Identifier: MIT
/* Tries programs on the running kernel and releases them; see loader.h. */
#include "loader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "message.h"
#include "skeleton.h"
#include "kernel/tls/clear.h"

static uint32_t verified_instructions(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) < 0)
		return 0;
	return info.verified_insns;
}

static bool wants_cgroup(const struct bpf_program *program)
{
	return bpf_program__type(program) == BPF_PROG_TYPE_SOCK_OPS;
}

static int attach_alone(struct bpf_program *program, int cgroup_fd)
{
	struct bpf_link *link;

	if (wants_cgroup(program) && cgroup_fd < 0)
		return 0;
	if (clear_is_probe(program))
		return clear_try(program);
	link = wants_cgroup(program) ? bpf_program__attach_cgroup(program, cgroup_fd)
				     : bpf_program__attach(program);
	if (!link)
		return -errno;
	bpf_link__destroy(link);
	return 0;
}

/* Attach each alone: programs that work alone work together. */
static int attach_trials(struct sojourn_bpf *skel, struct loader_trial *trials, size_t count,
			 int cgroup_fd, size_t *ret_refused)
{
	for (size_t i = 0; i < count; i++) {
		struct bpf_program *program =
			bpf_object__find_program_by_name(skel->obj, trials[i].program);
		int r = attach_alone(program, cgroup_fd);

		if (r < 0) {
			*ret_refused = i;
			return r;
		}
		trials[i].verified = verified_instructions(program);
	}
	return 0;
}

static int load_trials(struct sojourn_bpf *skel, const struct loader_trial *trials, size_t count,
		       size_t *ret_refused)
{
	int r;

	for (size_t i = 0; i < count; i++)
		loader_skeleton_choose(skel, trials[i].program);
	r = sojourn_bpf__load(skel);
	/* Find the program that libbpf's message names. */
	for (size_t i = 0; r < 0 && i < count; i++) {
		if (loader_message_blames(trials[i].program))
			*ret_refused = i;
	}
	return r;
}

int loader_rehearse(struct loader_trial *trials, size_t count,
		    const struct loader_rehearsal *rehearsal, size_t *ret_refused, char *reason,
		    size_t size)
{
	/* Set all options: the verifier skips code of options that are not set. */
	struct observer_config config = {
		.max_services = 1,
		.cpus = rehearsal->shared ? 2 : 0,
		.copies = rehearsal->shared ? 1 : 0,
		.ring_bytes = (uint32_t)sysconf(_SC_PAGESIZE),
		.cpu = 1,
		.calls = 1,
		.http = 1,
		.streams = 1,
		.beside = rehearsal->beside,
		.route_rows = 1,
		.tls = 1,
		.propose = 1,
		.command_count = 1,
		.command_rows = COMMAND_ROWS,
		.command_ports = {{.port = 1, .protocol = COMMAND_RESP}},
	};
	struct sojourn_bpf *skel = NULL;
	int r = loader_skeleton_open(&config, &skel);

	reason[0] = 0;
	if (!r)
		r = load_trials(skel, trials, count, ret_refused);
	if (!r)
		r = attach_trials(skel, trials, count, rehearsal->cgroup_fd, ret_refused);
	if (r < 0)
		snprintf(reason, size, "%s", *loader_message() ? loader_message() : strerror(-r));
	sojourn_bpf__destroy(skel);
	return r;
}
