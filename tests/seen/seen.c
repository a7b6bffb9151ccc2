// SPDX-License-Identifier: MIT
/*
 * sojourn-seen INTERFACE: until SIGTERM, count the packets arriving at an interface of its network
 * namespace. Then print "PID PASSED TRACED" for each interrupted process and, last, the kernel's
 * count of misses.
 */
#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "seen.h"
#include "seen_bpf.skel.h"

static int attach(struct seen_bpf *skel)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)skel->bss->interface,
		    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = bpf_program__fd(skel->progs.seen_passed));
	int error = bpf_tc_hook_create(&hook);

	if (!error)
		error = bpf_tc_attach(&hook, &options);
	if (error)
		return error;
	skel->links.seen_traced = bpf_program__attach(skel->progs.seen_traced);
	return skel->links.seen_traced ? 0 : -errno;
}

static void print(const struct seen_bpf *skel)
{
	int map = bpf_map__fd(skel->maps.tasks);
	struct bpf_prog_info info = {};
	__u32 key, bytes = sizeof(info);
	const __u32 *last = NULL;
	struct seen seen;

	for (; !bpf_map_get_next_key(map, last, &key); last = &key) {
		if (!bpf_map_lookup_elem(map, &key, &seen))
			printf("%u %llu %llu\n", key, seen.passed, seen.traced);
	}
	if (!bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.seen_traced), &info, &bytes))
		printf("misses %llu\n", info.recursion_misses);
}

int main(int argc, char **argv)
{
	struct seen_bpf *skel = argc == 2 ? seen_bpf__open_and_load() : NULL;
	int error, number;
	struct stat netns;
	sigset_t end;

	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigprocmask(SIG_BLOCK, &end, NULL);
	if (!skel || stat("/proc/self/ns/net", &netns))
		return EXIT_FAILURE;
	skel->bss->interface = if_nametoindex(argv[1]);
	skel->bss->netns = (__u32)netns.st_ino;
	error = attach(skel);
	if (!error) {
		puts("counting");
		fflush(stdout);
		sigwait(&end, &number);
		print(skel);
	}
	seen_bpf__destroy(skel);
	return error ? EXIT_FAILURE : EXIT_SUCCESS;
}
