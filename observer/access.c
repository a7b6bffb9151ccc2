// SPDX-License-Identifier: MIT
/* Looks for what keeps BPF from this process, so that one line can say it; see access.h. */
#include "access.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "sojourn/cleanup.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static uint64_t effective_capabilities(void)
{
	autofclose FILE *file = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	}
	return caps;
}

/* With CAP_BPF every kernel takes this program: who says no is something between us and the kernel. */
static bool bpf_is_refused(void)
{
	const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, NULL, "GPL", program,
			       ARRAY_SIZE(program), NULL);

	if (fd >= 0)
		close(fd);
	return fd == -EPERM;
}

void access_reason(char *reason, size_t size)
{
	uint64_t caps = effective_capabilities();
	bool all = caps & 1ULL << CAP_SYS_ADMIN;
	bool bpf = all || caps & 1ULL << CAP_BPF;
	bool perfmon = all || caps & 1ULL << CAP_PERFMON;

	reason[0] = 0;
	if (!bpf || !perfmon)
		snprintf(reason, size,
			 "missing %s%s%s: run it as root, or give it these capabilities",
			 bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
			 perfmon ? "" : "CAP_PERFMON");
	else if (bpf_is_refused())
		snprintf(reason, size,
			 "bpf() is refused in spite of CAP_BPF: by a container's seccomp profile "
			 "(seccomp=unconfined sets none), or in a user namespace");
	else if (access(KERNEL_BTF, R_OK) != 0)
		snprintf(reason, size,
			 "no " KERNEL_BTF
			 ": the kernel was built without CONFIG_DEBUG_INFO_BTF, or "
			 "/sys is hidden");
}
